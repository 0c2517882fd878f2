"""Who asks: the key in the request, looked up in the process's cache first."""

from gateway.access.addresses import client_address
from gateway.access.caller import Caller, refusal
from gateway.api.exchange import Exchange
from gateway.errors import Refusal
from gateway.wiring import House


async def identify(house: House, exchange: Exchange, seconds_old: float | None = None) -> Caller:
    """As known at most `seconds_old` ago (None: at any time, when the gate checks it). Raises: Refusal (401), the keyring's."""
    token = _token(exchange)
    peer = exchange.scope["client"][0] if exchange.scope.get("client") else ""
    exchange.address = client_address(peer, _forwarded_for(exchange, house), house.trusted_proxies)
    if seconds_old is None and (known := house.keyring.peek(token)) is not None:
        return known
    return await house.keyring.caller(token, exchange.address, seconds_old=seconds_old)


async def reload(house: House, caller: Caller) -> Caller:
    """The caller as PostgreSQL has it now."""
    return await house.keyring.reload(caller)


def check(house: House, exchange: Exchange, caller: Caller, model: str) -> None:
    """Raises: what makes this key unusable, for this model, from this address, now."""
    refusal(caller, model, exchange.address, house.clock.now_ms())


def _forwarded_for(exchange: Exchange, house: House) -> bytes | None:
    """Each proxy may add a line of its own: all of them are one list (RFC 9110, 5.3), in which a client's own stands first."""
    if not house.trusted_proxies:
        return None
    return b",".join([value for name, value in exchange.scope["headers"] if name == b"x-forwarded-for"]) or None


def _token(exchange: Exchange) -> str:
    given = exchange.headers.get(b"authorization")
    if given is None:
        given = exchange.headers.get(b"x-api-key")
        if given is None:
            raise Refusal(
                401, "No API key was sent. Send it as a header: Authorization: Bearer fare_live_...", code="invalid_api_key"
            )
        return given.decode("latin-1").strip()
    scheme, _, token = given.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Refusal(401, "The Authorization header must read: Bearer fare_live_...", code="invalid_api_key")
    return token.strip()
