"""Every call's one end on its way to Valkey: sent until acknowledged, kept until the ledger has it."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from gateway.crash import crash_point
from gateway.limits import scripts
from gateway.limits.event import bare_event
from gateway.limits.hold import Ask, Hold
from gateway.limits.shard import Shard, shard_of
from gateway.valkey import Valkey

KEPT_MAX = 200_000  # events in all; about 1 KB each
UNACKNOWLEDGED_MAX = 50_000  # beyond it nothing is admitted: Valkey must catch up first
IN_FLIGHT_MAX = 512  # so that a long outbox is not one burst that outlasts the connection's time-out
TOMBSTONE_MS = 600_000  # far longer than a late admit can live: its id is refused after 60 s

StreamId = tuple[int, int]


class Ending:
    """One call's end. `acked` is (nonce, stream id) of the event it became."""

    __slots__ = ("acked", "ask", "event", "reason", "sends", "shard", "verdict")

    def __init__(self, ask: Ask, shard: Shard, verdict: str, reason: str, event: bytes) -> None:
        self.ask, self.shard, self.verdict, self.reason, self.event = ask, shard, verdict, reason, event
        self.acked: tuple[str, StreamId] | None = None
        self.sends = 0


class Outbox:
    def __init__(self, valkey: Valkey, shards: Sequence[Shard], gateway: str) -> None:
        self._valkey, self._shards, self._gateway = valkey, shards, gateway
        self._waiting: deque[Ending] = deque()
        self._failed: list[Ending] = []  # sent without an answer; they go first when it goes on
        self._in_flight = 0
        self._all_acknowledged: asyncio.Event = asyncio.Event()
        self._all_acknowledged.set()
        self.on_new_epoch: Callable[[], object] = lambda: None
        self.kept = 0
        self.unacknowledged = 0
        self.forgotten = 0  # let go before the ledger had them, for want of room
        self.late = 0  # posted after the gateway's lease was swept: the house bears it

    @property
    def is_full(self) -> bool:
        return self.unacknowledged >= UNACKNOWLEDGED_MAX

    def close_hold(self, hold: Hold) -> None:
        """The call is over: hand its end over. A hold is closed once."""
        shard = self._shard_of(hold.ask)
        if shard.open.pop(hold.request_id, None) is None:
            return
        verdict, reason, event = hold.mark or ("voided", "internal_error", bare_event(hold.ask, 500, self._gateway))
        self._put(Ending(hold.ask, shard, str(verdict), str(reason), event))

    def void_unknown(self, ask: Ask) -> None:
        """An admit was sent and its answer will not be known: if it holds a fare, give it back."""
        event = bare_event(ask, 503, self._gateway)
        self._put(Ending(ask, self._shard_of(ask), "voided", "unknown_admit", event))

    def resume(self) -> None:
        """Send again what failed, in its old order, before what came later."""
        if self._failed:
            failed, self._failed = self._failed, []
            self._waiting.extendleft(reversed(failed))
        self._pump()

    def send_again(self, shard: Shard) -> None:
        """A new epoch: what was acknowledged under another nonce may be forgotten there."""
        for ending in shard.kept.values():
            if ending.acked is not None and ending.acked[0] != shard.nonce:
                ending.acked = None
                self._count(1)
                self._waiting.append(ending)
        self._pump()

    def release(self, shard: Shard, watermark: bytes) -> None:
        """Let go what the ledger has: everything of this epoch up to the worker's watermark."""
        nonce, _, position = watermark.decode().partition(" ")
        if not nonce or not position:
            return  # without a nonce it was written while no epoch was open: of which memory, nobody knows
        up_to = _stream_id(position)
        for request_id, ending in list(shard.kept.items()):
            if ending.acked is None:
                continue
            if ending.acked[0] != nonce or ending.acked[1] > up_to:
                break  # ids grow in the order of sending, nearly: the rest goes with a later watermark
            del shard.kept[request_id]
            self.kept -= 1

    async def flush(self, timeout_seconds: float) -> int:
        """Wait until everything is acknowledged; returns how many ends are not."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._all_acknowledged.wait()
        except TimeoutError:
            pass
        return self.unacknowledged

    def _put(self, ending: Ending) -> None:
        if ending.ask.request_id in ending.shard.kept:
            return  # a call ends once
        ending.shard.kept[ending.ask.request_id] = ending
        self.kept += 1
        self._count(1)
        if self.kept > KEPT_MAX:
            self._forget_one()
        self._waiting.append(ending)
        self._pump()

    def _pump(self) -> None:
        while self._waiting and self._in_flight < IN_FLIGHT_MAX and self._valkey.connected and not self._failed:
            self._send(self._waiting.popleft())

    def _send(self, ending: Ending) -> None:
        crash_point("outbox:before_settle")
        ask, shard = ending.ask, ending.shard
        self._in_flight += 1
        ending.sends += 1
        keys = (shard.epoch, shard.holds, *shard.call(ask.request_id, ask.account, ask.key), shard.events)
        answer = self._valkey.script(
            scripts.SETTLE,
            keys,
            (ask.request_id, ending.verdict, ending.reason, ending.event, ask.numbers.free_hangups, TOMBSTONE_MS),
            lazy=True,
        )
        answer.add_done_callback(lambda answered: self._answered(ending, answered))

    def _answered(self, ending: Ending, answer: asyncio.Future[Any]) -> None:
        self._in_flight -= 1
        if answer.cancelled() or answer.exception() is not None:
            self._failed.append(ending)
            return
        stream_id, verdict, was_held, nonce = answer.result()
        if verdict == b"posted" and not was_held and ending.sends == 1:
            self.late += 1
        ending.verdict = verdict.decode()  # a hang-up is decided once; sent again it says the same
        ending.acked = (nonce.decode(), _stream_id(stream_id.decode()))
        self._count(-1)
        crash_point("outbox:after_settle")
        if ending.acked[0] != ending.shard.nonce:
            self.on_new_epoch()
        if self._waiting:
            self._pump()

    def _count(self, by: int) -> None:
        self.unacknowledged += by
        if self.unacknowledged:
            self._all_acknowledged.clear()
        else:
            self._all_acknowledged.set()

    def _forget_one(self) -> None:
        """The oldest acknowledged one of the fullest shard; Valkey and its append-only file still have it."""
        fullest = max(self._shards, key=lambda shard: len(shard.kept))
        for request_id, ending in fullest.kept.items():
            if ending.acked is not None:
                del fullest.kept[request_id]
                self.kept -= 1
                self.forgotten += 1
                return

    def _shard_of(self, ask: Ask) -> Shard:
        return self._shards[shard_of(ask.account, len(self._shards))]


def _stream_id(text: str) -> StreamId:
    ms, _, sequence = text.partition("-")
    return int(ms), int(sequence or 0)
