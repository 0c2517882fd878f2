"""How often one key is given answers again: they cost no fare and no slot, so nothing else holds a client back that asks on."""

import time
from collections import OrderedDict
from collections.abc import Callable

from gateway.limits.refusals import RateExceeded

# A batch that is begun anew gets all that is kept of it in half a minute.
PER_MINUTE = 600
BURST = 100
KEYS_MAX = 10_000


class Replays:
    """GCRA, for this gateway alone: `due` is when a key's burst would be whole again."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._due: OrderedDict[str, float] = OrderedDict()
        self.given = 0

    def take(self, key: str) -> None:
        """Raises: RateExceeded."""
        interval, now = 60 / PER_MINUTE, self._now()
        due = max(now, self._due.get(key, now)) + interval
        early = due - interval * BURST - now
        if early > 0:
            raise RateExceeded("key", PER_MINUTE, round(early * 1000))
        self._due[key] = due
        self._due.move_to_end(key)
        if len(self._due) > KEYS_MAX:
            self._due.popitem(last=False)
        self.given += 1
