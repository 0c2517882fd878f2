"""A model of the catalogue: what is known of it, what it costs, and which plans open it."""

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from models.licences import CommercialUse

Kind = Literal["chat", "completion", "embedding", "rerank", "audio"]
"""Which endpoints serve it."""
Purpose = Literal["chat", "code", "reasoning", "vision", "embedding", "rerank", "audio"]
"""What people take it for first: a choice of whoever reviews the catalogue, like its tier."""
Tier = Literal["free", "pro", "premium", "enterprise"]
Count = Field(default=None, pattern=r"^[0-9]+(\.[0-9]+)?[MBT]$")
_FACTS = ("context", "parameters", "active_parameters", "licence", "tool_parser", "reasoning_parser")
_MAGNITUDE = {"M": 10**6, "B": 10**9, "T": 10**12}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Capabilities(_Frozen):
    """None: unknown; nobody has shown it."""

    tools: bool | None = None
    vision: bool | None = None
    json_schema: bool | None = None


class Model(_Frozen):
    """`context` is the most tokens the weights were made for; a replica may serve less. None: unknown.

    `active_parameters` are those that work on one token. The parsers are vLLM's names. `retires`: the day from which it is no
    longer promised, and `successor` the model to move to. `sources`: by fact, a name in `sources.toml`.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")
    name: str
    aliases: tuple[str, ...] = ()
    hf_repo: str
    kind: Kind
    purpose: Purpose = "chat"
    context: int | None = Field(default=None, gt=0)
    tier: Tier
    fare: int = Field(default=1, ge=1, le=1000)
    items_per_fare: int = Field(default=1, ge=1)
    popular: bool = False
    parameters: str | None = Count
    active_parameters: str | None = Count
    licence: str | None = None
    commercial_use: CommercialUse = Field(default="unknown", description="what its licence says, filled in from licences.toml")
    capabilities: Capabilities = Capabilities()
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    developer_role: bool = Field(default=False, description="its template knows that role; for others it becomes system")
    tools_first: bool = Field(default=False, description="its template puts tools before the system message, not after it")
    retires: date | None = None
    successor: str | None = None
    sources: dict[str, str] = Field(description="where each fact is from")

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """Its modalities; None: nobody knows whether it sees."""
        if self.kind == "audio":
            return ("audio",)
        if self.capabilities.vision is None and self.kind == "chat":
            return None
        return ("text", "image") if self.capabilities.vision else ("text",)

    @property
    def needs_acceptance(self) -> bool:
        """Nobody here may sell its answers until an admin has read its licence and said so."""
        return self.commercial_use in ("no", "unknown")

    def facts(self) -> set[str]:
        """The names of what is known of it; each has a source."""
        known = {name for name, value in self.capabilities.model_dump().items() if value is not None}
        return known | {name for name in _FACTS if getattr(self, name) is not None}


def parameter_count(written: str) -> int:
    """Of "70B": 70,000,000,000."""
    return round(float(written[:-1]) * _MAGNITUDE[written[-1]])
