"""Whole calls of every price and end, a gateway killed among them: the nightly proof finds nothing, statements say the same."""

import asyncio
import csv
import io
import os
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from gateway.commands import ledger, usage
from gateway.nightly import HOUR
from tests.journeys.conftest import MODEL
from tests.support.crowd import call, crowd
from tests.support.gateway import Customer, Town, wait_for
from tests.support.ledger import rows

CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}


def said(text: str) -> dict[str, Any]:
    return {**CHAT, "messages": [{"role": "user", "content": text}]}


def hours_to(hour: int) -> int:
    """What a clock is off, in ms, that shows this hour, today."""
    now = datetime.now(UTC)
    return round((now.replace(hour=hour, minute=5) - now) / timedelta(milliseconds=1))


def test_the_night_after_a_day_of_calls_finds_nothing(faregate: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    faregate.plan("day", quota_per_day=30)
    customer = faregate.key("day")
    asyncio.run(a_day(faregate, customer))
    gateway = faregate.gateway(lease_ms=1000)
    by_day = faregate.worker(clock_offset_ms=hours_to(HOUR - 1))
    wait_for(lambda: len(rows(faregate.database_url, customer)) == 8, 15)
    assert by_day.stop() == 0

    worker = faregate.worker(clock_offset_ms=hours_to(HOUR))
    wait_for(lambda: "faregate_reconcile_differences 0.0" in gateway.metrics(), 15)
    wait_for(lambda: "faregate_ledger_waiting_seconds 0.0" in gateway.metrics())
    assert worker.stop() == 0
    [proof] = [line for line in worker.lines() if line["event"] == "reconciled"]
    assert (proof["days"] >= 1, proof["rows"]) == (True, 8)
    assert not [line for line in by_day.lines() if line["event"] == "reconciled"]

    for name, value in faregate.environment({}).items():
        monkeypatch.setitem(os.environ, name, value)
    now = orjson.loads(typed(ledger.app, "reconcile --json"))
    assert (now["findings"], now["counters"], now["rows"]) == ([], 2, len(rows(faregate.database_url, customer)))
    receipts = list(csv.DictReader(io.StringIO(typed(usage.app, f"export {customer.account_id} --by request"), newline="")))
    assert sorted((row["verdict"], int(row["fare"]), int(row["billed"])) for row in receipts) == [
        ("expired", 1, 0), ("posted", 1, 1), ("posted", 1, 1), ("posted", 2, 2), ("posted", 4, 4), ("posted", 4, 4),
        ("voided", 1, 0), ("voided", 3, 0),
    ]  # fmt: skip
    days = orjson.loads(typed(usage.app, f"export {customer.account_id} --format json"))
    assert sum(day["fares"] for day in days) == sum(int(row["billed"]) for row in receipts) == 12


async def a_day(faregate: Town, customer: Customer) -> None:
    """Answers, several at once, lists of prompts, a fault, a hang-up before output, one refused, and a gateway that dies."""
    gateway = faregate.gateway(lease_ms=1000)
    ports = [gateway.port]
    assert (await call(gateway.port, customer, CHAT)).status == 200
    assert (await call(gateway.port, customer, {**CHAT, "n": 4})).status == 200
    prompts = {"model": MODEL, "prompt": ["a", "b"], "n": 2}
    assert (await call(gateway.port, customer, prompts, path="/v1/completions")).headers["x-faregate-fare"] == "4"
    assert (await call(gateway.port, customer, {"model": MODEL, "prompt": ["a", "b"]}, path="/v1/completions")).status == 200
    assert (await call(gateway.port, customer, {**said('@engine {"status": 500}'), "n": 3})).status == 502
    assert (await call(gateway.port, customer, {**CHAT, "n": 99})).status == 400
    assert {reply.status for reply in await crowd(ports, customer, CHAT, 1)} == {200}
    running = asyncio.create_task(call(gateway.port, customer, said('@engine {"delay_ms": 60000}')))
    await asyncio.sleep(0.5)
    running.cancel()
    dying = asyncio.create_task(call(gateway.port, customer, said('@engine {"delay_ms": 60000}')))
    await asyncio.sleep(0.5)
    gateway.kill()
    await asyncio.wait([dying])
    assert dying.exception() is not None or dying.result().status != 200


def typed(app: Any, line: str) -> str:
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout
