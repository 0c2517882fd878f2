"""The images of one call, fetched while its client is watched and before a word has left: a failure still has a status."""

from gateway.api import images
from gateway.api.call import Call
from gateway.api.delivery import TotalTimedOut
from gateway.api.exchange import Exchange
from gateway.wiring import House


async def fetch_images(house: House, exchange: Exchange, call: Call, account: str) -> None:
    """Writes them into the call's body. Raises: ImageUnavailable, ClientGone, TotalTimedOut."""
    assert house.fetcher is not None, "a call with addresses is refused where none are fetched"
    seconds = house.settings.total_seconds
    bytes_left = house.settings.body_limit_bytes - call.body_bytes
    try:
        with exchange.watched(seconds):
            await images.put_in(call.addressed, house.fetcher, account, bytes_left)
    except TimeoutError:
        raise TotalTimedOut(seconds) from None
