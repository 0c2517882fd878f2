"""An idempotency key is one call's: it runs once, its answer is there before its end is, and a dead owner is found out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import redis

from gateway.limits import idempotency, scripts
from gateway.limits.gate import Gate, GateClosed
from gateway.limits.idempotency import READ_AT_ONCE, Claim
from gateway.limits.refusals import IdempotencyKeyInUse, IdempotencyKeyReused
from tests.limits.house import ACCOUNT, a_gate, an_ask, event_of, serve

RUNNING_MS = 60_000
LEASE_MS = 400


@pytest.fixture
async def gate(url: str) -> AsyncIterator[Gate]:
    async with a_gate(url) as opened:
        await until(lambda: opened._valkey.connected)
        yield opened


def a_claim(gate: Gate, name: str = "n", *, body: str = "b", request_id: str = "", keep_ms: int = 60_000) -> Claim:
    return Claim(gate.once.shard_of(ACCOUNT), ACCOUNT, name, body, request_id or an_ask().request_id, keep_ms)


async def taken(gate: Gate, claim: Claim) -> Claim:
    assert await gate.once.claim(claim, RUNNING_MS) is None
    return claim


async def kept(gate: Gate, claim: Claim, answer: bytes | None) -> None:
    gate.once.keep(claim, answer)
    await acknowledged(gate)


async def done(gate: Gate, claim: Claim) -> tuple[str | None, bytes]:
    """Who had the key, and what is kept of his call."""
    return await gate.once.claim(claim, RUNNING_MS), await gate.once.answer(claim)


async def acknowledged(gate: Gate) -> None:
    await until(lambda: not gate.once._unacknowledged)


async def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    for _ in range(round(seconds * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never came to pass")


async def test_the_first_runs_the_others_wait_and_then_have_its_answer(gate: Gate) -> None:
    first = await taken(gate, a_claim(gate))
    with pytest.raises(IdempotencyKeyInUse):
        await gate.once.claim(a_claim(gate), RUNNING_MS)
    await kept(gate, first, b"sealed")
    assert await done(gate, a_claim(gate)) == (first.request_id, b"sealed")


async def test_a_gateways_first_call_in_a_shard_is_known_to_live(gate: Gate, peek: redis.Redis) -> None:
    """It leases the shard in the same write: without a lease the next one would take it for dead."""
    peek.hset(gate.once.shard_of(ACCOUNT).epoch, "since", 0)
    await taken(gate, a_claim(gate))
    with pytest.raises(IdempotencyKeyInUse):
        await gate.once.claim(a_claim(gate), RUNNING_MS)


async def test_of_a_crowd_one_runs(gate: Gate) -> None:
    outcomes = await asyncio.gather(*(gate.once.claim(a_claim(gate), RUNNING_MS) for _ in range(20)), return_exceptions=True)
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, IdempotencyKeyInUse) for outcome in outcomes) == 19


async def test_another_body_is_refused_while_the_first_runs_and_when_it_is_done(gate: Gate) -> None:
    first = await taken(gate, a_claim(gate))
    with pytest.raises(IdempotencyKeyReused):
        await gate.once.claim(a_claim(gate, body="other"), RUNNING_MS)
    await kept(gate, first, b"sealed")
    with pytest.raises(IdempotencyKeyReused):
        await gate.once.claim(a_claim(gate, body="other"), RUNNING_MS)


async def test_a_call_that_failed_leaves_its_key_to_the_next_with_any_body(gate: Gate) -> None:
    gate.once.free(await taken(gate, a_claim(gate)))
    await taken(gate, a_claim(gate, body="other"))


async def test_nobody_frees_or_fills_the_key_of_another(gate: Gate) -> None:
    first = await taken(gate, a_claim(gate))
    gate.once.free(a_claim(gate))
    await kept(gate, a_claim(gate), b"not mine")
    with pytest.raises(IdempotencyKeyInUse):
        await gate.once.claim(a_claim(gate), RUNNING_MS)
    await kept(gate, first, b"mine")
    gate.once.free(first)
    assert await done(gate, a_claim(gate)) == (first.request_id, b"mine")


async def test_an_answer_goes_when_its_time_is_over(gate: Gate) -> None:
    await kept(gate, await taken(gate, a_claim(gate, keep_ms=60)), b"sealed")
    await asyncio.sleep(0.1)
    await taken(gate, a_claim(gate))


async def test_a_call_that_never_ends_does_not_keep_its_key_for_ever(gate: Gate) -> None:
    assert await gate.once.claim(a_claim(gate), 60) is None
    await asyncio.sleep(0.1)
    await taken(gate, a_claim(gate))


async def test_an_answer_that_is_too_large_is_known_to_be_done(gate: Gate) -> None:
    first = await taken(gate, a_claim(gate))
    await kept(gate, first, None)
    assert await done(gate, a_claim(gate)) == (first.request_id, b"")
    assert gate.once.unkept == 1


async def test_what_is_on_its_way_is_bounded(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "IN_FLIGHT_BYTES_MAX", 10)
    claims = [await taken(gate, a_claim(gate, name)) for name in ("a", "b", "c")]
    gate.once.keep(claims[0], b"12345678")
    gate.once.keep(claims[1], b"12345678")
    await acknowledged(gate)
    await kept(gate, claims[2], b"12345678")
    assert [await gate.once.answer(claim) for claim in claims] == [b"12345678", b"", b"12345678"]


@pytest.mark.parametrize("limit", ["ANSWERS_MAX", "ANSWER_BYTES_MAX"])
async def test_an_accounts_oldest_answers_make_room(
    gate: Gate, peek: redis.Redis, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(idempotency, limit, 3 if limit == "ANSWERS_MAX" else 30)
    for number in range(5):
        await kept(gate, await taken(gate, a_claim(gate, str(number))), b"ten bytes!")
        await asyncio.sleep(0.002)  # the order is by milliseconds
    await until(lambda: len(list(peek.scan_iter("*:i:*"))) == 3)
    assert [await gate.once.claim(a_claim(gate, str(number)), RUNNING_MS) is None for number in (0, 1)] == [True, True]
    assert all([await gate.once.claim(a_claim(gate, str(number)), RUNNING_MS) for number in (2, 3, 4)])


async def test_making_room_takes_no_key_from_a_call_that_runs(gate: Gate) -> None:
    running = await taken(gate, a_claim(gate))
    gate.once._make_room(running, running.name)
    with pytest.raises(IdempotencyKeyInUse):
        await gate.once.claim(a_claim(gate), RUNNING_MS)


async def test_everything_stands_in_the_accounts_shard_and_goes_by_itself(gate: Gate, peek: redis.Redis) -> None:
    await kept(gate, await taken(gate, a_claim(gate)), b"sealed")
    names = [name for pattern in ("*:i:*", "*:ia:*") for name in peek.scan_iter(pattern)]
    assert len(names) == 2
    for name in names:
        assert name.startswith(gate.once.shard_of(ACCOUNT).tag.encode() + b":")
        assert 0 < peek.pttl(name) <= 60_000


async def dead_owner(url: str, *, held: bool) -> tuple[Claim, Any]:
    """A gateway that took a key (and a hold), and died."""
    async with a_gate(url, lease_ms=LEASE_MS) as dying:
        ask = an_ask()
        claim = await taken(dying, a_claim(dying, request_id=ask.request_id))
        if held:
            await dying.admit(ask)
    return claim, ask


async def test_a_dead_gateways_call_keeps_its_key_until_its_hold_is_swept(url: str) -> None:
    """While the hold is there, the call could still be posted: a second one would be a second fare."""
    async with a_gate(url, lease_ms=LEASE_MS) as living:
        await living.sweeper.close()
        await dead_owner(url, held=True)
        await asyncio.sleep(2 * LEASE_MS / 1000)
        with pytest.raises(IdempotencyKeyInUse):
            await living.once.claim(a_claim(living), RUNNING_MS)
        living.sweeper.start()
        await until(lambda: living.sweeper.swept == 1)
        await taken(living, a_claim(living))


async def test_a_dead_gateways_claim_is_taken_over_by_one_alone(url: str) -> None:
    async with a_gate(url, lease_ms=LEASE_MS) as living:
        await dead_owner(url, held=False)
        with pytest.raises(IdempotencyKeyInUse):
            await living.once.claim(a_claim(living), RUNNING_MS)
        await asyncio.sleep(2 * LEASE_MS / 1000)
        outcomes = await asyncio.gather(
            *(living.once.claim(a_claim(living), RUNNING_MS) for _ in range(10)), return_exceptions=True
        )
        assert outcomes.count(None) == 1
        assert sum(isinstance(outcome, IdempotencyKeyInUse) for outcome in outcomes) == 9


async def test_a_frozen_gateway_that_wakes_is_not_admitted_with_a_key_that_was_taken_over(url: str) -> None:
    async with a_gate(url, lease_ms=LEASE_MS) as living:
        async with a_gate(url, lease_ms=LEASE_MS) as frozen:
            ask = an_ask()
            old = await taken(frozen, a_claim(frozen, request_id=ask.request_id))
            frozen.leases._beating.cancel()  # type: ignore[union-attr]  # it runs
            await asyncio.sleep(2 * LEASE_MS / 1000)
            new = await taken(living, a_claim(living))
            with pytest.raises(GateClosed, match="settled"):
                await frozen.admit(ask)
            frozen.once.free(old)
            await kept(frozen, old, b"old")
        await kept(living, new, b"new")
        assert await done(living, a_claim(living)) == (new.request_id, b"new")


async def test_a_gateway_that_dies_between_answer_and_settle_leaves_the_answer_and_takes_no_fare(
    url: str, peek: redis.Redis
) -> None:
    async with a_gate(url, lease_ms=LEASE_MS) as living:
        async with a_gate(url, lease_ms=LEASE_MS) as dying:
            ask = an_ask()
            claim = await taken(dying, a_claim(dying, request_id=ask.request_id))
            await dying.admit(ask)
            await kept(dying, claim, b"sealed")
        await until(lambda: living.sweeper.swept == 1)
        assert await done(living, a_claim(living)) == (ask.request_id, b"sealed")
        events: Any = peek.xrange(living.once.shard_of(ACCOUNT).events)
        assert [fields[b"v"] for _, fields in events] == [b"expired"]


async def test_a_crowd_that_reads_large_answers_does_not_cost_others_the_connection(gate: Gate) -> None:
    claim = await taken(gate, a_claim(gate))
    await kept(gate, claim, bytes(2**16))
    reading = [asyncio.create_task(gate.once.answer(claim)) for _ in range(100)]
    await asyncio.sleep(0)
    link: Any = gate._valkey._link
    assert sum(b"HGET" in sent.packed[:20] for sent in link._pending) == READ_AT_ONCE
    assert {len(answer) for answer in await asyncio.gather(*reading)} == {2**16}


async def test_a_server_that_was_away_gives_its_gateways_time_to_come_back(url: str, peek: redis.Redis) -> None:
    """Their leases ran out meanwhile, though they live."""
    async with a_gate(url, lease_ms=LEASE_MS) as living:
        await dead_owner(url, held=False)
        await asyncio.sleep(2 * LEASE_MS / 1000)
        epoch = living.once.shard_of(ACCOUNT).epoch
        seconds, micros = peek.time()
        peek.hset(epoch, "since", seconds * 1000 + micros // 1000)
        with pytest.raises(IdempotencyKeyInUse):
            await living.once.claim(a_claim(living), RUNNING_MS)


async def test_the_answer_is_there_before_the_settle_is_and_after_a_lost_connection_too(
    gate: Gate, url: str, peek: redis.Redis
) -> None:
    for cut in (False, True):
        ask = an_ask()
        claim = await taken(gate, a_claim(gate, str(cut), request_id=ask.request_id))
        hold = await gate.admit(ask)
        with redis.Redis.from_url(url) as watcher, watcher.monitor() as monitor:
            if cut:
                losses = gate._valkey.losses
                peek.client_kill_filter(_type="normal", skipme=True, addr=_address_of(peek, gate))
                await until(lambda: not gate._valkey.connected or gate._valkey.losses > losses)  # noqa: B023 - called at once
            with hold:
                hold.settle("posted", "answered", event_of(ask))
                gate.once.keep(claim, b"sealed")
            await acknowledged(gate)
            assert await gate.flush(5) == 0
            seen = _scripts_in(monitor)
        assert [sha for sha in seen if sha in (scripts.ONCE_KEEP.sha, scripts.SETTLE.sha)] == [
            scripts.ONCE_KEEP.sha,
            scripts.SETTLE.sha,
        ]
        assert await done(gate, a_claim(gate, str(cut))) == (ask.request_id, b"sealed")


def _address_of(peek: redis.Redis, gate: Gate) -> str:
    link: Any = gate._valkey._link
    host, port = link._transport.get_extra_info("sockname")[:2]
    return f"{host}:{port}"


def _scripts_in(monitor: Any) -> list[str]:
    """The SHA of each script that ran, up to now."""
    with redis.Redis(connection_pool=monitor.connection_pool) as marker:
        marker.echo("so far")
    seen: list[str] = []
    while True:
        words = monitor.next_command()["command"].split()
        if words[:2] == ["ECHO", "so"]:
            return seen
        if words[0] == "EVALSHA":
            seen.append(words[1])


async def test_a_caller_who_leaves_while_it_asks_leaves_the_key_to_others(gate: Gate) -> None:
    asking = asyncio.create_task(gate.once.claim(a_claim(gate), RUNNING_MS))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await acknowledged(gate)
    await taken(gate, a_claim(gate))


async def test_without_valkey_no_key_is_given_out(gate: Gate) -> None:
    await gate._valkey.close()
    with pytest.raises(GateClosed):
        await gate.once.claim(a_claim(gate), RUNNING_MS)


async def test_calls_without_a_key_are_not_concerned(gate: Gate, peek: redis.Redis) -> None:
    await serve(gate, an_ask())
    assert list(peek.scan_iter("*:i*")) == []
