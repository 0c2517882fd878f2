"""Log lines in JSON, written in batches so that a call pays a few microseconds for its own."""

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

# Lines wait at most this long, or until this many wait.
FLUSH_SECONDS = 0.1
FLUSH_LINES = 500
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Log:
    """JSON lines to a file descriptor. Never holds a prompt, an answer, a key or a secret: callers pass named facts only."""

    def __init__(self, level: str = "info", descriptor: int = 1, **always: str) -> None:
        self._least = _LEVELS[level]
        self._descriptor = descriptor
        self._always = always
        self._waiting: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None

    def debug(self, event: str, **facts: Any) -> None:
        self._line("debug", event, facts)

    def info(self, event: str, **facts: Any) -> None:
        self._line("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        self._line("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        self._line("error", event, facts)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._waiting = self._waiting, []
        data = memoryview(b"".join(lines))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _line(self, level: str, event: str, facts: Mapping[str, Any]) -> None:
        if _LEVELS[level] < self._least:
            return
        record = {"at": datetime.now(UTC), "level": level, "event": event, **self._always, **facts}
        self._waiting.append(orjson.dumps(record, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z))
        if len(self._waiting) >= FLUSH_LINES or level == "error":
            self.flush()
        elif self._timer is None:
            self._schedule()

    def _schedule(self) -> None:
        try:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        except RuntimeError:  # outside a loop (start-up, CLI) there is nobody to flush later
            self.flush()
