"""What a page's function says that the browser gets: a page, another address, a file or a few facts; pure data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Cookie:
    """`seconds` 0: taken away; None: until the browser is closed."""

    name: str
    value: str
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A template of the folder `templates`, and what it is told."""

    template: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Moved:
    """To a path of this console, by GET (303)."""

    to: str
    cookies: Sequence[Cookie] = ()


@dataclass(frozen=True, slots=True)
class Download:
    """A spreadsheet (CSV)."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Told:
    """A few facts for a script of ours (JSON)."""

    facts: Mapping[str, Any]
    status: int = 200


Answer = Shown | Moved | Download | Told


class NotHere(Exception):
    """There is no such thing on this account; whether it is on another is not said."""
