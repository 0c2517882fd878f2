"""May this call run now? The one face of the limits: admit a call, get a hold that settles itself."""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.clock import Clock
from gateway.crash import crash_point
from gateway.limits import scripts
from gateway.limits.hold import Ask, Hold
from gateway.limits.idempotency import Idempotency
from gateway.limits.lease import OPENING_MS, Leases
from gateway.limits.outbox import Outbox
from gateway.limits.policy import Numbers
from gateway.limits.rebuild import Rebuild, Source
from gateway.limits.refusals import GateClosed, PacksUsed, QuotaUsedUp, RateExceeded, SnapshotStale, TooManyOpenCalls
from gateway.limits.shard import SHARDS, Shard, shard_of
from gateway.limits.spent import Spent, packs_used, quota_used_up
from gateway.limits.sweep import Sweeper
from gateway.valkey import Valkey, ValkeyRefused, ValkeyUnavailable

__all__ = ["Ask", "Gate", "GateClosed", "Hold", "QuotaUsedUp", "RateExceeded", "SnapshotStale", "TooManyOpenCalls"]

# The longest that a call waits while an epoch opens; then it is told to come back.
OPENING_WAIT_SECONDS = 1.5
NO_LIMITS = Numbers()
# Ways to be sent round (lease, epoch, cold) before something is wrong that waiting does not mend.
TRIES_MAX = 8


class Usage(NamedTuple):
    """Fares of the account and of the key today, the account's calls that are open, and its packs (None: its plan has none)."""

    used: int
    key_used: int
    open_calls: int
    packs: PacksUsed | None


