"""How far one call came: what the verdict, the usage event, the log line and the metrics are made from."""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Progress:
    """Times are milliseconds since the request arrived; tokens are the engine's own counts unless `tokens_estimated`."""

    status: int = 0
    output_began: bool = False
    answered: bool = False
    empty: bool = False
    attempts: int = 0
    replica: str | None = None
    queue_ms: int | None = None
    first_byte_ms: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    tokens_estimated: bool = False

    def count(self, usage: dict[str, Any] | None, frames: int = 0) -> None:
        """Take the engine's usage; without it (a cut stream) each frame stands for one token."""
        if usage is None:
            self.completion_tokens, self.tokens_estimated = frames, True
            return
        self.prompt_tokens = _int(usage.get("prompt_tokens"))
        self.completion_tokens = _int(usage.get("completion_tokens"))
        details = usage.get("prompt_tokens_details")
        self.cached_tokens = _int(details.get("cached_tokens")) if isinstance(details, dict) else None


def _int(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None
