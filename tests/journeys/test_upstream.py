"""Somebody else's API behind our own engines: off unless it is wanted, last in line, and never beyond its cap."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.journeys.conftest import MODEL
from tests.support.crowd import call
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import BuildTown, Customer, Running, Town, wait_for

BODY = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}


def upstream(engine: StandInEngine, *, more: str = "enabled = true", cap_cents: int = 100) -> str:
    """A cent for a thousand prompt tokens, ten for a thousand of output."""
    entry = engine.fleet_entry("rented", slots=4).replace('"vllm"', '"upstream"')
    prices = f"prompt_cents = 1000\ncompletion_cents = 10_000\ncap_cents_per_month = {cap_cents}\n"
    return f'{entry}engine_model = "vendor/model"\napi_key_env = "VENDOR_KEY"\n{prices}{more}\n'


@pytest.fixture
def vendor(stand_in_engine: Callable[..., StandInEngine], monkeypatch: pytest.MonkeyPatch) -> StandInEngine:
    monkeypatch.setenv("VENDOR_KEY", "sk-of-the-vendor")
    return stand_in_engine(model=MODEL)


async def statuses(gateway: Running, customer: Customer, count: int) -> list[int]:
    return [(await call(gateway.port, customer, BODY)).status for _ in range(count)]


def spent(estate: Town) -> int:
    with estate.record() as connection:
        found = connection.scalar(text("SELECT sum(microcents) FROM upstream_spending"))
    return int(found or 0)


async def test_it_is_asked_only_when_no_engine_of_ours_is_well_and_with_its_own_key(
    build_town: BuildTown, vendor: StandInEngine, stand_in_engine: Callable[..., StandInEngine]
) -> None:
    own = stand_in_engine(model=MODEL)
    with build_town(upstream(vendor) + own.fleet_entry("own")) as estate:
        gateway, customer = estate.gateway(), estate.key()
        assert await statuses(gateway, customer, 10) == [200] * 10
        assert vendor.journal()["requests"] == []
        own.kill()
        assert await statuses(gateway, customer, 5) == [200] * 5
        asked = vendor.journal()["requests"]
        assert len(asked) == 5
        assert asked[0]["headers"]["authorization"] == "Bearer sk-of-the-vendor"
        assert asked[0]["body"]["model"] == "vendor/model"
        assert "sk-of-the-vendor" not in gateway.log.read_text()


async def test_no_call_is_sent_beyond_the_cap_whichever_gateway_spent(build_town: BuildTown, vendor: StandInEngine) -> None:
    with build_town(upstream(vendor, cap_cents=1)) as estate:
        one, other, customer = estate.gateway(), estate.gateway(), estate.key()
        wait_for(lambda: "replica_state" in one.log.read_text())
        first = (await call(one.port, customer, BODY)).status
        assert first == 200
        wait_for(lambda: spent(estate) > 0)
        each = spent(estate)
        with estate.record() as connection:
            connection.execute(text("UPDATE upstream_spending SET microcents = 1000000 - 1"))
        wait_for(lambda: spent(estate) >= 999_999)
        assert await statuses(other, customer, 1) == [200]
        wait_for(lambda: spent(estate) == 999_999 + each)
        served = len(vendor.journal()["requests"])
        await asyncio.sleep(1.5)  # the one hears of what the other has spent
        assert [(await call(gateway.port, customer, BODY)).status for gateway in (one, other)] == [503, 503]
        assert len(vendor.journal()["requests"]) == served


async def test_it_is_off_until_it_is_said_to_be_on(build_town: BuildTown, vendor: StandInEngine, tmp_path: Path) -> None:
    own = vendor.fleet_entry("own").replace(MODEL, "qwen3-8b")
    with build_town(upstream(vendor, more="") + own) as estate:
        gateway, customer = estate.gateway(), estate.key()
        assert await statuses(gateway, customer, 1) == [404]
        assert vendor.journal()["requests"] == []
