"""Idempotency keys: the same request again gets the first one's answer, another request under the key is refused."""

import json
from dataclasses import dataclass
from typing import Any

from tests.support.stripe.faults import Fault
from tests.support.stripe.world import DAY, World

KEY_LENGTH_MAX = 255


@dataclass(frozen=True, slots=True)
class Kept:
    request: str
    request_id: str
    until: int
    status: int
    body: Any


class Answers:
    """Kept for a day. What was refused before anything was done is not kept, as with the real API."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._kept: dict[str, Kept] = {}

    def forget(self) -> None:
        self._kept.clear()

    def find(self, key: str | None, request: list[Any]) -> Kept | None:
        """Raises: Fault when the key belongs to another request."""
        if key is None:
            return None
        if not 0 < len(key) <= KEY_LENGTH_MAX:
            raise Fault(f"Idempotency keys are 1 to {KEY_LENGTH_MAX} characters.", kind="idempotency_error")
        kept = self._kept.get(key)
        if kept is None or kept.until <= self._world.now:
            return None
        if kept.request != json.dumps(request, sort_keys=True):
            text = (
                f"Keys for idempotent requests can only be used with the same parameters they were first used with. Key: '{key}'."
            )
            raise Fault(text, kind="idempotency_error")
        return kept

    def keep(self, key: str | None, request: list[Any], *, request_id: str, status: int, body: Any) -> None:
        if key is not None:
            text = json.dumps(request, sort_keys=True)
            self._kept[key] = Kept(text, request_id, self._world.now + DAY, status, body)
