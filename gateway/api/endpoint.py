"""What is particular to one paid endpoint: a table of these is all that the path of a call knows of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from backends.fleet import Replica
from gateway.api.dialect import Dialect
from gateway.api.images import Addressed
from gateway.api.spoken import Spoken, nothing_spoken
from models.catalogue import Kind

Body = dict[str, Any]


class Asked(NamedTuple):
    """What the input holds. `prompts` are answered one by one (0: nothing is generated); `items` are priced by the batch;
    `addressed` are those of its images that have yet to be fetched."""

    prompts: int
    images: int = 0
    items: int = 1
    addressed: Sequence[Addressed] = ()


def no_media(_: Body) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How one paid endpoint is read, what its engine gets, and how its answer looks.

    `ask` checks the input and counts what is in it (raises Refusal); `media_bytes` is how much of a body is no text;
    `edit` changes the engine's copy of the body in place, after the edits that all endpoints share. `generation_fields` make an
    engine answer each prompt more than once. `output_fields` limit the output, the first of them being written where one is
    needed; `output_default` is how much an engine is told to write where the client says nothing: "plan" is the plan's limit.
    `kinds` are the models that serve it; `also_at` are further paths of ours, engines know `path` alone. `spoken` is what its
    prompts begin with, for those who look for it in a prefix cache.
    """

    path: str
    name: str
    dialect: Dialect
    ask: Callable[[Body], Asked]
    edit: Callable[[Body, Replica, bool], None]
    input_field: str
    kinds: frozenset[Kind]
    also_at: tuple[str, ...] = ()
    generation_fields: tuple[str, ...] = ()
    output_fields: tuple[str, ...] = ()
    output_default: int | Literal["plan"] = "plan"
    media_bytes: Callable[[Body], int] = no_media
    streams: bool = True
    spoken: Spoken = nothing_spoken

    def is_served_by(self, kind: Kind, lacks: frozenset[str]) -> bool:
        """Whether a model of this kind has it, on engines that lack the endpoints named."""
        return kind in self.kinds and self.name not in lacks
