"""A fleet of unequal engines with small prefix caches, and the calls that come to it: what routing is judged by."""

import heapq
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count, islice

from backends.fleet import Replica
from backends.prefix import FINE_BYTES, Prompt, read_prompt
from backends.prefixes import Prefixes, Sent
from tests.backends.test_choose import replica

BLOCK_TOKENS = 64
# Of a middling engine: prompt tokens computed in a second, and tokens of one answer in a second while it is alone.
PREFILL_PER_SECOND, DECODE_PER_SECOND = 8_000, 60.0
# With all places taken, each answer comes at a third of that.
FULL_SLOWDOWN = 2.0
# Waiters that the order of the line takes for equals, where it looks for one whose replica is warm.
NEAR = 4
# An engine's own line, as a part of its places: `line` in the fleet file.
LINE_SHARE = 8


@dataclass(slots=True)
class Call:
    """One turn of a conversation. `answer` is its length in tokens."""

    number: int
    conversation: int
    blocks: Sequence[int]
    prompt: Prompt
    answer: int
    at: float
    cached: int = 0  # blocks found
    first_token: float = 0.0
    replica: str = ""


@dataclass(slots=True)
class Engine:
    """Prefills one call at a time, decodes all that it has begun; `line` is what it was sent and has no place for."""

    replica: Replica
    places: int
    speed: float
    cache_blocks: int
    cache: OrderedDict[int, None] = field(default_factory=OrderedDict)
    running: int = 0
    in_flight: int = 0
    is_up: bool = True
    busy_until: float = 0.0
    line: deque[Call] = field(default_factory=deque)
    busy_slots: float = 0.0  # integral of its places in use
    looked_at: float = 0.0

    def find(self, call: Call) -> int:
        """Blocks of the prompt's beginning that are in its cache; then all of the prompt is."""
        found = 0
        for block in call.blocks:
            if block not in self.cache:
                break
            found += 1
        for block in reversed(call.blocks):
            self.cache[block] = None
            self.cache.move_to_end(block)
        while len(self.cache) > self.cache_blocks:
            self.cache.popitem(last=False)
        return min(found, len(call.blocks) - 1)  # the last one is always computed

    def spent(self, now: float) -> None:
        self.busy_slots += min(self.in_flight, self.places) * (now - self.looked_at)
        self.looked_at = now


Turns = Sequence[tuple[Sequence[int], int]]
"""Of a conversation: the blocks of each prompt, and the tokens of its answer."""


