"""Replicas added, drained and removed while two gateways serve: nobody's call fails, and every gateway has the same states."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from gateway.commands import backends
from tests.journeys.conftest import MODEL
from tests.support.crowd import Reply, call
from tests.support.engine_fixture import StandInEngine, start_stand_in_engine
from tests.support.gateway import PEPPER, BuildTown, Customer, Running, Town, wait_for


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, StandInEngine]]:
    started = {name: start_stand_in_engine(model=MODEL) for name in ("a", "b", "c")}
    yield started
    for engine in started.values():
        engine.kill()


@pytest.fixture(scope="module")
def estate(build_town: BuildTown, engines: dict[str, StandInEngine]) -> Iterator[Town]:
    with build_town("\n".join(engines[name].fleet_entry(name, slots=4) for name in "ab")) as built:
        yield built


@pytest.fixture(scope="module")
def gateways(estate: Town) -> list[Running]:
    return [estate.gateway(), estate.gateway()]


@pytest.fixture
def run(estate: Town, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`run("drain", "a")`: what `faregate backends` answers, as JSON; `code` is the exit code that it has to have."""
    monkeypatch.setenv("DATABASE_URL", estate.database_url)
    monkeypatch.setenv("REDIS_URL", estate.redis_url)
    monkeypatch.setenv("FAREGATE_KEY_PEPPER", PEPPER)

    def typed(*words: str, code: int = 0) -> Any:
        result = CliRunner().invoke(backends.app, [*words, "--json"])
        assert result.exit_code == code, (words, result.output, result.exception)
        return json.loads(result.stdout) if code == 0 else result.output

    return typed


