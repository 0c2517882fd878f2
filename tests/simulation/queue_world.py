"""A pool in simulated time: callers, gateways and engines around the order of the line, drawn from one seed."""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from backends.classes import CLASSES, DEFAULT_CLASSES, Classes, ClassRules
from tests.backends.queue.model import Asked, PoolModel
from tests.backends.queue.order import Held

BEGAN = 1_767_225_600_000
LEASE_MS, BEAT_MS = 5000, 500
POLL_FIRST_MS, POLL_MS = 250, 1000


class Order(Protocol):
    """The ordering code under simulation: the model alone, or the scripts in lockstep with it."""

    def lease(self, gateway: str, ttl: int) -> set[str]: ...
    def try_now(self, asked: Asked) -> str: ...
    def acquire(self, asked: Asked) -> str: ...
    def release(self, request: str, unsure: bool, worked: int) -> int: ...
    def keep(self, request: str) -> None: ...
    def sweep(self, gateway: str, running: dict[str, Held]) -> None: ...
    def forget(self) -> None: ...


class State(Enum):
    NEW = "new"
    WAITS = "waits"
    RUNS = "runs"
    OVER = "over"


@dataclass(eq=False)
class Call:
    """Times are simulated ms. `turn` counts its grants, so that what was foreseen for an earlier one is void."""

    request: str
    rank: int
    account: str
    gateway: str
    prompt: int
    output: int
    arrived: int
    state: State = State.NEW
    how: str = ""
    replica: str | None = None
    arrival: int = 0
    returned: int = 0
    estimate: int = 0
    turn: int = 0
    output_at: int = 0
    waits_since: int = 0
    waited: int = 0
    ended: int = 0
    is_unsure: bool = False


@dataclass
class Gateway:
    name: str
    is_alive: bool = True
    waiting: dict[str, Call] = field(default_factory=dict)
    running: dict[str, Call] = field(default_factory=dict)
    beats: int = 0


@dataclass(frozen=True)
class Setting:
    """What one seed stands for."""

    caps: dict[str, int]
    gateways: int
    load: float
    classes: Classes
    weights: tuple[float, ...]  # of the classes among the calls
    accounts: int
    depth_max: int
    wait_ms: int
    faults_per_second: float

    @classmethod
    def drawn(cls, dice: random.Random) -> "Setting":
        return cls(
            caps={f"e{n}": dice.choice((1, 2, 4, 8)) for n in range(dice.choice((1, 1, 2, 3)))},
            gateways=dice.choice((1, 2, 3)),
            load=dice.choice((0.6, 1.0, 1.5, 2.0, 3.0)),
            classes=dice.choice((DEFAULT_CLASSES, DEFAULT_CLASSES, Classes.of({"premium": ClassRules(reserved=1)}))),
            weights=dice.choice(((1, 10, 30, 60, 10), (0, 1, 1, 1, 1), (0, 0, 1, 4, 0))),
            accounts=dice.choice((1, 5, 20)),
            depth_max=dice.choice((10, 60)),
            wait_ms=dice.choice((5_000, 30_000)),
            faults_per_second=dice.choice((0.0, 0.05, 0.3)),
        )


