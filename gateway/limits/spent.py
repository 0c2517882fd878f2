"""Who has used up the day's quota, and packs: found once by the script, afterwards by counters, so that a flood runs no script.

A note only says whom to look at: what refuses is the counter itself, read at most once in `FRESH_SECONDS` for each account or
key, however many ask. So a fare that is given back, a new version of the account (a pack that was bought is one), the next day
and a Valkey that forgot are all seen, and the gate decides again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from billing.days import month_number
from gateway.clock import DAY_MS
from gateway.limits.hold import Ask
from gateway.limits.policy import Numbers
from gateway.limits.refusals import PacksUsed, QuotaUsedUp, Scope
from gateway.limits.shard import Shard, shard_of
from gateway.valkey import Valkey, ValkeyRefused, ValkeyUnavailable

NOTES_MAX = 10_000  # about 0.5 KB each; the oldest goes, and costs a script when it comes again
# A fare that is given back may be seen so much later; an end is on its way to Valkey about as long.
FRESH_SECONDS = 0.02


def packs_used(limits: Numbers, used: int = 0, used_this_month: int = 0) -> PacksUsed | None:
    """None where the plan does not go on with packs."""
    if limits.pack_fares < 0:
        return None
    return PacksUsed(limits.pack_fares, used, limits.pack_fares_per_month, used_this_month)


def quota_used_up(ask: Ask, scope: Scope, used: int, packs: Sequence[int]) -> QuotaUsedUp:
    """`packs`: the fares used of them, ever and this month; empty where there are none."""
    resets_at_ms = (ask.day + 1) * DAY_MS
    if scope == "key":
        return QuotaUsedUp(scope, ask.numbers.key_quota, used, resets_at_ms)
    return QuotaUsedUp(scope, ask.numbers.quota, used, resets_at_ms, packs_used(ask.numbers, *packs))


@dataclass(slots=True)
class Note:
    """`used` and `packs` are fares, as of `read_at` (loop time)."""

    scope: Scope
    day: int
    version: int
    used: int
    packs: Sequence[int]
    read_at: float
    reading: "asyncio.Future[int | None] | None" = field(default=None, repr=False)


class Spent:
    """One per gate. Empty, it costs a call nothing."""

    def __init__(self, valkey: Valkey, shards: Sequence[Shard]) -> None:
        self._valkey, self._shards = valkey, shards
        self._notes: OrderedDict[str, Note] = OrderedDict()

    def __len__(self) -> int:
        return len(self._notes)

    def note(self, ask: Ask, refused: QuotaUsedUp) -> None:
        """The script has just said so."""
        name = ask.account if refused.scope == "account" else ask.key
        now = asyncio.get_running_loop().time()
        packs = refused.packs
        of_packs = (packs.used, packs.used_this_month) if packs is not None and packs.bought > 0 else ()
        self._notes[name] = Note(refused.scope, ask.day, ask.version, refused.used, of_packs, now)
        self._notes.move_to_end(name)
        if len(self._notes) > NOTES_MAX:
            self._notes.popitem(last=False)

    async def check(self, ask: Ask) -> None:
        """Raises: QuotaUsedUp, for a call that its gate would refuse; every other goes on to the gate."""
        for name, limit in ((ask.account, ask.numbers.quota), (ask.key, ask.numbers.key_quota)):
            note = self._notes.get(name)
            if note is None or limit < 0:
                continue
            used = await self._used(name, note, ask) if (note.day, note.version) == (ask.day, ask.version) else None
            if used is None:
                self._notes.pop(name, None)
            elif used + ask.fare > limit:
                refused = quota_used_up(ask, note.scope, used, note.packs)
                if refused.packs is None or not refused.packs.pay(ask.fare):
                    raise refused

    async def _used(self, name: str, note: Note, ask: Ask) -> int | None:
        """None when the note no longer holds, or nobody can tell."""
        if asyncio.get_running_loop().time() - note.read_at < FRESH_SECONDS:
            return note.used
        if note.reading is None:
            note.reading = asyncio.ensure_future(self._read(name, note, ask.account))
        used = await asyncio.shield(note.reading)  # whoever leaves takes nothing from the others
        note.reading = None
        return used

    async def _read(self, name: str, note: Note, account: str) -> int | None:
        shard = self._shards[shard_of(account, len(self._shards))]
        counter = shard.account(name) if note.scope == "account" else shard.key(name)
        try:
            (nonce, used, *packs), (version,) = await asyncio.gather(
                self._valkey.call("HMGET", counter, "n", f"u{note.day}", "b", f"c{month_number(note.day)}"),
                self._valkey.call("HMGET", shard.account(account), "v"),
            )
        except (ValkeyUnavailable, ValkeyRefused):
            return None
        if nonce != shard.nonce.encode() or used is None or version is None or int(version) > note.version:
            return None
        if note.packs:
            if None in packs:
                return None
            note.packs = tuple(map(int, packs))
        note.used, note.read_at = int(used), asyncio.get_running_loop().time()
        return note.used
