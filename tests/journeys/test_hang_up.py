"""Client gone, GPU free: a hang-up at any stage reaches the engine within 200 ms and leaves nothing taken."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town, town, wait_for
from tests.support.stream import open_holds, settled, taken_slots

PROMISED_NS = 200_000_000


def ask(gateway: Running, customer: Customer, script: dict[str, Any], *, stream: bool) -> socket.socket:
    """A request sent on a socket of its own, to be hung up."""
    content = "@engine " + json.dumps(script)
    body = json.dumps({"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": content}]}).encode()
    client = socket.create_connection(("127.0.0.1", gateway.port), timeout=10)
    head = f"authorization: Bearer {customer.token}\r\ncontent-length: {len(body)}\r\n\r\n"
    client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n" + head.encode() + body)
    return client


def hang_up(client: socket.socket) -> int:
    """Returns when, on the clock that the engine's journal uses."""
    at = time.monotonic_ns()
    client.close()
    return at


def nothing_is_taken(faregate: Town) -> bool:
    return open_holds(faregate.redis_url) == 0 and taken_slots(faregate.redis_url) == 0


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
    faregate: Town, engine: StandInEngine, script: dict[str, Any], stream: bool, reason: str
) -> None:
    gateway, customer = faregate.gateway(), faregate.key("free")
    client = ask(gateway, customer, script, stream=stream)
    engine.wait_for(lambda journal: journal["running"] == 1)
    if reason == "left_after_output":
        while b"tok" not in client.recv(65536):
            pass
    time.sleep(0.1)
    at = hang_up(client)
    [request] = engine.wait_for(lambda journal: journal["running"] == 0)["requests"]
    assert 0 <= request["aborted_ns"] - at < PROMISED_NS
    wait_for(lambda: nothing_is_taken(faregate))
    [event] = settled(faregate.redis_url)
    assert (event.verdict, event.reason) == ("posted" if reason == "left_after_output" else "voided", reason)


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