class World:
    """Runs events in their order; `check` is called after each."""

    def __init__(self, seed: int, setting: Setting, order: Order, model: PoolModel) -> None:
        self.dice = random.Random(seed)
        self.setting, self.order, self.model = setting, order, model
        self.time, self.skew, self.steps = 0, 0, 0
        self.calls: list[Call] = []
        self.expected = self.ended = 0
        self.gateways: list[Gateway] = []
        self.broken: set[str] = set()
        self.disturbed_at = self.killed_at = -3 * LEASE_MS
        self.excused: set[Call] = set()  # ran when the pool's memory was lost, or all leases ended: not counted on for a while
        self.granted: dict[str, str] = {}  # by the last step, to waiters: request -> replica
        self._by_request: dict[str, Call] = {}
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = 0
        for _ in range(setting.gateways):
            self.add_gateway()

    def at(self, ms: int, act: Callable[..., None], *arguments: Any) -> None:
        self._numbers += 1
        heapq.heappush(self._events, (ms, self._numbers, act, arguments))

    def run(self, check: Callable[["World"], None]) -> None:
        while self._events and self.ended < self.expected:
            self.step()
            check(self)
        rest = self.time + 2 * LEASE_MS  # what dead gateways left goes with the leases
        while self._events and self._events[0][0] <= rest:
            self.step()

    def step(self) -> None:
        self.time, _, act, arguments = heapq.heappop(self._events)
        self.model.now = BEGAN + self.time + self.skew
        act(*arguments)
        self.steps += 1
        told = self.model.take_told()
        self.granted = dict(words.split()[1:] for _, words in told if words.startswith("grant"))
        for gateway, words in told:
            if self.dice.random() > 0.02:  # else the wake-up is lost
                self.at(self.time + self.dice.randint(1, 3), self.hear, gateway, words)

    def rank_of(self, request: str) -> int:
        return self._by_request[request].rank

    # Calls ---------------------------------------------------------------------------------------------------------

    def arrive(self, call: Call) -> None:
        gateway = self.dice.choice([gateway for gateway in self.gateways if gateway.is_alive])
        call.gateway, call.waits_since = gateway.name, self.time
        self.calls.append(call)
        self._by_request[call.request] = call
        said = "busy" if gateway.waiting else self._ask(call, self.order.try_now)
        if said.startswith("held"):
            self._start(call, said.split()[1])
        else:
            self._wait(call)

    def ask(self, call: Call, turn: int | None = None) -> None:
        """Its poll, or woken: `turn` None."""
        if call.state is not State.WAITS or turn not in (None, call.turn):
            return
        said = self._ask(call, self.order.acquire)
        if self.dice.random() < 0.01:  # the answer is lost
            call.is_unsure = True
        elif said.startswith("held"):
            self._start(call, said.split()[1])
        elif said == "waits":
            call.arrival = self.model.line[call.request].arrival
        else:
            self._leave(call, said)
            return
        if turn is not None and call.state is State.WAITS:
            self.at(self.time + POLL_MS, self.ask, call, turn)

    def hear(self, name: str, words: str) -> None:
        gateway = self._gateway(name)
        if not gateway.is_alive:
            return
        kind, request = words.split()[:2]
        if kind == "grant" and request in gateway.waiting:
            self.ask(gateway.waiting[request])
        elif kind == "grant" and request not in gateway.running:
            self.order.release(request, False, -1)
        elif kind == "recall" and request in gateway.running:
            call = gateway.running[request]
            if self.time >= call.output_at:
                self.order.keep(request)
            else:
                self._give_back(call)

    def finish(self, call: Call, turn: int) -> None:
        if call.state is State.RUNS and call.turn == turn:
            self._leave(call, "served", worked=call.prompt + 2 * call.output)

    def hang_up(self, call: Call) -> None:
        if call.state in (State.WAITS, State.RUNS):
            self._leave(call, "hang-up", worked=call.prompt if call.state is State.RUNS else -1)

    def expire(self, call: Call, turn: int) -> None:
        if call.state is State.WAITS and call.turn == turn:
            self._leave(call, "waited too long")

    def _wait(self, call: Call) -> None:
        call.state, call.waits_since = State.WAITS, self.time
        self._gateway(call.gateway).waiting[call.request] = call
        self.at(self.time + self.setting.wait_ms - call.waited, self.expire, call, call.turn)
        self.at(self.time + POLL_FIRST_MS, self.ask, call, call.turn)
        self.ask(call)

    def _ask(self, call: Call, script: Callable[[Asked], str]) -> str:
        load = Counter(other.replica for other in self._gateway(call.gateway).running.values())
        sound = sorted(self.setting.caps.keys() - self.broken, key=lambda name: (load[name], name))
        asked = Asked(
            call.request, call.gateway, call.rank, call.account, [(name, self.setting.caps[name]) for name in sound],
            estimate=call.estimate, returned=call.returned, arrival=call.arrival, depth_max=self.setting.depth_max,
        )  # fmt: skip
        said = script(asked)
        if said == "lease":
            self.order.lease(call.gateway, LEASE_MS)
            said = script(asked)
        return said

    def _start(self, call: Call, replica: str) -> None:
        assert call.state is not State.RUNS, f"{call.request} was granted twice"
        gateway = self._gateway(call.gateway)
        gateway.waiting.pop(call.request, None)
        gateway.running[call.request] = call
        call.state, call.replica, call.turn, call.is_unsure = State.RUNS, replica, call.turn + 1, False
        call.waited += self.time - call.waits_since
        if replica in self.broken:
            self._leave(call, "engine away", worked=0)
            return
        call.output_at = self.time + 5 + call.prompt // 8
        self.at(call.output_at + call.output * 10, self.finish, call, call.turn)

    def _give_back(self, call: Call) -> None:
        del self._gateway(call.gateway).running[call.request]
        self.excused.discard(call)
        call.replica, call.returned, call.turn = None, call.returned + 1, call.turn + 1
        self._wait(call)

    def _leave(self, call: Call, how: str, worked: int = -1) -> None:
        held_or_waits = call.state is State.RUNS or call.arrival or call.is_unsure
        self._end(call, how)
        if held_or_waits:
            self.order.release(call.request, call.is_unsure, worked)

    def _end(self, call: Call, how: str) -> None:
        if call.state is State.WAITS:
            call.waited += self.time - call.waits_since
        call.state, call.how, call.ended = State.OVER, how, self.time
        self.ended += 1
        self.excused.discard(call)
        if call.gateway:
            gateway = self._gateway(call.gateway)
            gateway.waiting.pop(call.request, None)
            gateway.running.pop(call.request, None)

    # Gateways ------------------------------------------------------------------------------------------------------

    def add_gateway(self) -> None:
        gateway = Gateway(f"g{len(self.gateways)}")
        self.gateways.append(gateway)
        self.order.lease(gateway.name, LEASE_MS)
        self.at(self.time + self.dice.randint(1, BEAT_MS), self.beat, gateway)

    def beat(self, gateway: Gateway) -> None:
        if not gateway.is_alive:
            return
        gateway.beats += 1
        self.order.lease(gateway.name, LEASE_MS)
        for request in sorted(self.model.unclaimed(gateway.name)):
            self.hear(gateway.name, f"grant {request}")
        if gateway.beats % 2:
            self.order.sweep(gateway.name, {request: _held(call) for request, call in gateway.running.items()})
        self.at(self.time + BEAT_MS, self.beat, gateway)

    def kill(self, gateway: Gateway) -> None:
        """kill -9: its sockets close, so engines stop its calls; it says nothing more."""
        gateway.is_alive, self.killed_at = False, self.time
        for call in [*gateway.waiting.values(), *gateway.running.values()]:
            self._end(call, "gateway killed")

    def _gateway(self, name: str) -> Gateway:
        return self.gateways[int(name[1:])]


