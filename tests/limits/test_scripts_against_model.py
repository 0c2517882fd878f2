"""Every script against the pure model, in any order: the same answers, the same counters, and a ledger that adds up."""

import time
from typing import Any

import orjson
import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from gateway.clock import DAY_MS
from gateway.limits import scripts
from gateway.limits.shard import Shard
from gateway.valkey import Script
from tests.limits.model import Call, Counters, Model

GATEWAYS = ("g1", "g2")
ACCOUNTS = ("account-1", "account-2")
KEYS = {"account-1": ("key-1a", "key-1b"), "account-2": ("key-2a",)}
MIDNIGHT = 20_700 * DAY_MS


class Scripts(RuleBasedStateMachine):
    server: "redis.Redis"
    calls = Bundle("calls")

    @initialize()
    def begin(self) -> None:
        self.server.flushall()
        self.model = Model(clock_ms=MIDNIGHT - 10_000)
        self.shard = Shard(7, "unused")
        self.count = 0
        self._open("run-1")
        self._warm()

    @rule(gateway=st.sampled_from(GATEWAYS))
    def lease(self, gateway: str) -> None:
        self._run(scripts.LEASE, (self.shard.epoch, self.shard.leases, self.shard.wm), (gateway, 60_000))
        self.model.leased[gateway] = True

    @rule(gateway=st.sampled_from(GATEWAYS))
    def a_lease_runs_out(self, gateway: str) -> None:
        if gateway in self.model.leased:
            self.server.zadd(self.shard.leases, {gateway: 1})
            self.model.leased[gateway] = False

    @rule()
    def time_goes_on(self) -> None:
        """20 s over midnight, then to just before the next one."""
        self.model.clock_ms += 20_000 if self.model.clock_ms % DAY_MS else 0
        if (self.model.clock_ms + 10_000) % DAY_MS and self.count % 3 == 0:
            self.model.clock_ms += DAY_MS - 20_000

    @rule(
        target=calls,
        gateway=st.sampled_from(GATEWAYS),
        account=st.sampled_from(ACCOUNTS),
        key=st.integers(0, 1),
        age_ms=st.sampled_from((0, 0, 0, 20_000, -20_000, 61_000)),
        fare=st.integers(1, 3),
        version=st.sampled_from((3, 3, 3, 3, 2, 1)),
        limits=st.tuples(st.sampled_from((-1, 3, 5)), st.sampled_from((-1, -1, 2)), st.sampled_from((-1, 2))),
    )
    def admit(
        self, gateway: str, account: str, key: int, age_ms: int, fare: int, version: int, limits: tuple[int, int, int]
    ) -> Any:
        self.count += 1
        keys = KEYS[account]
        at_ms = self.model.clock_ms - age_ms
        call = Call(f"r{self.count}", gateway, account, keys[key % len(keys)], at_ms // DAY_MS, at_ms, fare)
        answer = self._admit(call, version, limits)
        if answer == "lease":
            self.lease(gateway)
            answer = self._admit(call, version, limits)
        if answer == "cold":
            self._seed(account, call.key, call.day, version)
            answer = self._admit(call, version, limits)
        return call if answer == "admitted" else multiple()

    @rule(call=calls, version=st.integers(1, 3))
    def the_same_admit_arrives_again(self, call: Call, version: int) -> None:
        if call.id in self.model.holds or call.id in self.model.tombstones:
            self._admit(call, version, (-1, -1, -1))

    @rule(
        call=consumes(calls),
        verdict=st.sampled_from(("posted", "voided", "hangup")),
        free=st.sampled_from((-1, 0, 1)),
        times=st.integers(1, 2),
    )
    def settle(self, call: Call, verdict: str, free: int, times: int) -> None:
        for _ in range(times):
            self._settle(call, verdict, free)

    @rule(gateway=st.sampled_from(GATEWAYS), account=st.sampled_from(ACCOUNTS))
    def settled_before_it_was_admitted(self, gateway: str, account: str) -> None:
        self.count += 1
        at_ms = self.model.clock_ms
        call = Call(f"r{self.count}", gateway, account, KEYS[account][0], at_ms // DAY_MS, at_ms, 1)
        self._settle(call, "voided", -1)
        self._admit(call, 3, (-1, -1, -1))

    @rule(call=calls)
    def put_back(self, call: Call) -> None:
        self._assert(call)

    @rule(call=calls)
    def sweep(self, call: Call) -> None:
        self._sweep(call.gateway, call.id)

    @rule(gateway=st.sampled_from(GATEWAYS))
    def forget(self, gateway: str) -> None:
        self._sweep(gateway, None)

    @rule(account=st.sampled_from(ACCOUNTS), key=st.integers(0, 1), late=st.booleans(), version=st.integers(1, 3))
    def seed(self, account: str, key: int, late: bool, version: int) -> None:
        keys = KEYS[account]
        self._seed(account, keys[key % len(keys)], (self.model.clock_ms - (20_000 if late else 0)) // DAY_MS, version)

    @rule(account=st.sampled_from(ACCOUNTS), version=st.integers(1, 3))
    def bump(self, account: str, version: int) -> None:
        assert self._run(scripts.BUMP, (self.shard.account(account),), (version,)) == self.model.bump(account, version)

    @rule()
    def the_worker_drains(self) -> None:
        self.model.drain()

    @rule(really=st.sampled_from((False, False, False, True)))
    def the_server_restarts_with_its_data(self, really: bool) -> None:
        if not really:
            return
        self.model.new_epoch(forget=False)
        self._open(f"run-{self.model.epoch}")
        self._come_back()

    @rule(really=st.sampled_from((False, False, False, True)))
    def the_server_is_emptied(self, really: bool) -> None:
        if not really:
            return
        ends = {**self.model.ledger, **dict(reversed(self.model.stream))}
        open_calls = [call for call, epoch in self.model.holds.values()]
        self.model.drain()
        self.server.flushall()
        self.model.new_epoch(forget=True)
        self._open(f"run-{self.model.epoch}")
        for gateway in GATEWAYS:
            self.lease(gateway)
        for call in open_calls:
            self._assert(call)
        for call_id, verdict in list(ends.items())[-3:]:  # gateways send again what they kept
            self._settle(self.model.calls[call_id], verdict, -1)

    @invariant()
    def counters_are_those_of_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        expected = {self.shard.account(name): counters for name, counters in self.model.accounts.items()}
        expected |= {self.shard.key(name): counters for name, counters in self.model.keys.items()}
        look = self.server.pipeline(transaction=False)
        for name in expected:
            look.hgetall(name)
        for gateway in GATEWAYS:
            look.hkeys(self.shard.holds_of(gateway))
        look.xrange(self.shard.events)
        *found, held_1, held_2, stream = look.execute()
        assert {name: _counters(hash_) for name, hash_ in zip(expected, found, strict=True)} == expected
        assert {call_id.decode() for call_id in (*held_1, *held_2)} == set(self.model.holds)
        assert [(fields[b"id"].decode(), fields[b"v"].decode()) for _, fields in stream] == self.model.stream

    @invariant()
    def what_is_used_is_posted_or_held(self) -> None:
        if not hasattr(self, "model"):
            return
        for name, account in self.model.accounts.items():
            if account.n != self.model.epoch:
                continue
            mine = [call for call, epoch in self.model.holds.values() if call.account == name and epoch == account.n]
            assert account.open == len(mine)
            for day, used in account.u.items():
                assert used == self.model.posted(day, account=name) + sum(call.fare for call in mine if call.day == day)

    def _warm(self) -> None:
        for gateway in GATEWAYS:
            self.lease(gateway)
        for account, keys in KEYS.items():
            for key in keys:
                self._seed(account, key, self.model.clock_ms // DAY_MS, 1)

    def _come_back(self) -> None:
        """What gateways do in the opening second: lease, and put back every hold that is open."""
        for gateway in GATEWAYS:
            self.lease(gateway)
        for call, _ in list(self.model.holds.values()):
            self._assert(call)

    def _open(self, run: str) -> None:
        nonce, left, _, _ = self._run(scripts.OPEN, (self.shard.epoch, self.shard.wm), (run, f"n{self.model.epoch}", 0))
        assert (nonce.decode(), left) == (f"n{self.model.epoch}", 0)
        again = self._run(scripts.OPEN, (self.shard.epoch, self.shard.wm), (run, "another", 0))
        assert again[0] == nonce

    def _admit(self, call: Call, version: int, limits: tuple[int, int, int]) -> str:
        quota, key_quota, concurrency = limits
        keys = (
            self.shard.epoch,
            self.shard.leases,
            self.shard.holds_of(call.gateway),
            *self.shard.call(call.id, call.account, call.key),
        )
        args = (f"n{self.model.epoch}", call.gateway, call.id, call.at_ms, call.day, version, call.fare, quota, key_quota,
                -1, 1, -1, 1, concurrency, self._packed(call), self._offset())  # fmt: skip
        expected = self.model.admit(call, version=version, quota=quota, key_quota=key_quota, concurrency=concurrency)
        answer = [part.decode() if isinstance(part, bytes) else part for part in self._run(scripts.ADMIT, keys, args)]
        assert answer == expected
        return str(answer[0])

    def _settle(self, call: Call, verdict: str, free: int) -> None:
        keys = (
            self.shard.epoch,
            self.shard.holds_of(call.gateway),
            *self.shard.call(call.id, call.account, call.key),
            self.shard.events,
        )
        _, final, held, nonce = self._run(scripts.SETTLE, keys, (call.id, verdict, "why", "{}", free, 60_000))
        assert (final.decode(), held) == self.model.settle(call, verdict, free)
        assert nonce.decode() == f"n{self.model.epoch}"

    def _assert(self, call: Call) -> None:
        keys = (
            self.shard.epoch,
            self.shard.leases,
            self.shard.holds_of(call.gateway),
            *self.shard.call(call.id, call.account, call.key),
        )
        answer = self._run(scripts.ASSERT, keys, (f"n{self.model.epoch}", call.gateway, call.id, self._packed(call)))
        assert answer.decode() == self.model.put_back(call)

    def _sweep(self, gateway: str, call_id: str | None) -> None:
        call = self.model.calls.get(call_id or "", Call("", gateway, "", "", 0, 0, 0))
        of = self.shard.call(call.id, call.account, call.key)
        keys = (self.shard.epoch, self.shard.leases, self.shard.holds_of(gateway), *of,
                self.shard.events)  # fmt: skip
        run = self.server.hget(self.shard.epoch, "run")
        answer = self._run(scripts.SWEEP, keys, (run, gateway, call.id, "{}", 0, 60_000))
        assert answer.decode() == self.model.sweep(gateway, call_id)

    def _seed(self, account: str, key: str, day: int, version: int) -> None:
        gateways = [name.decode() for name in self._leased()]
        last = self.server.xrevrange(self.shard.events, count=1)
        keys = (self.shard.epoch, self.shard.leases, self.shard.account(account), self.shard.key(key), self.shard.events,
                *(self.shard.holds_of(gateway) for gateway in gateways))  # fmt: skip
        args = (f"n{self.model.epoch}", account, key, version, day, self.model.posted(day, account=account),
                self.model.posted(day, key=key), 0, last[0][0] if last else "0-0", self._offset(), *gateways)  # fmt: skip
        assert self._run(scripts.SEED, keys, args).decode() == self.model.seed(account, key, day, version)

    def _leased(self) -> list[bytes]:
        return list(self.server.zrange(self.shard.leases, 0, -1))  # type: ignore[arg-type] # without scores: names

    def _packed(self, call: Call) -> bytes:
        return orjson.dumps([call.account, call.key, call.day, call.fare, "m", "chat", 0, call.at_ms, f"n{self.model.epoch}"])

    def _offset(self) -> int:
        return self.model.clock_ms - time.time_ns() // 1_000_000

    def _run(self, script: Script, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
        try:
            return self.server.evalsha(script.sha, len(keys), *keys, *args)
        except redis.exceptions.NoScriptError:
            return self.server.eval(script.text, len(keys), *keys, *args)


def _counters(hash_: dict[bytes, bytes]) -> Counters:
    found = {field.decode(): value.decode() for field, value in hash_.items()}
    return Counters(
        n=int(found["n"][1:]) if "n" in found else 0,
        v=int(found.get("v", 0)),
        seeded=int(found["seeded"]) if "seeded" in found else None,
        open=int(found.get("open", 0)),
        u={int(field[1:]): int(value) for field, value in found.items() if field[0] == "u"},
        g={int(field[1:]): int(value) for field, value in found.items() if field[0] == "g"},
    )


@pytest.mark.timeout(120)
def test_scripts_do_what_the_model_does(peek: "redis.Redis") -> None:
    machine = type("ScriptsHere", (Scripts,), {"server": peek})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=120, stateful_step_count=40, deadline=None, derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )  # fmt: skip
