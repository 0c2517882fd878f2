"""How often a password may be guessed: counted in Valkey for all gateways, by address, by email and by browser.

| counted | tries in 15 minutes | so that |
| --- | --- | --- |
| an address, of which nothing came | 30 | one machine can't try many passwords |
| an email, from browsers that never signed in with it | 10 | many machines can't try many passwords of one person |
| a browser that has signed in with this email before | 10 | the person can sign in while others guess at their password |
"""

import hashlib
import hmac
from collections.abc import Awaitable
from typing import Any, Protocol

WINDOW_SECONDS = 900
ADDRESS_TRIES, EMAIL_TRIES, DEVICE_TRIES = 30, 10, 10
# A browser is remembered for so long.
DEVICE_SECONDS = 365 * 24 * 3600
# A counter never is without its end: one that outlived its window would keep somebody out for ever.
_COUNT = """
local tries = redis.call('INCR', KEYS[1])
if tries == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return tries
"""
_TAKE_BACK = "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('DECR', KEYS[1]) end"


class TooManyTries(Exception):
    """Nobody is let try for a while."""


class Store(Protocol):
    """What is needed of the Valkey connection."""

    def call(self, *args: Any) -> Awaitable[Any]: ...


class SignInTries:
    """`pepper` keeps emails out of Valkey's keys, and browsers from naming themselves."""

    def __init__(self, store: Store, pepper: str) -> None:
        self._store, self._pepper = store, pepper

    async def count(self, email: str, address: str, device: str) -> None:
        """Of one try, before the password is looked at. Raises: TooManyTries, ValkeyUnavailable."""
        most_own = DEVICE_TRIES if self.is_known(email, device) else EMAIL_TRIES
        for name, most in (("address " + address, ADDRESS_TRIES), (self._own_name(email, device), most_own)):
            if int(await self._store.call("EVAL", _COUNT, 1, self._counter(name), WINDOW_SECONDS)) > most:
                raise TooManyTries(f"Too many tries. Wait {WINDOW_SECONDS // 60} minutes, then try again.")

    async def succeeded(self, email: str, address: str, device: str) -> None:
        """The email's or the browser's count begins anew; of the address's this one is taken back."""
        await self._store.call("EVAL", _TAKE_BACK, 1, self._counter("address " + address))
        await self._store.call("DEL", self._counter(self._own_name(email, device)))

    def device_of(self, email: str) -> str:
        """What a browser is given that has signed in with this email."""
        return self._mac("knows " + email.lower())

    def is_known(self, email: str, device: str) -> bool:
        return hmac.compare_digest(device.encode(), self.device_of(email).encode())

    def _own_name(self, email: str, device: str) -> str:
        return "device " + device if self.is_known(email, device) else "email " + email.lower()

    def _counter(self, name: str) -> str:
        return f"faregate:tries:{self._mac(name)}"

    def _mac(self, text: str) -> str:
        return hmac.digest(self._pepper.encode(), text.encode(), hashlib.sha256).hex()
