"""The scripts against the model: any order of calls, repeats, deaths and late comers gives the same slots and the same line."""

from collections import Counter
from typing import Any

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.slots import grants_key, pool_keys, script_named, tombstone_key
from tests.backends.queue.model import PoolModel
from tests.support.services import ValkeyServer

POOL, DEPTH = "smol", 2
GATEWAYS = ("a", "b", "c")
REQUESTS = tuple(f"r{number}" for number in range(9))
PREFERENCES: tuple[list[tuple[str, int]], ...] = (
    [("one", 1)],
    [("one", 1), ("two", 2)],
    [("two", 2), ("one", 1)],
    [("two", 1)],
    [],
)

gateways, requests = st.sampled_from(GATEWAYS), st.sampled_from(REQUESTS)
acquires = st.tuples(st.just("acquire"), requests, gateways, st.sampled_from(PREFERENCES), st.integers(0, 3).map(bool))
operations = st.one_of(
    st.tuples(st.just("lease"), gateways),
    acquires,
    st.tuples(st.just("release"), requests, st.booleans()),
    st.tuples(st.just("sweep"), gateways, st.booleans(), st.booleans()),
    acquires,
    acquires,
    st.tuples(st.just("elapse"), st.just(2700)),
)


class Driver:
    """Does each operation to the server and to the model, and compares."""

    def __init__(self, client: Any) -> None:
        client.flushall()
        seconds, micros = client.time()
        self.began = seconds * 1000 + micros // 1000
        self.client, self.model = client, PoolModel(now=self.began)
        self.keys = pool_keys(POOL, ())
        for gateway in GATEWAYS:
            self.lease(gateway)

    def run(self, name: str, own: list[str], extra: list[Any], gateway: str) -> Any:
        keys = [*pool_keys(POOL, GATEWAYS), *own]
        return self.client.eval(
            script_named(name).text, len(keys), *keys, self.model.now - self.began, gateway, " ".join(GATEWAYS), *extra
        )

    def elapse(self, ms: int) -> None:
        self.model.now += ms

    def lease(self, gateway: str) -> None:
        assert set(self.run("lease", [], [5000], gateway)) == self.model.lease(gateway, 5000)

    def acquire(self, request: str, gateway: str, preference: list[tuple[str, int]], may_wait: bool) -> None:
        if request in self.model.slots or request in self.model.line:
            gateway = (self.model.slots.get(request) or self.model.line[request]).gateway
        asked = [word for name, cap in preference for word in (name, cap, 0)]
        answer = self.run("acquire", [tombstone_key(POOL, request)], [request, int(may_wait), DEPTH, 0, "free", *asked], gateway)
        expected = self.model.acquire(request, gateway, preference, may_wait, DEPTH)
        said = answer[0]
        assert (f"held {answer[1]}" if said == "held" else said) == expected
        if said == "waits":
            # The server's own milliseconds order the line; the model's clock moves in steps.
            self.model.stands_in_line(request, gateway, preference, int(answer[1]))

    def release(self, request: str, unsure: bool) -> None:
        answer = self.run("release", [tombstone_key(POOL, request)], [request, int(unsure)], "a")
        assert answer == self.model.release(request, unsure)

    def sweep(self, gateway: str, forgets_slots: bool, forgets_line: bool) -> None:
        model = self.model
        running = {} if forgets_slots else {r: s.replica for r, s in model.slots.items() if s.gateway == gateway}
        waiting = set() if forgets_line else {r for r, p in model.line.items() if p.gateway == gateway}
        pairs = [word for pair in running.items() for word in pair]
        self.run("sweep", [], [len(running), *pairs, *waiting], gateway)
        model.sweep(gateway, running, waiting)

    def compare(self) -> None:
        slots, counts, line, waiting = (
            self.client.hgetall(self.keys[0]),
            self.client.hgetall(self.keys[1]),
            self.client.zrange(self.keys[2], 0, -1),
            self.client.hkeys(self.keys[3]),
        )
        model = self.model
        assert {r: s.split()[:2] for r, s in slots.items()} == {r: [s.replica, s.gateway] for r, s in model.slots.items()}
        assert {r: int(n) for r, n in counts.items()} == Counter(s.replica for s in model.slots.values())
        assert list(line) == model.in_order()
        assert set(waiting) == model.line.keys()
        woken = [item.split()[0] for gateway in GATEWAYS for item in self.client.lrange(grants_key(POOL, gateway), 0, -1)]
        assert sorted(woken) == sorted(request for _, request in model.woken)


@given(steps=st.lists(operations, min_size=10, max_size=50))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_scripts_do_what_the_model_does(server: ValkeyServer, steps: list[tuple[Any, ...]]) -> None:
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        driver = Driver(client)
        for name, *arguments in steps:
            getattr(driver, name)(*arguments)
            driver.compare()
