"""Who has used up the day's quota: found once by the script, afterwards by two counters, so that a flood runs no script.

A note only says whom to look at: what refuses is the counter itself, read at most once in `FRESH_SECONDS` for each account or
key, however many ask. So a fare that is given back, a new version of the account, the next day and a Valkey that forgot are
all seen, and the gate decides again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.clock import DAY_MS
from gateway.limits.hold import Ask
from gateway.limits.refusals import QuotaUsedUp, Scope
from gateway.limits.shard import Shard, shard_of
from gateway.valkey import Valkey, ValkeyRefused, ValkeyUnavailable

NOTES_MAX = 10_000  # about 0.5 KB each; the oldest goes, and costs a script when it comes again
# A fare that is given back may be seen so much later; an end is on its way to Valkey about as long.
FRESH_SECONDS = 0.02


@dataclass(slots=True)
class Note:
    """`used` are fares, as of `read_at` (loop time)."""

    scope: Scope
    day: int
    version: int
    used: int
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
        self._notes[name] = Note(refused.scope, ask.day, ask.version, refused.used, now)
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
                raise QuotaUsedUp(note.scope, limit, used, (ask.day + 1) * DAY_MS)

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
            (nonce, used), (version,) = await asyncio.gather(
                self._valkey.call("HMGET", counter, "n", f"u{note.day}"),
                self._valkey.call("HMGET", shard.account(account), "v"),
            )
        except (ValkeyUnavailable, ValkeyRefused):
            return None
        if nonce != shard.nonce.encode() or used is None or version is None or int(version) > note.version:
            return None
        note.used, note.read_at = int(used), asyncio.get_running_loop().time()
        return note.used
