"""What became of one user action: the requests that reached the gateway, those that reached the engine, and the fares."""

import time
from typing import Any

from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town, wait_for
from tests.support.stream import open_holds, settled

# A line of the log waits at most so long to be written; and a client that came back at once is not counted too early.
QUIET_SECONDS = 0.4


class Counted:
    """A customer of its own, and everything that arrived at the gateway since it was made."""

    def __init__(self, town: Town, engine: StandInEngine, customer: Customer, gateway: Running) -> None:
        self._town, self._engine, self.customer, self.gateway = town, engine, customer, gateway
        self._settle()
        self._lines = len(self.gateway.lines())

    @property
    def url(self) -> str:
        return f"{self.gateway.url}/v1/chat/completions"

    def arrivals(self) -> int:
        """Requests for an answer, whatever they got; each has one id, and a line of its end, of its refusal, or of both."""
        self._settle()
        return len({line["id"] for line in self._since("refused")} | {line["call"]["id"] for line in self._since("call")})

    def refusals(self) -> int:
        return len(self._since("refused"))

    def verdicts(self) -> list[str]:
        wait_for(lambda: not open_holds(self._town.redis_url))
        return [event.verdict for event in settled(self._town.redis_url, self.customer)]

    def received(self) -> list[dict[str, Any]]:
        """The bodies that the engine got."""
        return [request["body"] for request in self._engine.journal()["requests"]]

    def paths(self) -> list[str]:
        """Where the engine got them."""
        return [request["path"] for request in self._engine.journal()["requests"]]

    def _since(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.gateway.lines()[self._lines :] if line["event"] == event]

    def _settle(self) -> None:
        wait_for(lambda: not open_holds(self._town.redis_url))
        time.sleep(QUIET_SECONDS)