class Crowd:
    """Calls that go on while the block runs, `at_once` at each gateway."""

    def __init__(self, gateways: list[Running], customer: Customer, at_once: int = 4, body: str = '{"delay_ms": 30}') -> None:
        self._gateways, self._customer, self._at_once = gateways, customer, at_once
        self._body = {"model": MODEL, "messages": [{"role": "user", "content": f"@engine {body}"}]}
        self.replies: list[Reply] = []
        self._over = False

    async def __aenter__(self) -> "Crowd":
        self._callers = [
            asyncio.create_task(self._call(gateway.port)) for gateway in self._gateways for _ in range(self._at_once)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        await asyncio.gather(*self._callers)

    async def _call(self, port: int) -> None:
        while not self._over:
            self.replies.append(await call(port, self._customer, self._body))


def states(run: Any) -> dict[str, str]:
    return {one["id"]: one["state"] for one in run("list")}


def all_are_well(run: Any, *names: str, gateways: int = 2) -> bool:
    shown = {one["id"]: one for one in run("list")}
    return all(name in shown and shown[name]["state"] == "ready" and shown[name]["well"] == gateways for name in names)


async def test_a_replica_is_drained_under_load_without_one_error(
    gateways: list[Running], estate: Town, engines: dict[str, StandInEngine], run: Any
) -> None:
    customer = estate.key()
    await asyncio.to_thread(wait_for, lambda: all_are_well(run, "a", "b"))
    async with Crowd(gateways, customer) as crowd:
        await asyncio.to_thread(engines["a"].wait_for, lambda journal: len(journal["requests"]) > 5)
        began = time.monotonic()
        assert (await asyncio.to_thread(run, "drain", "a", "--wait", "--within", "10"))["state"] == "draining"
        assert time.monotonic() - began < 3
        journal = engines["a"].journal()
        served, answered = len(journal["requests"]), len(crowd.replies)
        assert journal["running"] == 0
        await asyncio.sleep(0.5)
        assert len(engines["a"].journal()["requests"]) == served
        assert len(crowd.replies) > answered
        shown = {one["id"]: one for one in await asyncio.to_thread(run, "list")}
        assert (shown["a"]["state"], shown["a"]["running"]) == ("draining", 0)
        await asyncio.to_thread(run, "undrain", "a")
        await asyncio.to_thread(engines["a"].wait_for, lambda journal: len(journal["requests"]) > served)
    assert {reply.status for reply in crowd.replies} == {200}
    assert len(crowd.replies) > 20


async def test_what_runs_on_a_drained_replica_finishes_and_is_waited_for(gateways: list[Running], estate: Town, run: Any) -> None:
    customer = estate.key()
    await asyncio.to_thread(wait_for, lambda: all_are_well(run, "a", "b"))
    body = {"model": MODEL, "messages": [{"role": "user", "content": '@engine {"chunks": 30, "pace_ms": 50}'}], "stream": True}
    streams = [asyncio.create_task(call(gateways[0].port, customer, body)) for _ in range(6)]
    await asyncio.sleep(0.5)
    began = time.monotonic()
    refused = await asyncio.to_thread(lambda: run("drain", "b", "--wait", "--within", "0.4", code=1))
    assert "still run on b" in refused
    await asyncio.to_thread(run, "drain", "b", "--wait", "--within", "10")
    assert 0.5 < time.monotonic() - began < 5
    replies = await asyncio.gather(*streams)
    assert all(reply.status == 200 and reply.whole and b"[DONE]" in reply.body for reply in replies)
    await asyncio.to_thread(run, "undrain", "b")


async def test_all_drained_is_an_answer_and_not_a_wait(gateways: list[Running], estate: Town, run: Any) -> None:
    customer = estate.key()
    for name in ("a", "b"):
        await asyncio.to_thread(run, "drain", name, "--wait", "--within", "10")
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    assert [(await call(gateway.port, customer, body)).status for gateway in gateways] == [503, 503]
    for name in ("a", "b"):
        await asyncio.to_thread(run, "undrain", name)
    await asyncio.to_thread(wait_for, lambda: all_are_well(run, "a", "b"))
    assert [(await call(gateway.port, customer, body)).status for gateway in gateways] == [200, 200]


async def test_a_replica_is_added_serves_and_is_removed(
    gateways: list[Running], estate: Town, engines: dict[str, StandInEngine], run: Any
) -> None:
    customer, spec = estate.key(), ("--model", MODEL, "--url", engines["c"].url, "--slots", "4")
    async with Crowd(gateways, customer) as crowd:
        made = await asyncio.to_thread(run, "add", "c", *spec)
        assert (made["state"], made["origin"]) == ("starting", "added")
        await asyncio.to_thread(engines["c"].wait_for, lambda journal: len(journal["requests"]) > 3)
        await asyncio.to_thread(wait_for, lambda: states(run)["c"] == "ready")
        assert "already" in await asyncio.to_thread(lambda: run("add", "c", *spec, code=1))
        await asyncio.to_thread(run, "remove", "c")
        await asyncio.sleep(1.0)
        served = len(engines["c"].journal()["requests"])
        await asyncio.sleep(0.4)
        assert len(engines["c"].journal()["requests"]) == served
    assert {reply.status for reply in crowd.replies} == {200}
    assert "c" not in await asyncio.to_thread(states, run)
    await asyncio.to_thread(wait_for, lambda: all('replica="c"' not in gateway.metrics() for gateway in gateways))
    with estate.record() as connection:
        found = connection.execute(text("SELECT actor, action FROM audit_entries WHERE subject = 'c' ORDER BY id")).all()
    assert [action for _, action in found] == ["replica.come", "replica.well", "replica.leave"]
    assert [actor.partition(":")[0] for actor, _ in found] == ["cli", "gateway", "cli"]


def test_what_is_not_there_or_not_ours_is_refused_in_a_line(gateways: list[Running], run: Any) -> None:
    assert "in the fleet file" in run("remove", "a", code=1)
    assert "no replica 'z'" in run("drain", "z", code=1)
    assert "it is ready" in run("undrain", "a", code=1)
    assert "leave out /v1" in run("add", "z", "--model", MODEL, "--url", "http://127.0.0.1:1/v1", "--slots", "1", code=1)


def test_a_gateway_that_starts_knows_what_is_drained_and_sends_it_nothing(
    gateways: list[Running], estate: Town, engines: dict[str, StandInEngine], run: Any
) -> None:
    wait_for(lambda: all_are_well(run, "a", "b"))
    run("drain", "a", "--wait", "--within", "10")
    engines["a"].reset_journal()
    third = estate.gateway(gateway_id="third")
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    customer = estate.key()
    assert [asyncio.run(call(third.port, customer, body)).status for _ in range(4)] == [200] * 4
    assert engines["a"].journal()["requests"] == []
    assert third.stop() == 0
    run("undrain", "a")


def test_a_dead_engine_is_broken_for_all_and_ready_again(
    gateways: list[Running], engines: dict[str, StandInEngine], run: Any
) -> None:
    wait_for(lambda: all_are_well(run, "a", "b"))
    port = engines["b"].port
    engines["b"].kill()
    wait_for(lambda: states(run)["b"] == "broken", 10)
    engines["b"] = start_stand_in_engine(port=port, model=MODEL)
    wait_for(lambda: all_are_well(run, "a", "b"), 10)
