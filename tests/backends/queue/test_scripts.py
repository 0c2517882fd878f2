"""The scripts against the model: any order of calls, repeats, deaths and late comers gives the same slots, line and work."""

from collections import Counter
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.classes import CLASSES, DEFAULT_CLASSES, Classes, ClassRules
from backends.slots import grants_key, pool_keys, script_named, tombstone_key, try_keys
from tests.backends.queue.model import Asked, PoolModel
from tests.backends.queue.order import CLASS_STEP
from tests.support.services import ValkeyServer

POOL, DEPTH = "smol", 3
SCRIPTS = ("try", "acquire", "release", "keep", "lease", "sweep")
BEGAN = 1_767_225_600_000  # the scripts go by the clock that they are given
GATEWAYS = ("a", "b", "c")
REQUESTS = tuple(f"r{number}" for number in range(12))
PREFERENCES: tuple[list[tuple[str, int]], ...] = (
    [("one", 1)],
    [("one", 1), ("two", 2)],
    [("two", 2), ("one", 1)],
    [("two", 2)],
    [],
)
SLANTED = Classes.of(
    {
        "premium": ClassRules(reserved=1),
        "pro": ClassRules(floor_percent=50),
        "free": ClassRules(floor_percent=30, share_percent=34),
        "batch": ClassRules(floor_percent=0, share_percent=1),
    }
)

gateways, requests = st.sampled_from(GATEWAYS), st.sampled_from(REQUESTS)
tries = st.tuples(st.just("try_now"), requests, gateways, st.sampled_from(PREFERENCES))
acquires = st.tuples(st.just("acquire"), requests, gateways, st.sampled_from(PREFERENCES), st.booleans())
operations = st.one_of(
    st.tuples(st.just("lease"), gateways),
    tries,
    acquires,
    acquires,
    acquires,
    st.tuples(st.just("release"), requests, st.booleans(), st.sampled_from([-1, 0, 40, 5000])),
    st.tuples(st.just("release"), requests, st.just(False), st.sampled_from([40, 900])),
    st.tuples(st.just("keep"), requests),
    st.tuples(st.just("sweep"), gateways, st.booleans()),
    st.tuples(st.just("elapse"), st.sampled_from([1, 150, 700, 2700])),
)


