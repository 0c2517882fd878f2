"""What happened to each request of the stand-in engine, and when (CLOCK_MONOTONIC, comparable between processes here)."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

KEPT = 20_000


@dataclass(slots=True)
class Entry:
    """Times in ns, None for what did not happen. Finished: the engine was done with it. Aborted: the peer closed first."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    received_ns: int = field(default_factory=time.monotonic_ns)
    first_byte_ns: int | None = None
    finished_ns: int | None = None
    aborted_ns: int | None = None
    chunks: int = 0


class Journal:
    """Newest last; the oldest are forgotten beyond `KEPT`."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._numbers = 0
        self._running: set[int] = set()
        self._high_water = 0
        self.connections = 0

    def received(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Entry:
        self._numbers += 1
        entry = self._entries[self._numbers] = Entry(self._numbers, path, headers, body)
        self._running.add(entry.number)
        self._high_water = max(self._high_water, len(self._running))
        if len(self._entries) > KEPT:
            del self._entries[next(iter(self._entries))]
        return entry

    def finished(self, entry: Entry) -> None:
        entry.finished_ns = time.monotonic_ns()
        self._running.discard(entry.number)

    def aborted(self, entry: Entry) -> None:
        entry.aborted_ns = time.monotonic_ns()
        self._running.discard(entry.number)

    def reset(self) -> None:
        """Forgets what is over; what runs goes on being counted."""
        self._entries = {number: entry for number, entry in self._entries.items() if number in self._running}
        self._high_water = len(self._running)

    def as_json(self) -> dict[str, Any]:
        return {
            "requests": [asdict(entry) for entry in self._entries.values()],
            "running": len(self._running),
            "high_water": self._high_water,
            "connections": self.connections,
        }
