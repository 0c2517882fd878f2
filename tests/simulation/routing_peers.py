"""How others choose a replica, as pure functions over the same fleet, by what their sources and documents say."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count
from zlib import crc32

from backends.choose import NONE_TIGHTENED, Warmth, preference
from backends.prefixes import Prefixes
from tests.simulation.routing_world import Call, Engine, Fleet, Router

# SGLang's cache_aware, as SMG and vllm-router have it from there: beyond both, no call is routed by its prefix.
ABSOLUTE_IMBALANCE, RELATIVE_IMBALANCE = 64, 1.5
# Less of a prompt matched is no match.
MATCH_MIN = 0.3
# Nodes of the router's tree for each worker; SGLang's default is 2^26 characters.
TREE_BLOCKS = 2**26 // 256
# llm-d: weights of its default plugins, blocks that it believes a server to hold, and its measure of a full queue.
LLMD_PREFIX, LLMD_QUEUE, LLMD_KV = 3.0, 2.0, 2.0
LLMD_BLOCKS = 31_250


def round_robin() -> Router:
    turns = count()

    def policy(fleet: Fleet, call: Call) -> Sequence[Engine]:
        up = fleet.up()
        return [up[next(turns) % len(up)]]

    return Router("round robin", policy)


def least_loaded() -> Router:
    return Router("least loaded", lambda fleet, call: [_least(fleet.up())])


def sticky() -> Router:
    """By a rendezvous hash of the conversation, so that few move when a replica goes."""

    def policy(fleet: Fleet, call: Call) -> Sequence[Engine]:
        return [max(fleet.up(), key=lambda engine: crc32(f"{engine.replica.id} {call.conversation}".encode()))]

    return Router("sticky", policy)


def smg() -> Router:
    """SMG 1.13: a miss goes to the least loaded."""
    return Router("SMG cache_aware", _cache_aware(_least))


def vllm_router() -> Router:
    """vllm-router 0.1.17: a miss goes to the worker with the smallest tree."""
    return Router("vllm-router cache_aware", _cache_aware(None))


def llmd() -> Router:
    """llm-d: each server's share of the prompt, of an empty queue and of free KV cache, each times its weight; the best."""
    trees: dict[str, _Tree] = {}

    def policy(fleet: Fleet, call: Call) -> Sequence[Engine]:
        up = fleet.up()
        waiting = [len(engine.line) for engine in up]
        lowest, highest = min(waiting), max(waiting)

        def score(engine: Engine) -> float:
            matched = trees.setdefault(engine.replica.id, _Tree(LLMD_BLOCKS)).matched(call) / len(call.blocks)
            queue = 1.0 if highest == lowest else (highest - len(engine.line)) / (highest - lowest)
            used = min(1.0, engine.running / engine.places)
            return LLMD_PREFIX * matched + LLMD_QUEUE * queue + LLMD_KV * (1 - used)

        chosen = max(up, key=lambda engine: (score(engine), crc32(f"{engine.replica.id} {call.number}".encode())))
        trees[chosen.replica.id].add(call)
        return [chosen]

    return Router("llm-d scorers", policy)


def ours(gateways: int = 1) -> Router:
    """Our own, by the code that runs; each gateway knows its own calls alone, by turns."""
    memories = [Prefixes() for _ in range(gateways)]

    def policy(fleet: Fleet, call: Call) -> Sequence[Engine]:
        up = {engine.replica.id: engine for engine in fleet.up()}
        prefixes = memories[call.number % gateways]
        load = {name: engine.in_flight for name, engine in up.items()}
        warmth = Warmth(call.prompt, prefixes.known(up, call.prompt))
        replicas = [engine.replica for engine in up.values()]
        return [up[one.id] for one in preference(replicas, load, {}, fleet.turn, NONE_TIGHTENED, warmth=warmth)]

    name = "ours" if gateways == 1 else f"ours, {gateways} gateways"
    return Router(name, policy, has_line=True, prefixes=memories)


PEERS: Sequence[Callable[[], Router]] = (round_robin, least_loaded, sticky, smg, vllm_router, llmd)


class _Tree:
    """The blocks that a router believes one worker to have."""

    def __init__(self, blocks_max: int) -> None:
        self.blocks: OrderedDict[int, None] = OrderedDict()
        self._most = blocks_max

    def matched(self, call: Call) -> int:
        return next((index for index, block in enumerate(call.blocks) if block not in self.blocks), len(call.blocks))

    def add(self, call: Call) -> None:
        for block in reversed(call.blocks):
            self.blocks[block] = None
            self.blocks.move_to_end(block)
        while len(self.blocks) > self._most:
            self.blocks.popitem(last=False)


def _cache_aware(on_miss: Callable[[Sequence[Engine]], Engine] | None) -> Callable[[Fleet, Call], Sequence[Engine]]:
    trees: dict[str, _Tree] = {}

    def policy(fleet: Fleet, call: Call) -> Sequence[Engine]:
        up = fleet.up()
        for engine in up:
            trees.setdefault(engine.replica.id, _Tree(TREE_BLOCKS))
        loads = [engine.in_flight for engine in up]
        if max(loads) - min(loads) > ABSOLUTE_IMBALANCE and max(loads) > RELATIVE_IMBALANCE * min(loads):
            chosen = _least(up)
        else:
            chosen = max(up, key=lambda engine: trees[engine.replica.id].matched(call))
            if trees[chosen.replica.id].matched(call) <= MATCH_MIN * len(call.blocks):
                chosen = on_miss(up) if on_miss else min(up, key=lambda engine: len(trees[engine.replica.id].blocks))
        trees[chosen.replica.id].add(call)
        return [chosen]

    return policy


def _least(engines: Sequence[Engine]) -> Engine:
    """Whoever has the fewest requests, whatever his size."""
    return min(engines, key=lambda engine: engine.in_flight)
