"""The catalogue: which models exist, what they cost, which plans open them, and what they can do; pure data and pure checks."""

import difflib
import tomllib
from collections.abc import Collection, Iterable
from importlib.resources import files
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["chat", "completion", "embedding", "rerank"]
Tier = Literal["free", "pro", "premium", "enterprise"]
NEAR_MAX = 3


class ModelUnknown(Exception):
    """No model has this name; `near` are those that may have been meant."""

    def __init__(self, name: str, near: list[str]) -> None:
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"There is no model named {name[:80]!r}.{meant}")
        self.name = name
        self.near = near


class CatalogueWrong(Exception):
    """Two models answer to one name."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Capabilities(_Frozen):
    """None: unknown; nobody has shown it."""

    tools: bool | None = None
    vision: bool | None = None
    json_schema: bool | None = None


class Model(_Frozen):
    """`context` is the most tokens the weights were made for; a replica may serve less. None: unknown."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")
    name: str
    aliases: tuple[str, ...] = ()
    hf_repo: str
    kind: Kind
    context: int | None = Field(default=None, gt=0)
    tier: Tier
    fare: int = Field(default=1, ge=1, le=1000)
    items_per_fare: int = Field(default=1, ge=1)
    parameters: str | None = None
    licence: str | None = None
    capabilities: Capabilities = Capabilities()
    developer_role: bool = Field(default=False, description="its template knows that role; for others it becomes system")
    sources: dict[str, str] = Field(description="where each fact is from")


class Catalogue:
    """Models by id and by alias, both without regard to case."""

    def __init__(self, models: Iterable[Model]) -> None:
        """Raises: CatalogueWrong."""
        self.models = tuple(models)
        self._by_name: dict[str, Model] = {}
        for model in self.models:
            for name in {model.id, *(alias.lower() for alias in model.aliases)}:
                other = self._by_name.setdefault(name, model)
                if other is not model:
                    raise CatalogueWrong(f"both {other.id} and {model.id} answer to {name!r}: change one of them")

    @classmethod
    def load(cls, text: str | None = None) -> Self:
        """From TOML; without `text`, the catalogue that comes with Faregate. Raises: CatalogueWrong, ValidationError."""
        text = files("models").joinpath("catalogue.toml").read_text(encoding="utf-8") if text is None else text
        return cls(Model.model_validate(entry) for entry in tomllib.loads(text)["model"])

    def knows(self, name: str) -> bool:
        return name in self._by_name or name.lower() in self._by_name

    def resolve(self, name: str) -> Model:
        """Raises: ModelUnknown, with the nearest names."""
        model = self._by_name.get(name) or self._by_name.get(name.lower())
        if model is None:
            raise ModelUnknown(name, self._near(name))
        return model

    def served(self, pool_ids: Collection[str]) -> list[Model]:
        """The models that have a pool, in the catalogue's order."""
        return [model for model in self.models if model.id in pool_ids]

    def _near(self, name: str) -> list[str]:
        # Names are compared up to a bounded length: the time it takes grows with its square.
        close = difflib.get_close_matches(name[:100].lower(), self._by_name, n=2 * NEAR_MAX, cutoff=0.5)
        return list(dict.fromkeys(self._by_name[found].id for found in close))[:NEAR_MAX]
