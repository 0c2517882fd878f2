"""The engine's part of one call: a slot, the engine on it, its answer; and another replica while nothing was delivered."""

import asyncio
from functools import partial

from backends import work
from backends.client import Answer
from backends.failures import Aborted, EngineBroke, EngineSpokeNonsense, EngineTimedOut, EngineUnreachable
from backends.slot import PoolFull, Slot
from gateway.api.call import Call
from gateway.api.dialect import Question
from gateway.api.edits import engine_body, engine_headers, output_limit
from gateway.api.exchange import Exchange
from gateway.api.faults import EngineFailed, EngineOverloaded, EngineRefused, raise_status
from gateway.api.queueing import NoReplicaReady, Turn
from gateway.api.relay import StreamRelay, read_all, relay_whole
from gateway.api.sse import StreamBroke
from gateway.progress import Progress
from gateway.wiring import House

# An engine that fails before anything was delivered is replaced by another, at most so often in all.
ATTEMPTS = 3
# An answer that is not streamed may be begun anew for a higher class within so long: later, too much would be thrown away.
WHOLE_RECALL_MS = 1000
# What a replica is told of that failed a call which another one answered: how, no longer matters.
FAILED = 502
_ELSEWHERE = (EngineUnreachable, EngineBroke, EngineSpokeNonsense, EngineFailed, EngineOverloaded, StreamBroke)


class SlotAskedBack(Exception):
    """A higher class needs the slot, and the engine has put out nothing yet."""


class TotalTimedOut(Exception):
    """The call took longer than one call may, and had no output yet."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no output within {seconds:g} s")
        self.seconds = seconds


class Delivery:
    """Brings one held call to an engine and the answer to the client."""

    def __init__(self, house: House, exchange: Exchange, call: Call, turn: Turn, progress: Progress) -> None:
        self._house, self._exchange, self._call, self._turn, self._progress = house, exchange, call, turn, progress
        self._order = turn.order
        self._relay: StreamRelay | None = None
        self._suspects: list[str] = []  # replicas that failed it, each perhaps because of the call itself

    async def run(self, slot: Slot) -> None:
        """Raises ClientGone, TotalTimedOut, and what the last attempt raised; nothing was delivered, unless `output_began`."""
        seconds = self._house.settings.total_seconds
        try:
            with self._exchange.watched(seconds):
                await self._attempts(slot)
        except TimeoutError:
            if self._progress.answered:  # it came as the last bytes left
                return
            if self._relay is None or not self._progress.output_began:
                raise TotalTimedOut(seconds) from None
            self._relay.cut_as_length()

    async def _attempts(self, slot: Slot) -> None:
        while True:
            try:
                with slot:
                    await self._run_on(slot)
            except _ELSEWHERE:
                if self._progress.output_began or self._progress.attempts >= ATTEMPTS or not self._turn.goes_on():
                    self._accuse()
                    raise
            except EngineTimedOut:
                self._accuse()
                raise
            except (PoolFull, NoReplicaReady):
                if not self._turn.overflows():
                    raise
            else:
                return
            slot = self._turn.slot()

    async def _run_on(self, slot: Slot) -> None:
        """An attempt; begun anew, and unnoticed by its client, when its slot was asked back."""
        while True:
            try:
                await self._attempt(slot)
            except Aborted as aborted:
                if not isinstance(aborted.reason, SlotAskedBack):
                    raise
            else:
                return
            finally:
                slot.worked = self._worked()
                if self._house.spending.prices:
                    self._house.spending.spent(self._progress, self._call.body_bytes)
                self._turn.learn(self._progress)
            slot.put_back()
            self._progress.attempts -= 1  # nothing failed
            self._turn.given_back(self._progress)

    async def _attempt(self, slot: Slot) -> None:
        replica = await self._turn.take(slot, self._progress)
        self._progress.attempts += 1
        self._progress.replica = replica.id
        question = Question(self._call.body, self._call.wants_usage, replica.engine, output_limit(self._call, self._order))
        if self._call.stream:
            reader = self._exchange.dialect.reader(question)
            self._relay = StreamRelay(self._exchange, self._progress, reader, self._convict if self._suspects else None)
        body = engine_body(self._call, self._order, replica, self._house.salts)
        headers = engine_headers(self._order, replica)
        with self._house.engines.open(replica, self._call.endpoint.path, body, headers) as answer:
            slot.on_recall = partial(self._gives_back, answer, self._exchange.elapsed_ms())
            try:
                await self._start(answer)
                if answer.status != 200:
                    raise_status(answer.status, await read_all(answer))
                await self._relay_answer(answer, question)
            except (*_ELSEWHERE, EngineTimedOut) as failure:
                if not self._house.engine_failed(replica, failure):
                    self._suspects.append(replica.id)
                raise
            except EngineRefused as refused:
                self._house.readiness.called(replica.id, refused.status)
                raise
            self._house.readiness.called(replica.id, 200)
            self._convict()

    def _convict(self) -> None:
        """The call is answered here: where it failed before, it was not the call's fault."""
        for suspect in self._suspects:
            self._house.readiness.called(suspect, FAILED)
        self._suspects.clear()

    def _accuse(self) -> None:
        """It failed and goes nowhere else. What failed everywhere was the call's own fault."""
        if len(self._suspects) == 1:
            self._house.readiness.accused(self._suspects[0], self._order.account)

    def _gives_back(self, answer: Answer, sent_ms: int) -> bool:
        """Whether the engine is let go for a higher class. What has begun to come is never cut; of an answer that is not streamed
        nothing is seen until it is whole, so it may be cut only soon after it was sent."""
        if self._progress.output_began:
            return False
        if self._relay is None and (answer.status or self._exchange.elapsed_ms() - sent_ms > WHOLE_RECALL_MS):
            return False
        answer.abort(SlotAskedBack())
        return True

    def _worked(self) -> int:
        """What the call cost the engine, for its account's turn. Nothing that failed; of what the client left, what is known."""
        progress = self._progress
        if not progress.output_began and not progress.answered and not self._exchange.line.is_gone():
            return 0
        prompt = progress.prompt_tokens
        if prompt is None:
            prompt = work.prompt_tokens(self._call.body_bytes)
        return work.done(prompt, progress.cached_tokens or 0, progress.completion_tokens or 0)

    async def _start(self, answer: Answer) -> None:
        """A stream has to begin in time. An answer that is not streamed begins with its last token: only the total limits it."""
        if self._relay is None:
            await answer.start()
            return
        seconds = self._house.settings.first_byte_seconds
        try:
            async with asyncio.timeout(seconds):
                await answer.start()
        except TimeoutError:
            raise EngineTimedOut(self._progress.replica or "the engine", "first_byte", seconds) from None

    async def _relay_answer(self, answer: Answer, question: Question) -> None:
        if self._relay is None:
            await relay_whole(answer, self._exchange, self._progress, question)
            return
        kind = answer.headers.get(b"content-type", b"")
        if not kind.startswith(b"text/event-stream"):
            raise EngineFailed(f"a stream was asked for, and {kind.decode('latin-1') or 'no content type'} came")
        await self._relay.run(answer)
