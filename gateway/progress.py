"""How far one call came: what the verdict, the usage event, the log line and the metrics are made from."""

from dataclasses import dataclass
from typing import NamedTuple, Self


class Usage(NamedTuple):
    """The engine's own counts of tokens; None where it gave none."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None

    @classmethod
    def of(cls, prompt: object, cached: object, completion: object) -> Self:
        """From JSON, where what is no count is no count."""
        return cls(_int(prompt), _int(cached), _int(completion))


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
    returned: int = 0  # times that a higher class was given its slot
    first_byte_ms: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    tokens_estimated: bool = False

    def count(self, usage: Usage | None, frames: int = 0) -> None:
        """Take the engine's usage; where it does not say what was written (a cut stream), each frame stands for one token."""
        if usage is not None:
            self.prompt_tokens, self.cached_tokens, self.completion_tokens = usage
        if usage is None or (usage.completion_tokens is None and frames):
            self.completion_tokens, self.tokens_estimated = frames, True


def _int(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None
