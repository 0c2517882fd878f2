"""Client gone while it waits in line; and what many hang-ups leave behind."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town, town, wait_for
from tests.support.hang_up import ask, hang_up, nothing_is_taken
from tests.support.stream import open_holds, settled


@pytest.fixture
def narrow(database_url: str, valkey_url: str, tmp_path: Path, engine: StandInEngine) -> Iterator[Town]:
    """An installation whose engine takes one call at a time."""
    with town(database_url, valkey_url, tmp_path, engine.fleet_entry(slots=1)) as built:
        yield built


@pytest.mark.parametrize("stream", [False, True])
def test_a_hang_up_while_waiting_leaves_the_line(narrow: Town, engine: StandInEngine, stream: bool) -> None:
    gateway, customer = narrow.gateway(), narrow.key()
    first = ask(gateway, customer, {"hang": True}, stream=False)
    engine.wait_for(lambda journal: journal["running"] == 1)
    waiting = ask(gateway, customer, {}, stream=stream)
    wait_for(lambda: open_holds(narrow.redis_url) == 2)
    time.sleep(0.1)
    hang_up(waiting)
    wait_for(lambda: open_holds(narrow.redis_url) == 1, 0.5)
    hang_up(first)
    wait_for(lambda: nothing_is_taken(narrow))
    assert len(engine.journal()["requests"]) == 1
    assert {event.reason for event in settled(narrow.redis_url)} == {"left_before_output"}


def test_hang_ups_before_output_are_free_up_to_a_number_a_day(faregate: Town, engine: StandInEngine) -> None:
    """They burn GPU time: on Free the twenty-first of a day is billed."""
    faregate.plan("hasty", quota_per_day=60)
    gateway, customer = faregate.gateway(), faregate.key("hasty")
    for number in range(1, 23):
        client = ask(gateway, customer, {"hang": True}, stream=False)
        engine.wait_for(lambda journal, number=number: len(journal["requests"]) == number)  # type: ignore[misc]
        hang_up(client)
    wait_for(lambda: len(settled(faregate.redis_url)) == 22)
    verdicts = [event.verdict for event in settled(faregate.redis_url)]
    assert verdicts.count("posted") == 2
    assert verdicts.count("voided") == 20


def test_a_hundred_hang_ups_leave_nothing(faregate: Town, engine: StandInEngine) -> None:
    gateway, customer = faregate.gateway(), faregate.key()
    for number in range(100):
        client = ask(gateway, customer, {"chunks": 50, "pace_ms": 5}, stream=number % 2 == 0)
        time.sleep(0.001 * (number % 13))
        client.close()
    wait_for(lambda: engine.journal()["running"] == 0 and nothing_is_taken(faregate))
    assert "faregate_open_calls 0.0" in gateway.metrics()