def _held(call: Call) -> Held:
    assert call.replica is not None
    return Held(call.replica, call.gateway, 0, call.rank, call.account, call.estimate, call.returned)


def arrivals(seed: int, setting: Setting, count: int) -> list[Call]:
    """Bursts of calls with heavy-tailed prompts, at a share of what the pool can serve."""
    dice = random.Random(seed * 7 + 1)
    calls, time = list[Call](), 0.0
    mean_ms = 5 + 800 / 8 + 100 * 10
    gap_ms = mean_ms / sum(setting.caps.values()) / setting.load
    pace = 1.0
    for number in range(count):
        if number % 50 == 0:
            pace = dice.choice((0.3, 1.0, 1.0, 3.0))
        time += dice.expovariate(pace / gap_ms)
        rank = dice.choices(range(len(CLASSES)), setting.weights)[0]
        prompt, output = int(min(30_000, 300 * dice.paretovariate(1.3))), 1 + int(dice.expovariate(1 / 100))
        heavy = dice.random() < 0.5  # one account of each class sends half of its calls
        account = f"{CLASSES[rank]}-{0 if heavy else dice.randrange(setting.accounts)}"
        calls.append(Call(f"r{number:05}", rank, account, "", prompt, output, int(time), estimate=prompt + 200))
    return calls
