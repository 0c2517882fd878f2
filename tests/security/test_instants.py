"""Things that happen in the same instant, and addresses that are spelled in two ways."""

import asyncio

import pytest

from gateway.access.addresses import client_address, networks
from gateway.drain import Drain


async def test_a_drain_whose_last_call_ends_as_its_time_is_over_cuts_nothing_and_fails_nothing() -> None:
    """It asked asyncio to wait for nobody, which raises: the settles of that gateway were then never flushed."""
    drain = Drain()
    leave = asyncio.Event()

    async def call() -> None:
        with drain:
            await leave.wait()

    running = asyncio.create_task(call())
    await asyncio.sleep(0)
    finishing = asyncio.create_task(drain.finished(0.05))
    asyncio.get_running_loop().call_later(0.04, leave.set)
    asyncio.get_running_loop().call_later(0.04, _hold_the_loop)
    assert await finishing == 0
    await running


def _hold_the_loop() -> None:
    """The next turn of the loop finds the call's end and the time-out both due."""
    import time

    time.sleep(0.03)


@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_a_trusted_proxy_is_known_in_both_spellings(peer: str) -> None:
    assert client_address(peer, b"198.51.100.1, 203.0.113.7", networks(["10.0.0.0/8"])) == "203.0.113.7"


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        (b"10.9.9.9, 203.0.113.7", "203.0.113.7"),  # what the client itself wrote stands left of it
        (b"203.0.113.7, 10.0.0.2", "203.0.113.7"),  # two proxies of ours
        (b"nonsense", "10.0.0.1"),
        (b"", "10.0.0.1"),
        (b",,,", "10.0.0.1"),
        (b"10.0.0.9", "10.0.0.9"),
    ],
)
def test_the_nearest_hop_that_is_no_proxy_of_ours_is_the_caller(forwarded: bytes, address: str) -> None:
    assert client_address("10.0.0.1", forwarded, networks(["10.0.0.0/8"])) == address
    assert client_address("192.0.2.1", forwarded, networks(["10.0.0.0/8"])) == "192.0.2.1"
