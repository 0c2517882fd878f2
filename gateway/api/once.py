"""Idempotency-Key: a call that is sent again with its key has the first one's answer and receipt, and no second fare."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, cast

from gateway.access.caller import Caller
from gateway.api.call import Call
from gateway.api.exchange import Exchange
from gateway.api.tape import Tape
from gateway.errors import Refusal
from gateway.limits.idempotency import Claim
from gateway.line import Line
from gateway.progress import Progress
from gateway.seal import Recorded, Scope, Unreadable
from gateway.wiring import House

HEADER = b"idempotency-key"
ANSWER_LIMIT_BYTES = 1024 * 1024
# How much longer than the call itself a running one keeps its key: for what comes before and after.
RUNNING_SPARE_SECONDS = 60
REPLAYED = (b"x-faregate-replayed", b"true")
_KEY = re.compile(rb"[\x21-\x7e]{1,255}")


class AnswerNotKept(Exception):
    """The call with this idempotency key is done, and billed; its answer was too large to keep."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"the answer of call {request_id} is not kept")
        self.request_id = request_id


class Once:
    """One call under an idempotency key. `replay` says what is known of it; entered, it is the key's one call:
    leaving frees the key, unless what `until` saw was an answer to keep."""

    def __init__(self, house: House, exchange: Exchange, caller: Caller, call: Call, raw: bytes) -> None:
        self._house, self._exchange = house, exchange
        self._scope = Scope(caller.account_id, caller.key_id, _key(exchange.headers[HEADER]))
        self._claim = Claim(
            shard=house.gate.once.shard_of(caller.account_id),
            account=caller.account_id,
            name=house.seal.name(self._scope),
            fingerprint=house.seal.fingerprint(call.endpoint.path, raw),
            request_id=exchange.request_id,
            keep_ms=int(house.settings.idempotency_seconds * 1000),
        )
        self._tape = Tape(exchange.line, ANSWER_LIMIT_BYTES)
        self._has_ended = False
        self._first = ""  # the request id of the call that had the key

    async def known(self) -> Recorded | None:
        """The answer that the first call got; None: this is the first, and has to be entered before anything is awaited.

        Raises: IdempotencyKeyInUse, IdempotencyKeyReused, AnswerNotKept, RateExceeded, GateClosed.
        """
        running_ms = int((self._house.settings.total_seconds + RUNNING_SPARE_SECONDS) * 1000)
        first = await self._house.gate.once.claim(self._claim, running_ms)
        if first is None:
            return None
        self._first = first
        self._house.gate.once.replays.take(self._scope.key)
        try:
            return self._house.seal.open(self._scope, await self._house.gate.once.answer(self._claim))
        except Unreadable:  # also when it was not kept, and is empty
            raise AnswerNotKept(first) from None

    def replay(self, recorded: Recorded) -> None:
        """Raises: ClientGone."""
        self._house.log.info("replayed", id=self._exchange.request_id, first=self._first)
        self._exchange.receipt = []
        self._exchange.answer(recorded.status, [*recorded.headers, REPLAYED], recorded.body)

    def __enter__(self) -> Self:
        self._exchange.line = cast("Line", self._tape)  # all that the path uses of one
        return self

    def __exit__(self, *_: object) -> None:
        if not self._has_ended:
            self._house.gate.once.free(self._claim)

    @contextmanager
    def until(self, progress: Progress) -> Iterator[None]:
        """Inside the hold, so that the answer is on its way to Valkey before the settle is. Left with an answer that is billed,
        it is kept; a client that left, an empty answer or an error free the key."""
        yield
        if progress.answered and not progress.empty:
            recorded = self._tape.recorded()
            sealed = None if recorded is None else self._house.seal.close(self._scope, recorded)
            self._house.gate.once.keep(self._claim, sealed)
            self._has_ended = True


def _key(given: bytes) -> bytes:
    if not _KEY.fullmatch(given):
        raise Refusal(
            400, "Idempotency-Key must be 1 to 255 visible ASCII characters, without spaces.", code="invalid_idempotency_key"
        )
    return given
