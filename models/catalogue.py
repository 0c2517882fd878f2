"""The catalogue: which models exist, and by which names; pure data and pure checks."""

import difflib
import tomllib
from collections.abc import Collection, Iterable
from importlib.resources import files
from typing import Any, Self

from models.licences import Licence, load_licences
from models.model import Capabilities, Kind, Model, Purpose, Tier

__all__ = ["Capabilities", "Catalogue", "CatalogueWrong", "Kind", "Model", "ModelUnknown", "Purpose", "Tier"]
NEAR_MAX = 3


class ModelUnknown(Exception):
    """No model has this name; `near` are those that may have been meant."""

    def __init__(self, name: str, near: list[str]) -> None:
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"There is no model named {name[:80]!r}.{meant}")
        self.name = name
        self.near = near


class CatalogueWrong(Exception):
    """Two models answer to one name, or one is to be followed by a model that is not there."""


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
        texts = _families() if text is None else [text]
        licences = load_licences()
        catalogue = cls(_model(entry, licences) for each in texts for entry in tomllib.loads(each)["model"])
        for model in catalogue.models:
            if model.successor is not None and model.successor not in catalogue._by_name:
                raise CatalogueWrong(f"{model.id} is to be followed by {model.successor!r}, which is no model here")
        return catalogue

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

    def hidden(self, accepted: Iterable[str]) -> frozenset[str]:
        """The ids of the models whose licence asks for an admin's acceptance and has none. Raises: ModelUnknown."""
        known = {self.resolve(name).id for name in accepted}
        return frozenset(model.id for model in self.models if model.needs_acceptance and model.id not in known)

    def _near(self, name: str) -> list[str]:
        # Names are compared up to a bounded length: the time it takes grows with its square.
        close = difflib.get_close_matches(name[:100].lower(), self._by_name, n=2 * NEAR_MAX, cutoff=0.5)
        return list(dict.fromkeys(self._by_name[found].id for found in close))[:NEAR_MAX]


def _families() -> list[str]:
    found = files("models").joinpath("families").iterdir()
    return [file.read_text(encoding="utf-8") for file in sorted(found, key=lambda file: file.name) if file.name.endswith(".toml")]


def _model(entry: dict[str, Any], licences: dict[str, Licence]) -> Model:
    licence = licences.get(entry.get("licence", ""))
    return Model.model_validate(entry if licence is None else {**entry, "commercial_use": licence.commercial_use})
