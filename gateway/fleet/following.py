"""One gateway and the fleet's record: it follows what operators ask for within half a second, and tells what it sees and runs.

While PostgreSQL is away, what was read last stands. What is told, in Valkey, is who has followed how far, and what each gateway
still runs where: so `faregate backends drain --wait` knows when nothing is left.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import orjson
from psycopg.errors import UndefinedTable
from pydantic import ValidationError

from backends.entry import Entry, KeyMissing
from backends.fleet import Replica
from backends.readiness import Readiness
from backends.roster import Record, Roster, pool_of
from backends.states import Event, State, after, assertion
from billing.reader import Reader, RecordUnavailable
from gateway.clock import Clock
from gateway.fleet.views import FLEET_KEY, View, told
from gateway.log import Log
from gateway.valkey import Valkey

EVERY_SECONDS = 0.4
# Told anew at least so often, though nothing has changed.
TELL_SECONDS = 1.0

CHANGES = "SELECT coalesce(sum(version), 0)::bigint AS changes FROM replicas"
RECORDS = "SELECT id, origin, entry, state, version FROM replicas"
ENROL = """
INSERT INTO replicas (id, origin, state) SELECT each ->> 'id', each ->> 'origin', 'starting'
  FROM jsonb_array_elements(%(found)s::jsonb) AS each
ON CONFLICT (id) DO NOTHING RETURNING id
"""
CHANGE = """
WITH changed AS (
    UPDATE replicas SET state = %(after)s, version = version + 1, changed_at = now()
     WHERE id = %(id)s AND state = %(before)s RETURNING id
)
INSERT INTO audit_entries (actor, action, subject, details)
SELECT %(actor)s, %(action)s, id, jsonb_build_object('from', %(before)s::text, 'to', %(after)s::text) FROM changed RETURNING id
"""


class Load(Protocol):
    """Of `backends.queue.Queue`, how many calls of this gateway run where."""

    def load(self, pool: str) -> Mapping[str, int]: ...


class Following:
    """`once()` at the start, then `run()` as long as the gateway lives."""

    def __init__(
        self, roster: Roster, readiness: Readiness, reader: Reader, is_known: Callable[[str], bool], *,
        gateway: str, folder: Path, log: Log,
    ) -> None:  # fmt: skip
        """`is_known` says whether the catalogue has a model; `folder` is where added replicas' files are found from."""
        self._roster, self._readiness, self._reader, self._is_known = roster, readiness, reader, is_known
        self._gateway, self._folder, self._log = gateway, folder, log
        self._changes = -1
        self._well: frozenset[str] = frozenset()
        self._fallen: set[str] = set()

    async def once(self) -> None:
        """What the record has, and what this gateway has to say to it. A record that can't be asked stays as it is known; one
        that is not migrated yet is such."""
        try:
            await self._read()
            await self._enrol()
            await self._assert()
        except (RecordUnavailable, UndefinedTable):
            return

    async def run(self, valkey: Valkey, clock: Clock, queue: Load) -> None:
        """Runs until cancelled."""
        before: Mapping[str, View] = {}
        told_at, loop = 0.0, asyncio.get_running_loop()
        while True:
            await self.once()
            views = {replica.id: self._view(replica, queue) for replica in self._roster.replicas}
            if views != before or loop.time() - told_at >= TELL_SECONDS:
                before, told_at = views, loop.time()
                sent = valkey.call("HSET", FLEET_KEY, self._gateway, told(views, clock.now_ms()))
                sent.add_done_callback(lambda done: done.cancelled() or done.exception())  # it is told again in a second
            await asyncio.sleep(EVERY_SECONDS)

    async def _read(self) -> None:
        changes = (await self._reader.ask(CHANGES, {}))[0]["changes"]
        if changes == self._changes:
            return
        rows = await self._reader.ask(RECORDS, {})
        records = {row["id"]: Record(State(row["state"]), row["version"]) for row in rows}
        if self._changes < 0:
            self._believe(records)
        self._roster.follow(records, self._added(rows))
        self._changes = changes

    def _believe(self, records: Mapping[str, Record]) -> None:
        """What was broken when this gateway began gets no calls before it has been seen."""
        for replica_id, record in records.items():
            if record.state in (State.BROKEN, State.WAKING):
                self._readiness.unseen(replica_id)

    def _added(self, rows: Iterable[Mapping[str, Any]]) -> Iterable[Replica]:
        for row in rows:
            if row["entry"] is None or row["state"] == State.GONE:
                continue
            try:
                entry = Entry.model_validate(row["entry"])
                if self._is_known(entry.model):
                    yield entry.replica(self._folder)
            except (ValidationError, KeyMissing) as error:
                self._log.error("replica_left_out", replica=row["id"], why=str(error)[:300])

    async def _enrol(self) -> None:
        """Those that the record has never heard of."""
        new = [replica.id for replica in self._roster.replicas if not self._roster.version(replica.id)]
        if new:
            found = [{"id": one, "origin": self._roster.origin(one)} for one in new]
            await self._reader.ask(ENROL, {"found": orjson.dumps(found).decode()})
            await self._read()

    async def _assert(self) -> None:
        well = frozenset(replica.id for replica in self._roster.replicas if self._readiness.is_well(replica.id))
        self._fallen = (self._fallen | (self._well - well)) - well
        self._well = well
        for replica in self._roster.replicas:
            state, fell = self._roster.state(replica.id), replica.id in self._fallen
            event = assertion(state, is_up=replica.id in well, fell=fell)
            if event is not None:
                await self._change(replica.id, state, event)
            self._fallen.discard(replica.id)

    async def _change(self, replica_id: str, state: State, event: Event) -> None:
        """Only from the state that this gateway knows of: who else was first is read with the next look."""
        after_it = after(state, event)
        values = {"id": replica_id, "before": state, "after": after_it, "actor": f"gateway:{self._gateway}"}
        if await self._reader.ask(CHANGE, {**values, "action": f"replica.{event}"}):
            self._log.info("replica_state", replica=replica_id, was=state, now=after_it)

    def _view(self, replica: Replica, queue: Load) -> View:
        return View(
            version=self._roster.version(replica.id),
            is_well=self._readiness.is_well(replica.id),
            running=queue.load(pool_of(replica)).get(replica.id, 0),
            origin=self._roster.origin(replica.id),
            model=replica.model,
            url=replica.url,
            slots=replica.slots,
        )
