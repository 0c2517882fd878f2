"""The scripts and the model, made to do the same things: answers, words to gateways and all that is kept must agree."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from backends.classes import CLASSES
from backends.slots import pool_keys, script_named, tombstone_key, try_keys
from tests.backends.queue.model import Asked, PoolModel
from tests.backends.queue.order import CLASS_STEP, Held

Agreed = TypeVar("Agreed", str, int)
POOL = "smol"
SCRIPTS = ("try", "acquire", "release", "keep", "lease", "sweep")


class Lockstep:
    """Does each operation on the server and on the model, by the model's clock; the model's state is there to be asked."""

    def __init__(self, client: Any, model: PoolModel, gateways: Sequence[str]) -> None:
        client.flushall()
        self.client, self.model, self.classes, self.gateways = client, model, model.classes, tuple(gateways)
        self.keys = pool_keys(POOL, self.gateways)
        self.lists = self.keys[9:]
        self.scripts = {name: client.register_script(script_named(name).text) for name in SCRIPTS}

    def lease(self, gateway: str, ttl: int) -> set[str]:
        waiting, living, lost = self._run("lease", try_keys(POOL), [gateway, ttl])
        assert waiting == len(self.model.line)
        expected = self.model.lease(gateway, ttl)
        assert set(living) == expected
        assert set(lost) == self.model.unclaimed(gateway)
        return expected

    def try_now(self, asked: Asked) -> str:
        kept = self.classes.kept_from(CLASSES[asked.rank])
        words = [asked.gateway, asked.request, asked.rank, asked.account, kept, *_triples(asked)]
        answer = self._run("try", [*try_keys(POOL), tombstone_key(POOL, asked.request)], words)
        return self._agreed(" ".join(answer), self.model.try_now(asked))

    def acquire(self, asked: Asked) -> str:
        about = [asked.rank, asked.account, asked.estimate, asked.returned, asked.arrival, asked.depth_max, 3_600_000, 0]
        answer = self._in_line("acquire", asked.request, [*about, *_triples(asked)], asked.gateway)
        said = self._agreed(f"held {answer[1]}" if answer[0] == "held" else answer[0], self.model.acquire(asked))
        if said == "waits":
            assert int(answer[1]) == self.model.line[asked.request].arrival
            assert 1 <= int(answer[2]) <= len(self.model.line)
        return said

    def release(self, request: str, unsure: bool, worked: int) -> int:
        answer = self._in_line("release", request, [int(unsure), worked], self.gateways[0])
        return self._agreed(answer, self.model.release(request, unsure, worked))

    def keep(self, request: str) -> None:
        self._in_line("keep", request, [], self.gateways[0])
        self.model.keep(request)
        self._compare_told()

    def sweep(self, gateway: str, running: dict[str, Held]) -> None:
        words = [gateway, " ".join(self.gateways), self.classes.packed, "0"]
        for request, held in running.items():
            words += [request, f"{held.replica} {held.rank} {held.account} {held.estimate} {held.returned}"]
        self._run("sweep", self.keys, words)
        self.model.sweep(gateway, running)
        self._compare_told()

    def forget(self) -> None:
        self.client.flushall()
        self.model.forget()

    def compare(self) -> None:
        """All that is kept."""
        slots, counts = self.client.hgetall(self.keys[0]), self.client.hgetall(self.keys[1])
        index, model = self.client.zrange(self.keys[3], 0, -1), self.model
        assert {r: s.split()[:2] for r, s in slots.items()} == {r: [s.replica, s.gateway] for r, s in model.slots.items()}
        assert {r: int(n) for r, n in counts.items() if n != "0"} == Counter(s.replica for s in model.slots.values())
        assert _marked(index, "a") == model.in_order()
        assert set(self.client.hkeys(self.keys[4])) == model.line.keys()
        assert set(_marked(index, "h")) == {r for r, place in model.line.items() if place.at_head}
        assert set(_marked(index, "f")) == {r for r, place in model.line.items() if not place.at_head}
        assert set(_marked(index, "x")) == {r for r, held in model.slots.items() if held.may_be_asked}
        assert set(_marked(index, "i")) == {r for r, held in model.slots.items() if not held.may_be_asked}
        assert set(_marked(index, "u")) == {r for r, held in model.slots.items() if not held.is_claimed}
        assert set(_marked(index, "o")) == {r for r, held in model.slots.items() if held.is_awaited}
        self._compare_work()

    def _compare_work(self) -> None:
        work = dict(self.client.zrange(self.keys[2], 0, -1, withscores=True))
        turns = dict(self.client.zrange(self.keys[6], 0, -1, withscores=True))
        earned, model = self.client.hgetall(self.keys[8]), self.model
        assert work == pytest.approx({f"{rank} {account}": level for (rank, account), level in model.levels.items()}, rel=1e-12)
        assert turns == pytest.approx({f"{rank} {account}": score for (rank, account), score in model.scores.items()}, rel=1e-12)
        assert all(score < CLASS_STEP * len(CLASSES) for score in turns.values())
        assert [int(earned.get(str(rank), 0)) for rank in range(len(CLASSES))] == model.credits

    def _in_line(self, name: str, request: str, about: list[Any], gateway: str) -> Any:
        common = [gateway, " ".join(self.gateways), self.classes.packed, request]
        return self._run(name, [*self.keys, tombstone_key(POOL, request)], [*common, *about])

    def _run(self, name: str, keys: list[str], arguments: list[Any]) -> Any:
        return self.scripts[name](keys=keys, args=[self.model.now, *arguments])

    def _agreed(self, answer: Any, expected: Agreed) -> Agreed:
        assert answer == expected
        self._compare_told()
        return expected

    def _compare_told(self) -> None:
        """What gateways were told by this operation. The lists are emptied; the model keeps its own until it is taken."""
        with self.client.pipeline() as pipeline:
            for key in self.lists:
                pipeline.lpop(key, 1000)
            answers = pipeline.execute()
        told = [(gateway, words) for gateway, answer in zip(self.gateways, answers, strict=True) for words in answer or ()]
        fresh = self.model.told[self.model.compared :]
        self.model.compared = len(self.model.told)
        assert sorted(told) == sorted(fresh)


def _triples(asked: Asked) -> list[str | int]:
    return [word for name, cap in asked.preference for word in (name, cap, 0)]


def _marked(index: list[str], kind: str) -> list[str]:
    return [entry.split()[-1] for entry in index if entry.startswith(kind)]
