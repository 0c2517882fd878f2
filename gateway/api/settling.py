"""The end of a held call, however it ended: the verdict, the usage event, the log line and the metrics, once."""

import orjson

from backends.failures import EngineFault, EngineTimedOut
from backends.slot import PoolFull, QueueUnavailable, WaitedTooLong
from billing.verdict import Outcome, judge
from gateway.api.body import ClientGone
from gateway.api.call import Call
from gateway.api.constraints import ConstraintNotHeld
from gateway.api.delivery import TotalTimedOut
from gateway.api.exchange import Exchange
from gateway.api.faults import EngineFailed, EngineOverloaded, EngineRefused
from gateway.api.images import ImageUnavailable
from gateway.api.order import Order
from gateway.api.queueing import NoReplicaReady
from gateway.api.refusals import refusal_of
from gateway.api.sse import StreamBroke
from gateway.limits.hold import Hold
from gateway.progress import Progress
from gateway.wiring import House

_OUTCOMES: tuple[tuple[type[BaseException], Outcome], ...] = (
    (EngineTimedOut, Outcome.TIMED_OUT),
    (TotalTimedOut, Outcome.TIMED_OUT),
    (EngineRefused, Outcome.ENGINE_REFUSED),
    (ImageUnavailable, Outcome.CLIENT_ERROR),
    (ConstraintNotHeld, Outcome.CLIENT_ERROR),
    (PoolFull, Outcome.SHED),
    (WaitedTooLong, Outcome.SHED),
    (NoReplicaReady, Outcome.NO_CAPACITY),
    (QueueUnavailable, Outcome.NO_CAPACITY),
    (EngineOverloaded, Outcome.NO_CAPACITY),
    (EngineFailed, Outcome.ENGINE_BROKE),
    (EngineFault, Outcome.ENGINE_BROKE),
    (StreamBroke, Outcome.ENGINE_BROKE),
)
# What nginx calls a client that closed its connection; only the ledger sees it.
CLIENT_CLOSED_REQUEST = 499


class Settling:
    """`with Settling(...) as progress`: leaving marks the hold with the verdict. Nothing is awaited."""

    def __init__(self, house: House, exchange: Exchange, hold: Hold, call: Call, order: Order) -> None:
        self._house, self._exchange, self._hold, self._call, self._order = house, exchange, hold, call, order
        self._progress = Progress()

    def __enter__(self) -> Progress:
        self._house.metrics.open_calls += 1
        return self._progress

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._house.metrics.open_calls -= 1
        verdict, reason = judge(outcome_of(error, self._progress))
        status = self._status(error)
        total_ms = self._exchange.elapsed_ms()
        event = self._event(status, total_ms)
        hold, progress = self._hold, self._progress
        hold.settle(verdict, reason, event)
        self._house.metrics.ended(
            (self._call.endpoint.name, hold.model, verdict, reason), fare=hold.fare, total_ms=total_ms, progress=progress
        )
        target_ms = self._order.ttft_target_ms if self._call.stream else None
        self._house.metrics.classes.ended(self._order.service_class, hold.account, verdict, reason, progress, target_ms=target_ms)
        why = None if error is None else str(error)[:200] or type(error).__name__
        # The event is in it as it is: what the ledger gets, the log has too.
        self._house.log.info(
            "call", verdict=verdict, reason=reason, attempts=progress.attempts, why=why, call=orjson.Fragment(event)
        )

    def _event(self, status: int, total_ms: int) -> bytes:
        hold, progress = self._hold, self._progress
        return orjson.dumps(
            {
                "id": self._exchange.request_id, "account": hold.account, "key": hold.key, "model": hold.model,
                "endpoint": self._call.endpoint.name, "fare": hold.fare, "day": hold.day, "stream": self._call.stream,
                "status": status, "at_ms": hold.at_ms, "queue_ms": progress.queue_ms,
                "first_byte_ms": progress.first_byte_ms, "total_ms": total_ms, "prompt_tokens": progress.prompt_tokens,
                "cached_tokens": progress.cached_tokens, "completion_tokens": progress.completion_tokens,
                "tokens_estimated": progress.tokens_estimated, "replica": progress.replica,
                "gateway": self._house.settings.gateway_id, **({"from_pack": True} if hold.ask.from_pack else {}),
            }
        )  # fmt: skip

    def _status(self, error: BaseException | None) -> int:
        if error is None or self._progress.output_began:
            return self._progress.status
        return CLIENT_CLOSED_REQUEST if isinstance(error, ClientGone) else refusal_of(error, self._hold.at_ms).status


def outcome_of(error: BaseException | None, progress: Progress) -> Outcome:
    """How the call ended. What is not in the table is ours: the client pays nothing for it."""
    if error is None:
        return Outcome.EMPTY_ANSWER if progress.empty else Outcome.ANSWERED
    if isinstance(error, ClientGone):
        return Outcome.LEFT_AFTER_OUTPUT if progress.output_began else Outcome.LEFT_BEFORE_OUTPUT
    return next((outcome for kind, outcome in _OUTCOMES if isinstance(error, kind)), Outcome.INTERNAL_ERROR)
