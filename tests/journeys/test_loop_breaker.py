"""Clients that retry for ever meet a 400, at which all of them stop."""

from collections.abc import Iterator
from typing import Any

import httpx2
import orjson
import pytest

from tests.journeys.conftest import MODEL
from tests.security.attacker import CHAT, steered
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town


def send(gateway: Running, customer: Customer, *, stream: bool = False, **script: Any) -> httpx2.Response:
    body = orjson.dumps({"model": MODEL, "stream": stream, "messages": steered(**script)})
    return httpx2.post(gateway.url + CHAT, content=body, headers=customer.headers, timeout=10)


@pytest.fixture(scope="module")
def gateway(standing_town: Town) -> Iterator[Running]:
    running = standing_town.gateway(loop_errors=3)
    yield running
    running.kill()


def test_a_client_that_sends_a_failing_request_for_ever_is_stopped(
    gateway: Running, standing_town: Town, standing_engine: StandInEngine
) -> None:
    """anomalyco/opencode#45315: 2,517 requests before it was killed; Codex sends 30 for one 5xx."""
    customer, other = standing_town.key(), standing_town.key()
    for _ in range(3):
        assert send(gateway, customer, status=400).status_code == 400
    before = len(standing_engine.journal()["requests"])
    stopped = send(gateway, customer, status=400)
    assert (stopped.status_code, stopped.json()["error"]["code"]) == (400, "repeated_request")
    assert "3 times in a row" in stopped.json()["error"]["message"]
    assert stopped.headers["x-should-retry"] == "false"
    assert len(standing_engine.journal()["requests"]) == before
    assert send(gateway, customer, chunks=2).status_code == 200
    assert send(gateway, other, status=400).json()["error"]["code"] != "repeated_request"


def test_a_stream_that_breaks_again_and_again_counts_although_its_status_was_200(gateway: Running, standing_town: Town) -> None:
    customer = standing_town.key()
    for _ in range(3):
        assert send(gateway, customer, stream=True, error_after=2, pace_ms=20).status_code == 200
    assert send(gateway, customer, stream=True, error_after=2, pace_ms=20).json()["error"]["code"] == "repeated_request"


def test_a_spent_quota_is_said_as_often_as_it_is_asked(gateway: Running, standing_town: Town) -> None:
    """It ends in an instant, at midnight or with a larger plan; a 400 that outlived it would refuse who may call again."""
    customer = standing_town.key(standing_town.plan("one", quota_per_day=1).code)
    assert [send(gateway, customer).status_code for _ in range(6)] == [200, *[429] * 5]


def test_unknown_keys_have_no_row(gateway: Running) -> None:
    headers = {"authorization": "Bearer nonsense"}
    answers = [httpx2.post(gateway.url + CHAT, content=b"{}", headers=headers).status_code for _ in range(5)]
    assert answers == [401] * 5
