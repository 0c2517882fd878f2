"""Paths as clients write them, brought to the one that we serve: `//v1`, a doubled or missing `/v1`, a slash at the end."""

from collections.abc import Collection
from itertools import dropwhile
from urllib.parse import unquote

from gateway.api.endpoints import PAID

# What any client may ask without a key.
OPEN = frozenset({"/healthz", "/readyz"})
PAGES = frozenset({"/v1/models", "/v1/key"})
# A model's name follows it, and may have slashes.
MODEL = "/v1/models/"
VERSION = "v1"
_SERVED = frozenset({*PAID, *OPEN, *PAGES})


def mended(target: str) -> str:
    """The path that is served under `target`, as it came on the wire; or `target`, which then finds nothing.

    Only what clients are known to build is mended. Encoded letters and dots are not: another reader of the same line, a proxy
    that guards some paths, could take them for another path.
    """
    segments = [segment for segment in target.split("/") if segment]
    if "%" in target or any(segment in (".", "..") for segment in segments):
        return _model(segments) or target
    plain = "/" + "/".join(segments)
    if plain in _SERVED:
        return plain
    found = _versioned(segments)
    return found if found in _SERVED else _model(segments) or target


def _versioned(segments: list[str]) -> str:
    return "/".join(["", VERSION, *dropwhile(VERSION.__eq__, segments)])


def _model(segments: list[str]) -> str | None:
    """`/v1/models/meta%2Fllama`: the one place where clients encode a slash."""
    versioned = _versioned(segments)
    if not versioned.startswith(MODEL):
        return None
    name = unquote(versioned.removeprefix(MODEL))
    return None if is_confusing(name.split("/")) else MODEL + name


def is_confusing(segments: Collection[str]) -> bool:
    return any(segment in ("", ".", "..") or not segment.isprintable() for segment in segments)


def may_be_looked_at(path: str) -> bool:
    """Whether a key gets something there, so that HEAD says so without one: clients try an address that way."""
    return path == "/" or path in PAGES or path.startswith(MODEL)