class Driver:
    """Does each operation to the server and to the model, and compares. A request has its class and account by its number."""

    def __init__(self, client: Any, classes: Classes) -> None:
        client.flushall()
        self.client, self.model, self.classes = client, PoolModel(now=BEGAN, classes=classes), classes
        self.keys = pool_keys(POOL, GATEWAYS)
        self.scripts = {name: client.register_script(script_named(name).text) for name in SCRIPTS}
        for gateway in GATEWAYS:
            self.lease(gateway)

    def run(self, name: str, keys: list[str], arguments: list[Any]) -> Any:
        return self.scripts[name](keys=keys, args=[self.model.now, *arguments])

    def in_line(self, name: str, own: list[str], extra: list[Any], gateway: str) -> Any:
        return self.run(name, [*self.keys, *own], [gateway, " ".join(GATEWAYS), self.classes.packed, *extra])

    def elapse(self, ms: int) -> None:
        self.model.now += ms

    def lease(self, gateway: str) -> None:
        waiting, living, lost = self.run("lease", try_keys(POOL), [gateway, 5000])
        assert waiting == len(self.model.line)
        assert set(living) == self.model.lease(gateway, 5000)
        assert set(lost) == self.model.unclaimed(gateway)

    def asked(self, request: str, gateway: str, preference: list[tuple[str, int]]) -> Asked:
        number = REQUESTS.index(request)
        known = self.model.slots.get(request) or self.model.line.get(request)
        return Asked(
            request, known.gateway if known else gateway, number % len(CLASSES), f"acc{number % 7 % 3}", preference,
            estimate=(0, 100, 100, 3000)[number % 4], returned=known.returned if known else 0,
            arrival=known.arrival if known else 0, depth_max=DEPTH,
        )  # fmt: skip

    def try_now(self, request: str, gateway: str, preference: list[tuple[str, int]]) -> None:
        asked = self.asked(request, gateway, preference)
        triples = [word for name, cap in preference for word in (name, cap, 0)]
        kept = self.classes.kept_from(CLASSES[asked.rank])
        keys = [*try_keys(POOL), tombstone_key(POOL, request)]
        answer = self.run("try", keys, [asked.gateway, request, asked.rank, asked.account, kept, *triples])
        assert " ".join(answer) == self.model.try_now(asked)

    def acquire(self, request: str, gateway: str, preference: list[tuple[str, int]], gives_back: bool) -> None:
        asked = self.asked(request, gateway, preference)
        if gives_back and request in self.model.slots and asked.returned < 2:
            asked.returned += 1
        words = [request, asked.rank, asked.account, asked.estimate, asked.returned, asked.arrival, DEPTH, 60_000, 0]
        triples = [word for name, cap in preference for word in (name, cap, 0)]
        answer = self.in_line("acquire", [tombstone_key(POOL, request)], [*words, *triples], asked.gateway)
        said = f"held {answer[1]}" if answer[0] == "held" else answer[0]
        assert said == self.model.acquire(asked)
        if said == "waits":
            assert int(answer[1]) == self.model.line[request].arrival
            assert 1 <= int(answer[2]) <= len(self.model.line)

    def release(self, request: str, unsure: bool, worked: int) -> None:
        answer = self.in_line("release", [tombstone_key(POOL, request)], [request, int(unsure), worked], "a")
        assert answer == self.model.release(request, unsure, worked)

    def keep(self, request: str) -> None:
        self.in_line("keep", [], [request], "a")
        self.model.keep(request)

    def sweep(self, gateway: str, forgets: bool) -> None:
        model = self.model
        running = {} if forgets else {r: s for r, s in model.slots.items() if s.gateway == gateway and s.is_claimed}
        words = []
        for request, held in running.items():
            words += [request, f"{held.replica} {held.rank} {held.account} {held.estimate} {held.returned}"]
        self.in_line("sweep", [], ["0", *words], gateway)
        model.sweep(gateway, running)

    def compare(self) -> None:
        slots, counts, index = (
            self.client.hgetall(self.keys[0]),
            self.client.hgetall(self.keys[1]),
            self.client.zrange(self.keys[3], 0, -1),
        )
        model = self.model
        assert {r: s.split()[:2] for r, s in slots.items()} == {r: [s.replica, s.gateway] for r, s in model.slots.items()}
        assert {r: int(n) for r, n in counts.items() if n != "0"} == Counter(s.replica for s in model.slots.values())
        assert self.marked(index, "a") == model.in_order()
        assert set(self.client.hkeys(self.keys[4])) == model.line.keys()
        assert set(self.marked(index, "h")) == {r for r, place in model.line.items() if place.at_head}
        assert set(self.marked(index, "f")) == {r for r, place in model.line.items() if not place.at_head}
        assert set(self.marked(index, "x")) == {r for r, held in model.slots.items() if held.may_be_asked}
        assert set(self.marked(index, "i")) == {r for r, held in model.slots.items() if not held.may_be_asked}
        assert set(self.marked(index, "u")) == {r for r, held in model.slots.items() if not held.is_claimed}
        assert set(self.marked(index, "o")) == {r for r, held in model.slots.items() if held.is_awaited}
        self.compare_work()
        told = [(gateway, words) for gateway in GATEWAYS for words in self.client.lrange(grants_key(POOL, gateway), 0, -1)]
        assert sorted(told) == sorted(model.told)

    def compare_work(self) -> None:
        work = dict(self.client.zrange(self.keys[2], 0, -1, withscores=True))
        turns = dict(self.client.zrange(self.keys[6], 0, -1, withscores=True))
        earned = self.client.hgetall(self.keys[8])
        model = self.model
        assert work == pytest.approx({f"{rank} {account}": level for (rank, account), level in model.levels.items()}, rel=1e-12)
        assert turns == pytest.approx({f"{rank} {account}": score for (rank, account), score in model.scores.items()}, rel=1e-12)
        assert all(score < CLASS_STEP * len(CLASSES) for score in turns.values())
        assert [int(earned.get(str(rank), 0)) for rank in range(len(CLASSES))] == model.credits

    @staticmethod
    def marked(index: list[str], kind: str) -> list[str]:
        return [entry.split()[-1] for entry in index if entry.startswith(kind)]


@pytest.mark.parametrize("classes", [DEFAULT_CLASSES, SLANTED], ids=["default", "slanted"])
@given(steps=st.lists(operations, min_size=15, max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_scripts_do_what_the_model_does(server: ValkeyServer, classes: Classes, steps: list[tuple[Any, ...]]) -> None:
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        driver = Driver(client, classes)
        for name, *arguments in steps:
            getattr(driver, name)(*arguments)
            driver.compare()
