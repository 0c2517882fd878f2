"""How many unknown keys an address may try: each one costs a query, so guessing is slowed down before the database."""

import time
from ipaddress import IPv6Address, ip_address

WINDOW_SECONDS = 10.0
TRIES = 50  # a whole team behind one address, starting at once after a gateway's restart
ADDRESSES = 50_000


class TooManyUnknownKeys(Exception):
    """The address has tried too many keys that don't exist; it may try again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many unknown API keys came from your address. Check the key, and try again in {seconds:.0f} s.")
        self.seconds = seconds


class Tries:
    """Look-ups by address in a fixed window; one that finds a key is given back."""

    def __init__(self, tries: int = TRIES, window_seconds: float = WINDOW_SECONDS) -> None:
        self._tries = tries
        self._window_seconds = window_seconds
        self._counts: dict[str, tuple[float, int]] = {}

    def take(self, address: str) -> None:
        """Raises: TooManyUnknownKeys."""
        now = time.monotonic()
        place = _place(address)
        since, count = self._counts.get(place, (now, 0))
        if now - since >= self._window_seconds:
            since, count = now, 0
        if count >= self._tries:
            raise TooManyUnknownKeys(max(1.0, self._window_seconds - (now - since)))
        self._counts.pop(place, None)
        self._counts[place] = (since, count + 1)
        if len(self._counts) > ADDRESSES:
            del self._counts[next(iter(self._counts))]

    def give_back(self, address: str) -> None:
        place = _place(address)
        if place in self._counts:
            since, count = self._counts[place]
            self._counts[place] = (since, max(0, count - 1))


def _place(address: str) -> str:
    """An IPv6 caller owns a whole /64, so that is what is counted."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(int(parsed) >> 64)
    return address
