"""A recorded stream as its events: names and decoded data, in order."""

import json
from dataclasses import dataclass
from typing import Any

from gateway.api.sse import payload, split, whole_frames


@dataclass(frozen=True, slots=True)
class Event:
    """`name` is its `event:` line, "" without one; `data` is decoded, except the word [DONE]."""

    name: str
    data: Any


def events(body: bytes) -> list[Event]:
    """Raises ValueError where the last frame has no end."""
    whole, rest = whole_frames(body)
    if rest.strip():
        raise ValueError(f"the stream ends inside a frame: {rest[:80]!r}")
    found = []
    for frame in split(whole):
        data = payload(frame)
        if data is not None:
            names = [line[6:].strip().decode() for line in frame.splitlines() if line.startswith(b"event:")]
            found.append(Event(names[0] if names else "", "[DONE]" if data == b"[DONE]" else json.loads(data)))
    return found
