"""What differs between kinds of engine that all speak OpenAI's protocol."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Gauges:
    """Names of an engine's own Prometheus metrics, as they are on its page; None where it has none."""

    running: str | None
    waiting: str | None
    kv_use: str | None  # a share, 0 to 1
    preemptions: str | None  # a counter: requests whose memory was taken away while they ran
    steps: str | None = None  # a counter that grows with each step it computes
    # The label that tells apart what adds up, as the ranks of one engine do. Samples that differ in others only are the same
    # count again, from another process or for a part of it: the largest is it.
    apart: str | None = None


@dataclass(frozen=True, slots=True)
class EngineKind:
    """One kind. `priority` says which number goes first, if the engine knows priorities at all."""

    name: str
    health_path: str
    metrics_path: str | None
    gauges: Gauges
    priority: Literal["lower_first", "higher_first"] | None
    # Request fields that it refuses or silently ignores.
    lacks: frozenset[str]
    # Endpoints of ours that it doesn't have, or has in another shape; by name.
    lacks_endpoints: frozenset[str] = frozenset()
    # A header that says the priority where a body of some endpoint can't.
    priority_header: bytes | None = None
    # Its name for what clients of chat know as `reasoning_content`.
    reasoning_field: str = "reasoning_content"
    models_path: str = "/v1/models"
    # Its work costs money by the token, so that it has a price and a cap, and is asked only when the fleet's own can't.
    is_paid_by_token: bool = False
    seen_with: str = ""
