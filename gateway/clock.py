"""The one clock: UTC milliseconds in step with Valkey's, so that every gateway agrees on the day."""

import time

import uuid_utils

DAY_MS = 86_400_000
# A reading that took longer on the wire than this says too little about the server's time to be used.
ROUND_TRIP_MAX_MS = 50


class Clock:
    """Milliseconds since 1970-01-01 UTC, in step with the server's `TIME`, moved by `offset_ms` (tests only)."""

    def __init__(self, offset_ms: int = 0) -> None:
        self.offset_ms = offset_ms
        self._behind_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._behind_ms + self.offset_ms

    def synchronise(self, server_ms: int, rtt_ms: int) -> None:
        """`server_ms` is the server's own time (without `offset_ms`), read `rtt_ms` after it was asked for."""
        if rtt_ms <= ROUND_TRIP_MAX_MS:
            self._behind_ms = server_ms + rtt_ms // 2 - time.time_ns() // 1_000_000

    def new_request_id(self) -> str:
        """UUIDv7 (RFC 9562) of now: its first 48 bits are the milliseconds that decide the day charged."""
        return str(uuid_utils.uuid7(nanoseconds=self.now_ms() * 1_000_000))

    def today(self) -> int:
        return day_of(self.now_ms())

    def midnight_ms(self) -> int:
        """When the day's quota starts anew."""
        return (self.today() + 1) * DAY_MS


def day_of(ms: int) -> int:
    """Days since 1970-01-01 UTC."""
    return ms // DAY_MS


def day_of_request(request_id: str) -> int:
    """The day that a request is charged to, from its UUIDv7."""
    return int(request_id[:8] + request_id[9:13], 16) // DAY_MS