class Town:
    """Who asks what: a heavy tail of system prompts, conversations of several turns, one seed."""

    def __init__(self, seed: int, calls: int, per_second: float, *, salted: bool = False) -> None:
        self.dice = random.Random(seed)
        self._names = count(1)
        self._systems = [self._new_blocks(self.dice.randint(2, 60)) for _ in range(60)]
        self._weights = list(accumulate(1 / (rank + 1) ** 1.1 for rank in range(60)))
        self._salted, self._left, self._per_second = salted, calls, per_second
        self._conversations = count()

    def arrivals(self) -> list[tuple[float, Turns, int]]:
        """Conversations: when, their turns (prompt blocks, answer tokens), and a name."""
        found, at = list[tuple[float, Turns, int]](), 0.0
        while self._left > 0:
            turns = min(self._left, 1 + int(self.dice.paretovariate(1.3)), 12)
            self._left -= turns
            at += self.dice.expovariate(self._per_second / 3)
            found.append((at, self._turns(turns), next(self._conversations)))
        return found

    def _turns(self, turns: int) -> Turns:
        [system] = self.dice.choices(self._systems, cum_weights=self._weights)
        said, found = list(self._new_blocks(len(system)) if self._salted else system), list[tuple[Sequence[int], int]]()
        for _ in range(turns):
            said += self._new_blocks(min(80, 1 + int(self.dice.paretovariate(1.1))))
            answer = min(800, int(40 * self.dice.paretovariate(1.2)))
            found.append((tuple(said), answer))
            said += self._new_blocks(max(1, answer // BLOCK_TOKENS))
        return found

    def _new_blocks(self, many: int) -> tuple[int, ...]:
        return tuple(next(self._names) for _ in range(many))


def text_of(blocks: Sequence[int]) -> bytes:
    """A prompt with these blocks: each as many bytes as ours."""
    return b"".join(block.to_bytes(8, "big") * (FINE_BYTES // 8) for block in blocks)


Policy = Callable[["Fleet", Call], Sequence[Engine]]
"""The engines, best first. Only the first counts for who keeps no line; we take the first with a place, or wait."""


class Fleet:
    """The engines, and what routers may know of them."""

    def __init__(self, seed: int, replicas: int) -> None:
        dice = random.Random(seed * 7919)
        sizes = [dice.choice((4, 8, 16, 32)) for _ in range(replicas)]
        self.engines = [
            Engine(
                replica(f"r{index:02}", size + size // LINE_SHARE),
                size,
                speed=size / 12,
                cache_blocks=size * dice.randint(60, 120),
            )
            for index, size in enumerate(sizes)
        ]
        self.turn = 0
        self.now = 0.0

    def up(self) -> list[Engine]:
        return [engine for engine in self.engines if engine.is_up]


@dataclass(slots=True)
class Run:
    """What came of one policy under one seed."""

    policy: str
    calls: list[Call]
    prompt_blocks: int
    cached_blocks: int
    in_use: float  # mean share of all places
    spread: float  # the largest mean share of one replica's places in use, by the mean of all

    @property
    def hits(self) -> float:
        return self.cached_blocks / self.prompt_blocks

    def first_tokens(self) -> list[float]:
        return sorted(call.first_token - call.at for call in self.calls)

    @property
    def mean_first_token(self) -> float:
        return sum(self.first_tokens()) / len(self.calls)


class Router:
    """What a simulated router does besides choosing: ours keeps a line of its own and learns from answers."""

    def __init__(self, name: str, policy: Policy, *, has_line: bool = False, prefixes: Sequence[Prefixes] = ()) -> None:
        self.name, self.policy, self.has_line, self.prefixes = name, policy, has_line, prefixes


def play(router: Router, seed: int, *, calls: int, replicas: int = 16, salted: bool = False, load: float = 0.7) -> Run:
    return _Play(router, seed, calls, replicas, salted=salted, load=load).run()


class _Play:
    def __init__(self, router: Router, seed: int, calls: int, replicas: int, *, salted: bool, load: float) -> None:
        self.router, self.fleet = router, Fleet(seed, replicas)
        speed = sum(engine.speed for engine in self.fleet.engines)
        # A call is about 2,500 tokens of prompt, of which a third must be computed, and holds its place some seconds.
        town = Town(seed, calls, per_second=load * speed * 2.6, salted=salted)
        self.events: list[tuple[float, int, str, tuple[object, ...]]] = []
        self.order = count()
        self.waiting: deque[Call] = deque()
        self.done: list[Call] = []
        self.numbers = count()
        self.goes_on: dict[int, tuple[int, Turns, int]] = {}
        self.sent: dict[int, Sent] = {}
        for at, turns, name in town.arrivals():
            self._at(at, "ask", (name, turns, 0))
        dice, horizon = random.Random(seed + 1), calls / (load * speed * 2.6)
        for engine in dice.sample(self.fleet.engines, max(1, replicas // 5)):
            gone = dice.uniform(0.2, 0.7) * horizon
            self._at(gone, "down", (engine,))
            self._at(gone + 0.15 * horizon, "up", (engine,))

    def run(self) -> Run:
        while self.events:
            now, _, kind, facts = heapq.heappop(self.events)
            self.fleet.now = now
            getattr(self, f"_{kind}")(*facts)
        shares = [engine.busy_slots / engine.places for engine in self.fleet.engines]
        blocks = sum(len(call.blocks) for call in self.done)
        cached = sum(call.cached for call in self.done)
        mean = sum(shares) / len(shares)
        return Run(self.router.name, self.done, blocks, cached, mean / self.fleet.now, max(shares) / mean)

    def _at(self, when: float, kind: str, facts: tuple[object, ...]) -> None:
        heapq.heappush(self.events, (when, next(self.order), kind, facts))

    def _ask(self, conversation: int, turns: Turns, turn: int) -> None:
        blocks, answer = turns[turn]
        prompt = read_prompt(text_of(blocks))
        call = Call(next(self.numbers), conversation, blocks, prompt, answer, self.fleet.now)
        self.goes_on[call.number] = (conversation, turns, turn + 1)
        if self.waiting or not self._route(call):
            self.waiting.append(call)

    def _route(self, call: Call) -> bool:
        self.fleet.turn += 1
        ranked = self.router.policy(self.fleet, call)
        if not self.router.has_line:
            self._send(call, ranked[0])
            return True
        for engine in ranked:
            if engine.in_flight < engine.replica.slots:
                self._send(call, engine)
                return True
        return False

    def _send(self, call: Call, engine: Engine) -> None:
        assert engine.in_flight < engine.replica.slots or not self.router.has_line
        engine.spent(self.fleet.now)
        engine.in_flight += 1
        call.replica = engine.replica.id
        if self.router.prefixes:
            self.sent[call.number] = self._memory(call).sent(call.replica, call.prompt)
        if engine.running < engine.places:
            self._begin(call, engine)
        else:
            engine.line.append(call)

    def _memory(self, call: Call) -> Prefixes:
        return self.router.prefixes[call.number % len(self.router.prefixes)]

    def _begin(self, call: Call, engine: Engine) -> None:
        engine.running += 1
        call.cached = engine.find(call)
        todo = (len(call.blocks) - call.cached) * BLOCK_TOKENS
        begun = max(self.fleet.now, engine.busy_until)
        engine.busy_until = call.first_token = begun + todo / (PREFILL_PER_SECOND * engine.speed)
        slowed = 1 + FULL_SLOWDOWN * engine.running / engine.places
        self._at(call.first_token + call.answer * slowed / DECODE_PER_SECOND, "end", (call, engine))

    def _end(self, call: Call, engine: Engine) -> None:
        engine.spent(self.fleet.now)
        engine.running -= 1
        engine.in_flight -= 1
        self.done.append(call)
        if self.router.prefixes:
            sent = self.sent.pop(call.number)
            self._memory(call).answered(sent, len(call.blocks) * BLOCK_TOKENS, call.cached * BLOCK_TOKENS)
        if engine.line:
            self._begin(engine.line.popleft(), engine)
        self._serve()
        conversation, turns, turn = self.goes_on.pop(call.number)
        if turn < len(turns):
            thinks = 0.5 + (conversation + turn) % 7
            self._at(self.fleet.now + thinks, "ask", (conversation, turns, turn))

    def _serve(self) -> None:
        """Who waits, in order; but of the first few, accounts with as much recent work as each other, the one whose first choice
        has a place (backends/order.lua)."""
        while self.waiting:
            near = list(islice(self.waiting, NEAR))
            ranked = [self.router.policy(self.fleet, call) for call in near]
            firsts = [index for index, found in enumerate(ranked) if found[0].in_flight < found[0].replica.slots]
            chosen = firsts[0] if firsts else 0
            engine = next((engine for engine in ranked[chosen] if engine.in_flight < engine.replica.slots), None)
            if engine is None:
                return
            del self.waiting[chosen]
            self._send(near[chosen], engine)

    def _down(self, engine: Engine) -> None:
        """It takes no more calls; those it has end. It comes back with an empty cache."""
        engine.is_up = False

    def _up(self, engine: Engine) -> None:
        engine.is_up = True
        engine.cache.clear()
        for prefixes in self.router.prefixes:
            prefixes.forget(engine.replica.id)
