"""Where the catalogue's facts are from."""

import tomllib
from importlib.resources import files

from pydantic import BaseModel, ConfigDict


class Source(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    at: str


def load_sources() -> dict[str, Source]:
    """By the names that the catalogue's entries use. Raises: ValidationError."""
    text = files("models").joinpath("sources.toml").read_text(encoding="utf-8")
    return {name: Source.model_validate(entry) for name, entry in tomllib.loads(text).items()}
