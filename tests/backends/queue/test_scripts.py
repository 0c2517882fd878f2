"""The scripts against the model: any order of calls, repeats, deaths and late comers gives the same slots, line and work."""

from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.classes import CLASSES, DEFAULT_CLASSES, Classes, ClassRules
from tests.backends.queue.lockstep import Lockstep
from tests.backends.queue.model import Asked, PoolModel
from tests.support.services import ValkeyServer

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
    """Makes operations of the drawn words; a request has its class, account and estimate by its number."""

    def __init__(self, client: Any, classes: Classes) -> None:
        self.model = PoolModel(now=BEGAN, classes=classes)
        self.both = Lockstep(client, self.model, GATEWAYS)
        for gateway in GATEWAYS:
            self.lease(gateway)

    def elapse(self, ms: int) -> None:
        self.model.now += ms

    def lease(self, gateway: str) -> None:
        self.both.lease(gateway, 5000)

    def try_now(self, request: str, gateway: str, preference: list[tuple[str, int]]) -> None:
        self.both.try_now(self._asked(request, gateway, preference))

    def acquire(self, request: str, gateway: str, preference: list[tuple[str, int]], gives_back: bool) -> None:
        asked = self._asked(request, gateway, preference)
        if gives_back and request in self.model.slots and asked.returned < 2:
            asked.returned += 1
        self.both.acquire(asked)

    def release(self, request: str, unsure: bool, worked: int) -> None:
        self.both.release(request, unsure, worked)

    def keep(self, request: str) -> None:
        self.both.keep(request)

    def sweep(self, gateway: str, forgets: bool) -> None:
        known = {r: s for r, s in self.model.slots.items() if s.gateway == gateway and s.is_claimed}
        self.both.sweep(gateway, {} if forgets else known)

    def _asked(self, request: str, gateway: str, preference: list[tuple[str, int]]) -> Asked:
        number = REQUESTS.index(request)
        known = self.model.slots.get(request) or self.model.line.get(request)
        return Asked(
            request, known.gateway if known else gateway, number % len(CLASSES), f"acc{number % 7 % 3}", preference,
            estimate=(0, 100, 100, 3000)[number % 4], returned=known.returned if known else 0,
            arrival=known.arrival if known else 0, depth_max=3,
        )  # fmt: skip


@pytest.mark.parametrize("classes", [DEFAULT_CLASSES, SLANTED], ids=["default", "slanted"])
@given(steps=st.lists(operations, min_size=15, max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_scripts_do_what_the_model_does(server: ValkeyServer, classes: Classes, steps: list[tuple[Any, ...]]) -> None:
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        driver = Driver(client, classes)
        for name, *arguments in steps:
            getattr(driver, name)(*arguments)
            driver.both.compare()
