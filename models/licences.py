"""What each licence lets an operator do who sells answers."""

import tomllib
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

CommercialUse = Literal["yes", "conditions", "no", "unknown"]


class Licence(BaseModel):
    """`conditions` in a sentence; `at` is where its text is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    commercial_use: CommercialUse
    conditions: str = ""
    at: str


def load_licences() -> dict[str, Licence]:
    """By name: SPDX's where it has one. Raises: ValidationError."""
    text = files("models").joinpath("licences.toml").read_text(encoding="utf-8")
    return {name: Licence.model_validate(entry) for name, entry in tomllib.loads(text).items()}