class Gate:
    def __init__(self, valkey: Valkey, clock: Clock, source: Source, *, gateway: str, shards: int = SHARDS,
                 lease_ms: int = 5000, opening_ms: int = OPENING_MS) -> None:  # fmt: skip
        # A name that is used once: under a name that came back, the holds of the process before would never be swept.
        gateway = f"{gateway}.{secrets.token_hex(4)}"
        self._valkey, self._clock, self._gateway = valkey, clock, gateway
        self.shards: Sequence[Shard] = tuple(Shard(number, gateway) for number in range(shards))
        self.outbox = Outbox(valkey, self.shards, gateway)
        self.leases = Leases(valkey, self.shards, self.outbox, clock, gateway=gateway, lease_ms=lease_ms, opening_ms=opening_ms)
        self.once = Idempotency(valkey, self.shards, self.leases, gateway=gateway, lease_ms=lease_ms)
        self.sweeper = Sweeper(valkey, clock, gateway=gateway, shards=shards, lease_ms=lease_ms, opening_ms=opening_ms)
        self.spent = Spent(valkey, self.shards)
        self._rebuild = Rebuild(valkey, source, clock)

    async def start(self) -> None:
        """After `valkey.start()`; a Valkey that is away is no error, calls are refused until it is back."""
        await self.leases.start()
        self.sweeper.start()

    async def flush(self, timeout_seconds: float) -> int:
        """Wait until every end is acknowledged; returns how many are not."""
        return await self.outbox.flush(timeout_seconds)

    async def close(self) -> None:
        await self.sweeper.close()
        await self.leases.close()

    @property
    def open_calls(self) -> int:
        return sum(len(shard.open) for shard in self.shards)

    async def admit(self, ask: Ask) -> Hold:
        """Take the fare and everything else, or nothing. Enter the hold's `with` before anything is awaited.

        Raises: QuotaUsedUp, RateExceeded, TooManyOpenCalls, SnapshotStale, GateClosed.
        """
        shard = self.shards[shard_of(ask.account, len(self.shards))]
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + OPENING_WAIT_SECONDS
        for _ in range(TRIES_MAX):
            now = shard.used_at = loop.time()
            self._check_open()
            if now >= shard.leased_until:
                self.leases.renew(shard)
            nonce = shard.nonce
            answer = await self._ask(shard, ask, nonce)
            if answer[0] == b"admitted":
                return self._hold(shard, ask, nonce, answer)
            if answer[0] == b"opening":
                if now + answer[1] / 1000 > give_up_at:
                    raise GateClosed("Valkey has just come back", answer[1])
                await asyncio.sleep(answer[1] / 1000)
            else:
                await self._mend(answer, shard, ask)
        raise GateClosed("no answer that holds still")

    async def usage(self, account: str, key: str, limits: Numbers = NO_LIMITS) -> Usage:
        """What is used today, and of the account's packs, if its limits say that it has some. Raises: GateClosed."""
        shard = self.shards[shard_of(account, len(self.shards))]
        ask = Ask(self._clock.new_request_id(), account, key, 0, 1, limits, "", "", stream=False)
        for _ in range(TRIES_MAX):
            self._check_open()
            try:
                found = await self._peek(shard, ask)
                if found is not None:
                    return found
                await self._rebuild.warm(shard, ask)
            except (ValkeyUnavailable, ValkeyRefused) as error:
                raise GateClosed("Valkey does not answer") from error
        raise GateClosed("no answer that holds still")

    async def _peek(self, shard: Shard, ask: Ask) -> Usage | None:
        """The counters, or None when they are not known (the same rule as in admit.lua)."""
        counter = f"u{ask.day}"
        account, key = await asyncio.gather(
            self._valkey.call("HMGET", shard.account(ask.account), "n", "seeded", counter, "open", "b", f"c{ask.month}"),
            self._valkey.call("HMGET", shard.key(ask.key), "n", "seeded", counter),
        )
        if not (_is_known(account, shard.nonce, ask.day) and _is_known(key, shard.nonce, ask.day)):
            return None
        packs = account[4:] if ask.numbers.pack_fares > 0 else (0, 0)
        if None in packs:
            return None
        return Usage(int(account[2] or 0), int(key[2] or 0), int(account[3] or 0), packs_used(ask.numbers, *map(int, packs)))

    def _check_open(self) -> None:
        if not self._valkey.connected:
            raise GateClosed("Valkey is away")
        if self.outbox.is_full:
            raise GateClosed("too many calls are not settled yet")

    async def _ask(self, shard: Shard, ask: Ask, nonce: str) -> list[Any]:
        limits = ask.numbers
        keys = (shard.epoch, shard.leases, shard.holds, *shard.call(ask.request_id, ask.account, ask.key))
        packs = (limits.pack_fares, limits.pack_fares_per_month, ask.month) if limits.pack_fares > 0 else ()
        args = (
            nonce, self._gateway, ask.request_id, ask.at_ms, ask.day, ask.version, ask.fare, limits.quota, limits.key_quota,
            limits.rpm, limits.burst, limits.key_rpm, limits.key_burst, limits.concurrency, ask.packed(nonce),
            self._clock.offset_ms, *packs,
        )  # fmt: skip
        crash_point("gate:before_admit")
        answer = self._valkey.script(scripts.ADMIT, keys, args)
        try:
            return await answer  # type: ignore[no-any-return] # the script answers a list
        except ValkeyUnavailable as error:
            if error.maybe_sent:
                self.outbox.void_unknown(ask)
            raise GateClosed("Valkey does not answer") from error
        except ValkeyRefused as error:
            self.outbox.void_unknown(ask)
            raise GateClosed(f"Valkey refuses: {error}") from error
        except asyncio.CancelledError:
            self.outbox.void_unknown(ask)  # the caller left; the script runs all the same
            raise

    def _hold(self, shard: Shard, ask: Ask, nonce: str, answer: list[Any]) -> Hold:
        crash_point("gate:after_admit")
        ask.from_pack = len(answer) > 3  # how much of its packs the account has used
        hold = Hold(ask, *answer[1:], close=self.outbox.close_hold)
        shard.open[ask.request_id] = hold
        if nonce != shard.nonce:  # an epoch ended while the answer was on its way
            self.leases.put_back(hold, shard, shard.nonce).add_done_callback(lambda done: done.cancelled() or done.exception())
        return hold

    async def _mend(self, answer: list[Any], shard: Shard, ask: Ask) -> None:
        """Do what the answer asks for before the next try, or raise what it says."""
        match answer:
            case [b"lease"]:
                self.leases.renew(shard)
            case [b"epoch"]:
                await self._reopened()
            case [b"cold"]:
                await self._rebuild.warm(shard, ask)
            case [b"stale"]:
                raise SnapshotStale
            case [b"rate", scope, wait_ms]:
                limit = ask.numbers.rpm if scope == b"account" else ask.numbers.key_rpm
                raise RateExceeded(scope.decode(), limit, wait_ms)
            case [b"concurrency", open_calls]:
                raise TooManyOpenCalls(ask.numbers.concurrency, open_calls)
            case [b"quota", scope, used, *packs_used]:
                refused = quota_used_up(ask, scope.decode(), used, packs_used)
                self.spent.note(ask, refused)
                raise refused
            case _:  # skew: the clocks differ by a minute; settled: this id has ended
                raise GateClosed(f"refused: {answer[0].decode()}")

    async def _reopened(self) -> None:
        try:
            await asyncio.shield(self.leases.reopen())
        except (ValkeyUnavailable, ValkeyRefused) as error:
            raise GateClosed("Valkey has forgotten its epoch") from error


def _is_known(counters: Sequence[bytes | None], nonce: str, day: int) -> bool:
    of, seeded, count = counters[:3]
    return of == nonce.encode() and (count is not None or (seeded is not None and day > int(seeded)))
