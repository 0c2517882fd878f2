"""What vLLM counts of itself, and what the gateway settled, so that both can be held against what a client was told."""

import http.client
import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from tests.support.gateway import Customer, Town, wait_for
from tests.support.stream import Settled, settled


def gauge(url: str, name: str) -> float:
    """The sum of a metric's series; 0.0 before its first."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Tokens:
    """Of one call, or of all since the engine's start."""

    prompt: int
    completion: int

    @classmethod
    def of_engine(cls, url: str) -> Self:
        return cls(int(gauge(url, "vllm:prompt_tokens_total")), int(gauge(url, "vllm:generation_tokens_total")))

    @classmethod
    def of_event(cls, event: Settled) -> Self:
        return cls(event.event["prompt_tokens"], event.event["completion_tokens"])

    def since(self, before: "Tokens") -> "Tokens":
        return Tokens(self.prompt - before.prompt, self.completion - before.completion)


def only_event_of(town: Town, customer: Customer) -> Settled:
    """The single event of a customer's single call. Raises AssertionError when there is none soon, or more."""
    wait_for(lambda: settled(town.redis_url, customer))
    [event] = settled(town.redis_url, customer)
    return event
