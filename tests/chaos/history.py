"""What clients saw, and the proof that the ledger agrees with it: promise 3 of the design."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.crowd import Reply, call
from tests.support.gateway import Customer


@dataclass(frozen=True, slots=True)
class Call:
    """One call as its client saw it. Times are monotonic seconds."""

    began: float
    ended: float
    port: int
    reply: Reply

    @property
    def id(self) -> str | None:
        return self.reply.headers.get("x-request-id")

    @property
    def delivered(self) -> bool:
        """A whole answer: for a stream, one that ended without an error."""
        return self.reply.status == 200 and self.reply.whole and b'"error"' not in self.reply.body

    @property
    def refused(self) -> bool:
        return self.reply.status >= 400

    @property
    def maybe(self) -> bool:
        """Cut: the client can't know whether its answer was complete."""
        return not self.delivered and not self.refused


@dataclass(slots=True)
class History:
    calls: list[Call] = field(default_factory=list)

    def in_flight_at(self, moment: float, port: int | None = None) -> int:
        return sum(call.began <= moment <= call.ended for call in self.calls if port is None or call.port == port)

    def summary(self) -> dict[str, int]:
        return {
            "delivered": sum(call.delivered for call in self.calls),
            "maybe": sum(call.maybe for call in self.calls),
            "refused": sum(call.refused for call in self.calls),
        }


class Load:
    """Clients that call again and again, over all gateways in turn, half of them streaming, until told to stop."""

    def __init__(self, ports: Sequence[int], customer: Customer, body: dict[str, Any], clients: int = 16) -> None:
        self.history = History()
        self._ports, self._customer, self._body = ports, customer, body
        self._stop = asyncio.Event()
        self._tasks = [asyncio.create_task(self._client(number)) for number in range(clients)]

    async def stop(self) -> History:
        self._stop.set()
        await asyncio.gather(*self._tasks)
        return self.history

    async def _client(self, number: int) -> None:
        turn = number
        while not self._stop.is_set():
            port = self._ports[turn % len(self._ports)]
            began = time.monotonic()
            reply = await call(port, self._customer, {**self._body, "stream": turn % 3 == 0})
            self.history.calls.append(Call(began, time.monotonic(), port, reply))
            turn += 1
            if reply.status != 200:
                await asyncio.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The ledger by request id."""

    rows: dict[str, str]

    def of(self, verdict: str) -> set[str]:
        return {request_id for request_id, found in self.rows.items() if found == verdict}


def check(history: History, ledger: Sequence[tuple[str, str]], *, expired_max: int) -> Counter[str]:
    """Raises AssertionError naming the promise that is broken; returns how many of each.

    A delivered answer has one row, posted; or expired, at most `expired_max` of them (in flight at the kill, in the customer's
    favour). A refused call is never posted. A posted row is an answer that was delivered, or whose end the client could not see.
    """
    counts = Counter(request_id for request_id, _ in ledger)
    assert not [request_id for request_id, count in counts.items() if count > 1], "a request is in the ledger twice"
    verdicts = Verdicts(dict(ledger))
    delivered = {call.id for call in history.calls if call.delivered}
    refused = {call.id for call in history.calls if call.refused}
    assert None not in delivered
    lost = delivered - set(verdicts.rows)
    assert not lost, f"{len(lost)} delivered answers are not in the ledger"
    not_posted = delivered - verdicts.of("posted")
    assert not_posted <= verdicts.of("expired"), "a delivered answer was voided"
    assert len(verdicts.of("expired")) <= expired_max, f"{len(verdicts.of('expired'))} expired, {expired_max} were in flight"
    assert not refused & verdicts.of("posted"), "a refused call was billed"
    unseen = verdicts.of("posted") - delivered
    maybe = sum(call.maybe for call in history.calls)
    assert len(unseen) <= maybe, f"{len(unseen)} posted that nobody received, {maybe} clients can't know"
    return Counter(verdicts.rows.values())
