"""Replicas behind names, asked of a real name server: they come and go, and no fault of names empties the fleet."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.discovery import Found, Known, after_answer, discover
from backends.fleet import Fleet, InvalidFleet
from backends.roster import Roster
from tests.support.names import NameServer, name_server

ENGINES = ("engines.local", "A")
BY_ADDRESS = 'discover = "dns+a://engines.local:8000"'
BY_SERVICE = 'discover = "dns+srv://_http._tcp.engines.local"'


def fleet(folder: Path, discover_: str, names: NameServer | None) -> Fleet:
    where = f'nameserver = "{names.address}"\n' if names else ""
    path = folder / "fleet.toml"
    path.write_text(f'{where}[[replica]]\nid = "g"\nmodel = "m"\nengine = "vllm"\nslots = 4\n{discover_}\n')
    return Fleet.load(path)


@asynccontextmanager
async def discovering(roster: Roster) -> AsyncIterator[None]:
    task = asyncio.create_task(discover(roster, every_seconds=0.05, gone_after=0.3))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - what it waits for is not ours to announce it
            await asyncio.sleep(0.01)


def urls(roster: Roster) -> dict[str, str]:
    return {one.id: one.url for one in roster.open("m")}


async def test_replicas_behind_a_name_come_and_go(tmp_path: Path) -> None:
    async with name_server({ENGINES: ["10.0.0.1", "10.0.0.2"]}) as names:
        roster = Roster(fleet(tmp_path, BY_ADDRESS, names))
        async with discovering(roster):
            await until(lambda: set(urls(roster)) == {"g-10.0.0.1", "g-10.0.0.2"})
            assert urls(roster)["g-10.0.0.1"] == "http://10.0.0.1:8000"
            names.records[ENGINES] = ["10.0.0.2", "10.0.0.3"]
            await until(lambda: "g-10.0.0.3" in urls(roster))
            await until(lambda: set(urls(roster)) == {"g-10.0.0.2", "g-10.0.0.3"})


async def test_services_bring_their_ports_and_keep_their_names(tmp_path: Path) -> None:
    service = ("_http._tcp.engines.local", "SRV")
    async with name_server(
        {
            service: ["0 0 8000 vllm-0.engines.local.", "0 0 8001 vllm-1.engines.local."],
            ("vllm-0.engines.local", "A"): ["10.0.0.1"],
            ("vllm-1.engines.local", "A"): ["10.0.0.2"],
        }
    ) as names:
        roster = Roster(fleet(tmp_path, BY_SERVICE, names))
        async with discovering(roster):
            there = {"g-vllm-0-8000": "http://10.0.0.1:8000", "g-vllm-1-8001": "http://10.0.0.2:8001"}
            await until(lambda: urls(roster) == there)


@pytest.mark.parametrize("fault", ["servfail", "garbage", "nxdomain", "nobody", "silent"])
async def test_no_fault_of_names_empties_the_fleet(tmp_path: Path, fault: str) -> None:
    async with name_server({ENGINES: ["10.0.0.1", "10.0.0.2"]}) as names:
        roster = Roster(fleet(tmp_path, BY_ADDRESS, names))
        async with discovering(roster):
            await until(lambda: len(urls(roster)) == 2)
            if fault == "nxdomain":
                del names.records[ENGINES]
            elif fault == "nobody":
                names.records[ENGINES] = []
            else:
                names.mode = fault
            asked = names.asked
            await until(lambda: names.asked > asked)
            await asyncio.sleep(0.8)
            assert len(urls(roster)) == 2
            names.mode, names.records[ENGINES] = "well", ["10.0.0.9"]
            await until(lambda: "g-10.0.0.9" in urls(roster))


def test_one_answer_without_an_address_is_not_its_end() -> None:
    a, b = Found("a", "a:1"), Found("b", "b:1")
    known = after_answer({}, [a, b], 0.0)
    known = after_answer(known, [a], 5.0)
    assert set(known) == {a, b}
    assert set(after_answer(known, [a, b], 10.0)) == {a, b}
    assert set(after_answer(known, [a], 12.0)) == {a}


@given(st.lists(st.tuples(st.floats(0, 20), st.frozensets(st.sampled_from("abc"), max_size=3)), max_size=30))
def test_whatever_is_answered_those_of_the_last_answer_are_there(answers: list[tuple[float, frozenset[str]]]) -> None:
    known: Known = {}
    now = 0.0
    for passed, names in answers:
        now += passed
        before = set(known)
        found = {Found(name, f"{name}:1") for name in names}
        known = after_answer(known, found, now)
        assert found <= set(known) <= before | found
        assert not (before and not known)


@pytest.mark.parametrize(
    "wrong", ['discover = "dns+a://engines"', 'discover = "http://engines:80"', 'discover = "dns+srv://a:1"']
)
def test_what_is_no_name_is_refused_with_its_line(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InvalidFleet, match=r"line 6: replica g: discover: it is dns\+a"):
        fleet(tmp_path, wrong, None)
