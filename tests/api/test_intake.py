"""Of one account's large bodies a few are read at once, and dear ones rest; small ones and other accounts' don't notice."""

import asyncio
import time

import pytest

from gateway.api.intake import AT_ONCE_PER_ACCOUNT, RESTS_TIMES, Intake, Turn, is_small


async def turns_of(intake: Intake, account: str, count: int) -> list[Turn]:
    async with asyncio.timeout(0.2):
        return [(await intake.turn(account)).__enter__() for _ in range(count)]


async def test_one_account_has_some_turns_and_another_has_its_own() -> None:
    intake = Intake()
    held = await turns_of(intake, "a", AT_ONCE_PER_ACCOUNT)
    with pytest.raises(TimeoutError):
        await turns_of(intake, "a", 1)
    await turns_of(intake, "b", AT_ONCE_PER_ACCOUNT)
    held[0].over()
    held[0].over()  # once is enough
    await turns_of(intake, "a", 1)
    with pytest.raises(TimeoutError):
        await turns_of(intake, "a", 1)


async def test_a_body_that_was_dear_to_read_keeps_its_turn_for_many_times_as_long() -> None:
    intake = Intake()
    for turn in await turns_of(intake, "a", AT_ONCE_PER_ACCOUNT):
        with turn:
            turn.arrived()
            time.sleep(0.01)  # noqa: ASYNC251 - what holds everybody up is the point
    began = time.monotonic()
    with await intake.turn("a"):
        assert time.monotonic() - began > 0.01 * (RESTS_TIMES - AT_ONCE_PER_ACCOUNT)


async def test_a_client_that_left_while_it_sent_has_its_turn_over_at_once() -> None:
    intake = Intake()
    for turn in await turns_of(intake, "a", AT_ONCE_PER_ACCOUNT):
        with turn:
            pass
    await turns_of(intake, "a", 1)


@pytest.mark.parametrize(
    ("headers", "small"),
    [
        ({b"content-length": b"524288"}, True),
        ({b"content-length": b"524289"}, False),
        ({}, False),
        ({b"content-length": b"100", b"content-encoding": b"gzip"}, False),
    ],
)
def test_what_is_said_of_a_body_tells_whether_it_is_small(headers: dict[bytes, bytes], small: bool) -> None:
    assert is_small(headers) is small
