"""Style, scripts and pictures: under names that change with their content, so that browsers may keep them for ever."""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PREFIX = "/static/"


@dataclass(frozen=True, slots=True)
class StaticFile:
    body: bytes
    packed: bytes
    media_type: str


def address_of(name: str) -> str:
    """Raises: KeyError for a file that is not there."""
    return PREFIX + _names()[name]


def static_file(path: str) -> StaticFile | None:
    return _by_path().get(path)


@cache
def _by_path() -> Mapping[str, StaticFile]:
    folder = files("gateway.console") / "static"
    return {PREFIX + hashed: _file((folder / name).read_bytes(), name) for name, hashed in _names().items()}


@cache
def _names() -> Mapping[str, str]:
    found = {}
    for entry in (files("gateway.console") / "static").iterdir():
        stem, _, kind = entry.name.rpartition(".")
        found[entry.name] = f"{stem}.{hashlib.sha256(entry.read_bytes()).hexdigest()[:12]}.{kind}"
    return found


def _file(body: bytes, name: str) -> StaticFile:
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if media_type.startswith("text/") or media_type.endswith("javascript"):
        media_type += "; charset=utf-8"
    return StaticFile(body, gzip.compress(body, 9, mtime=0), media_type)
