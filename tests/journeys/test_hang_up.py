"""Client gone, GPU free: a hang-up at any stage reaches the engine within 200 ms and leaves nothing taken."""

import time
from typing import Any

import pytest

from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town, wait_for
from tests.support.hang_up import ask, hang_up, nothing_is_taken
from tests.support.stream import settled

PROMISED_NS = 200_000_000


@pytest.mark.parametrize(
    ("script", "stream", "reason"),
    [
        ({"hang": True}, False, "left_before_output"),
        ({"hang": True}, True, "left_before_output"),
        ({"delay_ms": 5000}, False, "left_before_output"),
        ({"chunks": 1000, "pace_ms": 20}, True, "left_after_output"),
        ({"chunks": 5, "hang_after": 3}, True, "left_after_output"),
    ],
)
def test_a_hang_up_aborts_the_engine(
    shared: Town, standing_engine: StandInEngine, script: dict[str, Any], stream: bool, reason: str
) -> None:
    gateway, customer = shared.gateway(), shared.key()
    client = ask(gateway, customer, script, stream=stream)
    standing_engine.wait_for(lambda journal: journal["running"] == 1)
    if reason == "left_after_output":
        while b"tok" not in client.recv(65536):
            pass
    time.sleep(0.1)
    at = hang_up(client)
    [request] = standing_engine.wait_for(lambda journal: journal["running"] == 0)["requests"]
    assert 0 <= request["aborted_ns"] - at < PROMISED_NS
    wait_for(lambda: nothing_is_taken(shared))
    [event] = settled(shared.redis_url, customer)
    assert (event.verdict, event.reason) == ("posted" if reason == "left_after_output" else "voided", reason)
