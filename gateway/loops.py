"""Requests that fail again and again, by key and body: who sends one for ever is found, at no cost to all others."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable

WINDOW_SECONDS = 120.0
# Keys with an error in the window, and bodies of one key: beyond them the oldest are let go. A failure costs about 200 bytes.
KEYS_MAX = 10_000
BODIES_MAX = 8


class RequestRepeated(Exception):
    """A key's request has failed so often in a row that it is not tried again for `seconds`."""

    def __init__(self, errors: int, seconds: int) -> None:
        super().__init__(f"failed {errors} times in a row")
        self.errors, self.seconds = errors, seconds


class _Row:
    """Errors in a row of one body."""

    __slots__ = ("errors", "since")

    def __init__(self, since: float) -> None:
        self.since, self.errors = since, 0


class Loops:
    """What each key's requests got, where that was an error. A body is hashed only when it, or another of the key's, has failed
    within the window: a key without errors costs two look-ups."""

    def __init__(self, errors_max: int, now: Callable[[], float] = time.monotonic) -> None:
        self._errors_max, self._now = errors_max, now
        self._keys: OrderedDict[str, OrderedDict[bytes, _Row]] = OrderedDict()

    def check(self, key: str, body: bytes) -> None:
        """Raises: RequestRepeated."""
        if key not in self._keys:
            return
        rows = self._rows(key)
        row = None if rows is None else rows.get(_digest(body))
        if row is not None and row.errors >= self._errors_max:
            raise RequestRepeated(row.errors, max(1, round(row.since + WINDOW_SECONDS - self._now())))

    def answered(self, key: str, body: bytes) -> None:
        """Success: evaluations send one body a thousand times on purpose."""
        rows = self._rows(key) if key in self._keys else None
        if rows is not None:
            rows.pop(_digest(body), None)
            self._drop_empty(key, rows)

    def failed(self, key: str, body: bytes) -> None:
        rows = self._rows(key)
        if rows is None:
            rows = self._keys[key] = OrderedDict()
        self._keys.move_to_end(key)
        digest = _digest(body)
        row = rows.setdefault(digest, _Row(self._now()))
        row.errors += 1
        rows.move_to_end(digest)
        if len(rows) > BODIES_MAX:
            rows.popitem(last=False)
        if len(self._keys) > KEYS_MAX:
            self._keys.popitem(last=False)

    def _rows(self, key: str) -> OrderedDict[bytes, _Row] | None:
        """The key's errors, those whose window is over left out."""
        rows = self._keys.get(key)
        if rows is None:
            return None
        over = self._now() - WINDOW_SECONDS
        for digest in [digest for digest, row in rows.items() if row.since <= over]:
            del rows[digest]
        return None if self._drop_empty(key, rows) else rows

    def _drop_empty(self, key: str, rows: OrderedDict[bytes, _Row]) -> bool:
        if not rows:
            del self._keys[key]
        return not rows


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()
