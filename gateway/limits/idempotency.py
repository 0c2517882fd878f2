"""One call for one idempotency key: who runs it, and its answer for those who ask again.

The answer is handed over before the call's end is, on the same connection, so that Valkey has it before the fare is posted.
What stays of a call when something dies in between:

* before the claim: nothing.
* the gateway, after the claim and before the hold: the key is an orphan as soon as the lease is over. Whoever takes it then
  leaves a tombstone, so that the old call is not admitted if its gateway was only frozen.
* the gateway, with the hold: the sweep ends the hold as expired, and then the key may be taken. Not before: while the hold is
  there, the old call could still be posted.
* the gateway, after the answer was kept and before the settle: expired, so not billed; who asks again has the answer for nothing.
* the connection: what was not acknowledged is sent again on the next one, answers before settles.
* Valkey's memory: the key is forgotten, and a retry runs, and pays, again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.limits import scripts
from gateway.limits.lease import Leases
from gateway.limits.outbox import TOMBSTONE_MS
from gateway.limits.refusals import GateClosed, IdempotencyKeyInUse, IdempotencyKeyReused
from gateway.limits.replays import Replays
from gateway.limits.shard import Shard, shard_of
from gateway.valkey import Argument, Script, Valkey, ValkeyRefused, ValkeyUnavailable

# Of one account; beyond them its oldest go.
ANSWERS_MAX = 256
ANSWER_BYTES_MAX = 32 * 1024 * 1024
# Of one gateway, not acknowledged: beyond it answers are not kept, so that neither memory nor others' calls suffer.
IN_FLIGHT_BYTES_MAX = 8 * 1024 * 1024
# Answers that are read at once: every call's admit waits behind them on the same connection.
READ_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Claim:
    """An idempotency key in the hands of a call. `name` is what the key is called in Valkey."""

    shard: Shard
    account: str
    name: str
    fingerprint: str
    request_id: str
    keep_ms: int

    @property
    def entry(self) -> str:
        return self.shard.once(self.account, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class _Ending:
    claim: Claim
    script: Script
    keys: Sequence[str]
    args: Sequence[Argument]
    size: int = 0


class Idempotency:
    def __init__(self, valkey: Valkey, shards: Sequence[Shard], leases: Leases, *, gateway: str, lease_ms: int) -> None:
        self._valkey, self._shards, self._leases = valkey, shards, leases
        self._gateway, self._lease_ms = gateway, lease_ms
        self._unacknowledged: dict[tuple[str, str], _Ending] = {}  # by entry and request id
        self._in_flight_bytes = 0
        self.unkept = 0  # answers that were too large, or one too many
        self.replays = Replays()
        self._reading = asyncio.Semaphore(READ_AT_ONCE)
        valkey.listeners.append(self._send_again)  # after the leases' own, which opens the epochs

    async def claim(self, claim: Claim, running_ms: int) -> str | None:
        """The request id of the call that had the key and is done. None: this one may run, and must end in `keep` or `free`.

        Raises: IdempotencyKeyInUse, IdempotencyKeyReused, GateClosed.
        """
        shard = claim.shard
        now = shard.used_at = asyncio.get_running_loop().time()
        if not self._valkey.connected:
            raise GateClosed("Valkey is away")
        if now >= shard.leased_until:
            self._leases.renew(shard)
        answer = await self._ask(claim, running_ms)
        if answer[0] == b"orphan":
            answer = await self._ask(claim, running_ms, answer[1].decode(), answer[2].decode())
        match answer:
            case [b"claimed"]:
                return None
            case [b"done", owner]:
                return str(owner.decode())
            case [b"other"]:
                raise IdempotencyKeyReused
            case _:  # running, or an orphan that others were faster to take
                raise IdempotencyKeyInUse

    async def answer(self, claim: Claim) -> bytes:
        """What was kept of the call that is done; empty when that is nothing. Raises: GateClosed."""
        async with self._reading:
            try:
                return await self._valkey.call("HGET", claim.entry, "a") or b""
            except (ValkeyUnavailable, ValkeyRefused) as error:
                raise GateClosed("Valkey does not answer") from error

    def shard_of(self, account: str) -> Shard:
        return self._shards[shard_of(account, len(self._shards))]

    def keep(self, claim: Claim, sealed: bytes | None) -> None:
        """The call is done. Nothing is awaited; it is sent until it is acknowledged. None: without its answer."""
        if sealed is None or self._in_flight_bytes + len(sealed) > IN_FLIGHT_BYTES_MAX:
            self.unkept += 1
            sealed = b""
        keys = (claim.entry, claim.shard.answers(claim.account))
        args = (claim.request_id, claim.fingerprint, claim.keep_ms, claim.name, ANSWERS_MAX, ANSWER_BYTES_MAX, sealed)
        self._end(_Ending(claim, scripts.ONCE_KEEP, keys, args, len(sealed)))

    def free(self, claim: Claim) -> None:
        """The call failed: its key may be used again. Nothing is awaited."""
        self._end(_Ending(claim, scripts.ONCE_FREE, (claim.entry,), (claim.request_id,)))

    async def _ask(self, claim: Claim, running_ms: int, owner: str = "", gateway: str = "") -> list[Any]:
        shard = claim.shard
        keys = (shard.epoch, shard.leases, claim.entry, shard.holds_of(gateway), shard.tombstone(owner))
        args = (claim.request_id, self._gateway, claim.fingerprint, running_ms, self._lease_ms, TOMBSTONE_MS, owner)
        try:
            return await self._valkey.script(scripts.ONCE_CLAIM, keys, args)  # type: ignore[no-any-return] # it answers a list
        except ValkeyUnavailable as error:
            if error.maybe_sent:
                self.free(claim)
            raise GateClosed("Valkey does not answer") from error
        except ValkeyRefused as error:
            raise GateClosed(f"Valkey refuses: {error}") from error
        except asyncio.CancelledError:
            self.free(claim)  # the caller left; the script runs all the same
            raise

    def _end(self, ending: _Ending) -> None:
        self._unacknowledged[ending.claim.entry, ending.claim.request_id] = ending
        self._in_flight_bytes += ending.size
        self._send(ending)

    def _send(self, ending: _Ending) -> None:
        answer = self._valkey.script(ending.script, ending.keys, ending.args)
        answer.add_done_callback(lambda answered: self._answered(ending, answered))

    def _send_again(self) -> None:
        for ending in list(self._unacknowledged.values()):
            self._send(ending)

    def _answered(self, ending: _Ending, answer: asyncio.Future[Any]) -> None:
        claim = ending.claim
        if answer.cancelled() or isinstance(answer.exception(), ValkeyUnavailable):
            return  # the next connection has it sent again
        if self._unacknowledged.pop((claim.entry, claim.request_id), None) is not None:
            self._in_flight_bytes -= ending.size
        if answer.exception() is None and ending.script is scripts.ONCE_KEEP:
            for name in answer.result():
                self._make_room(claim, name.decode())

    def _make_room(self, claim: Claim, name: str) -> None:
        """Should it get lost, the answer goes by itself when its time is over."""
        gone = self._valkey.script(scripts.ONCE_FREE, (claim.shard.once(claim.account, name),), ("",), lazy=True)
        gone.add_done_callback(lambda answered: answered.cancelled() or answered.exception())
