"""A call's turn: which pools it tries for a slot, how long it may wait for one, and what its client is told meanwhile."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from backends import work
from backends.dedicated import Way
from backends.fleet import Replica
from backends.prefix import NO_PROMPT, Prompt, read_prompt
from backends.prefixes import Sent
from backends.slot import Slot
from gateway.api.call import Call
from gateway.api.exchange import Exchange, Headers
from gateway.api.order import Order
from gateway.errors import Refusal
from gateway.progress import Progress
from gateway.standings import Standing
from gateway.wiring import House

# The longest wait that a client may name: an hour, far more than any class may wait.
MAX_WAIT_MS = 3_600_000


class NoReplicaReady(Exception):
    """Every replica of the model is down or has just failed."""


class Turn:
    """One call's. A slot is of one pool and one attempt: after a failed attempt, or on to the shared pool, it is a new one."""

    __slots__ = ("_at", "_call", "_entered", "_estimate", "_exchange", "_has_said", "_house", "_max_wait_ms", "_prompt", "_sent",
                 "_slot", "_slots", "_tried", "_waited_ms", "order")  # fmt: skip

    def __init__(self, house: House, exchange: Exchange, call: Call, order: Order) -> None:
        self._house, self._exchange, self._call, self.order = house, exchange, call, order
        self._prompt: Prompt | None = None
        self._sent: Sent | None = None
        self._estimate = work.estimated(call.body_bytes, order.output_max if call.output_tokens is None else call.output_tokens)
        self._max_wait_ms = max_wait_ms(exchange.headers)
        self._tried: set[str] = set()
        self._at = self._slots = self._waited_ms = 0
        self._has_said = False
        self._slot: Slot | None = None
        self._entered: tuple[int, float | None] | None = None

    def slot(self) -> Slot:
        """The next one, on the pool that is tried now."""
        name, order = self._exchange.request_id, self.order
        # The id that a call has first was left already, where it is on the slow lane.
        if self._slots or order.spent is not None:
            name = f"{name}/{self._slots + 1}"
        self._slots += 1
        pool = order.ways[self._at].pool
        self._slot = self._house.queue.slot(pool, name, order.service_class, account=order.account, work_estimate=self._estimate)
        return self._slot

    def preference(self) -> Sequence[tuple[str, int]]:
        """Replicas that were not tried yet, best first, with how many calls each takes."""
        slot = self._slot
        if slot is not None and slot.position is not None and self._entered is None:
            self._entered = (slot.position, slot.expected_seconds)
        way = self.order.ways[self._at]
        found = self._house.preference(way, NO_PROMPT if len(way.replicas) <= 1 else self._read(way), self._tried)
        return [pair for pair in found if pair[0] not in self._tried] if self._tried else found

    def goes_on(self) -> bool:
        """Whether there is something left to try: another replica of the pool, or the next pool."""
        return bool(self.preference()) or self.overflows()

    def overflows(self) -> bool:
        """On to the next pool, if there is one."""
        if self._at + 1 == len(self.order.ways):
            return False
        self._at += 1
        return True

    async def take(self, slot: Slot, progress: Progress) -> Replica:
        """Raises: NoReplicaReady, PoolFull, LineTooSlow, WaitedTooLong, QueueUnavailable."""
        began_ms = self._exchange.elapsed_ms()
        try:
            while (replica := self._granted(slot)) is None:
                await self._wait(slot)
        finally:
            self._waited_ms += self._exchange.elapsed_ms() - began_ms
            progress.queue_ms = self._waited_ms
            self._say()
        self._tried.add(replica.id)
        if self._prompt is not None and self._prompt.chain:
            self._sent = self._house.prefixes.sent(replica.id, self._prompt)
        return replica

    def _granted(self, slot: Slot) -> Replica | None:
        """Where it may run. One that is drained since it was asked for gets no call any more: its slot is given back."""
        if slot.replica is None:
            return None
        replica = next((one for one in self.order.ways[self._at].replicas if one.id == slot.replica), None)
        if replica is None:
            slot.put_back()
        return replica

    def _read(self, way: Way) -> Prompt:
        """Once, and only for those who choose: a pool has engines of one kind, or its first one speaks for all."""
        if self._prompt is None:
            order, call = self.order, self._call
            text = b"\0".join(call.endpoint.spoken(call.body, order.model.tools_first))
            self._prompt = read_prompt(text, self._house.salts.seed(way.replicas[0], order.account))
        return self._prompt

    def learn(self, progress: Progress) -> None:
        """After an attempt: the replica has the prompt in its cache if it came as far as to an output."""
        sent, self._sent = self._sent, None
        if sent is None:
            return
        if progress.output_began or progress.answered:
            self._house.prefixes.answered(sent, progress.prompt_tokens, progress.cached_tokens)
        else:
            self._house.prefixes.failed(sent)

    def given_back(self, progress: Progress) -> None:
        """A higher class was given the slot: `take` may have the same replica again."""
        self._tried.discard(progress.replica or "")
        progress.returned += 1

    async def _wait(self, slot: Slot) -> None:
        if not self.preference():
            raise NoReplicaReady
        rules = self._house.queue.classes.rules(self.order.service_class)
        longest_ms = int(rules.wait_seconds * 1000)
        if self._max_wait_ms is not None:
            longest_ms = min(longest_ms, self._max_wait_ms)
        may_wait = self.order.ways[self._at].may_wait and longest_ms > 0
        with self._shown(slot):
            left_ms = max(0, longest_ms - self._waited_ms)
            await slot.take(self.preference, left_ms / 1000, rules.depth if may_wait else 0)

    @contextmanager
    def _shown(self, slot: Slot) -> Iterator[None]:
        """While it waits, the client can ask how the line stands, and a stream's comments say so."""
        order, exchange = self.order, self._exchange
        since = time.monotonic() - self._waited_ms / 1000
        standing = Standing(order.account, order.key, order.model.id, order.service_class, slot, since)
        exchange.place = self
        try:
            with self._house.standings.shows(exchange.request_id, standing):
                yield
        finally:
            exchange.place = None
            if exchange.committed and slot.replica is not None:
                self._house.standings.keep(exchange.request_id, standing)

    def comment(self) -> bytes:
        """What a stream that waits says to keep its line open."""
        slot = self._slot
        if slot is None or slot.position is None:
            return b": waiting\n\n"
        if slot.expected_seconds is None:
            return b": waiting, position %d\n\n" % slot.position
        return b": waiting, position %d, about %d s\n\n" % (slot.position, max(1, round(slot.expected_seconds)))

    def headers(self) -> Headers:
        """Where it stood when it began to wait, and how long it was expected to."""
        if self._entered is None:
            return []
        position, seconds = self._entered
        found = [(b"x-faregate-queue-position", b"%d" % position)]
        if seconds is not None:
            found.append((b"x-faregate-queue-estimate-ms", b"%d" % round(seconds * 1000)))
        return found

    def _say(self) -> None:
        """On the answer's head, unless it has left: then the wait can be asked for."""
        exchange = self._exchange
        if exchange.committed:
            return
        if self._has_said:
            exchange.receipt = [header for header in exchange.receipt if not header[0].startswith(b"x-faregate-queue-")]
        exchange.receipt += ((b"x-faregate-queue-ms", b"%d" % self._waited_ms), *self.headers())
        self._has_said = True


def max_wait_ms(headers: Mapping[bytes, bytes]) -> int | None:
    """The call's own limit of its wait for a slot. Raises: Refusal (400)."""
    given = headers.get(b"x-faregate-max-wait-ms")
    if given is None:
        return None
    if not given.isdigit() or len(given) > 7 or int(given) > MAX_WAIT_MS:
        raise Refusal(
            400,
            f"x-faregate-max-wait-ms must be a whole number of milliseconds, 0 to {MAX_WAIT_MS}.",
            param="x-faregate-max-wait-ms",
            code="invalid_value",
        )
    return int(given)
