"""Proofs that the record adds up: what was compared, what was found, in words, and the latest ones as they are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from typing import Any, Literal

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

Kind = Literal["roll-up", "counter", "event", "subscription", "pack", "unproved"]
# Of one proof; whoever has more wants the command's answer anyway.
FINDINGS_KEPT = 200
# Any number that nothing else in this database locks: of two workers one proves.
_PROVING = 0xFA4E_0DA9

_KEEP = """
INSERT INTO reconciliations (night, began_at, took_ms, rows, counters, differences, repaired, findings)
VALUES (%(night)s, %(began_at)s, %(took_ms)s, %(rows)s, %(counters)s, %(differences)s, %(repaired)s, %(findings)s)
ON CONFLICT (night) DO NOTHING
"""
_LATEST = """
SELECT night, began_at, took_ms, rows, counters, differences, repaired, findings FROM reconciliations ORDER BY id DESC LIMIT 1
"""
_REJECTED = """
SELECT shard, position, problem, fields->>'id' FROM rejected_events WHERE at > %s ORDER BY at, shard, position LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be. `account` is its id, `name` its name where it has one."""

    kind: Kind
    what: str
    account: str | None = None
    name: str | None = None
    day: date | None = None
    is_repaired: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """`rows` were added up, `counters` compared."""

    began_at: datetime
    took_ms: int
    days: Sequence[date]
    rows: int
    counters: int
    findings: Sequence[Finding]

    def and_found(self, more: Sequence[Finding]) -> "Proof":
        return replace(self, findings=[*self.findings, *more])

    @property
    def left(self) -> int:
        """Findings that nobody has mended."""
        return sum(not one.is_repaired for one in self.findings)


@dataclass(frozen=True, slots=True)
class Kept:
    """A proof as it is remembered; `night` is None where a person asked for it."""

    night: date | None
    began_at: datetime
    took_ms: int
    rows: int
    counters: int
    differences: int
    repaired: int
    findings: Sequence[Mapping[str, Any]]


async def rejected_since(connection: AsyncConnection[TupleRow], since: datetime) -> list[Finding]:
    """Calls that were let in and have no row, as their events could not be read; each is kept whole in `rejected_events`."""
    cursor = await connection.execute(_REJECTED, (since, FINDINGS_KEPT))
    return [
        Finding("event", f"request {request_id or 'without an id'} has no row: {problem} (rejected_events, {shard}, {position})")
        for shard, position, problem, request_id in await cursor.fetchall()
    ]


async def names_of(connection: AsyncConnection[TupleRow], accounts: Sequence[str]) -> dict[str, str]:
    cursor = await connection.execute("SELECT id::text, name FROM accounts WHERE id::text = ANY(%s)", (list(accounts),))
    return dict(await cursor.fetchall())


async def keep(connection: AsyncConnection[TupleRow], proof: Proof, night: date | None = None) -> None:
    """A night has one proof: of two the first stands."""
    findings = [asdict(one) | {"day": one.day and one.day.isoformat()} for one in proof.findings[:FINDINGS_KEPT]]
    values = {
        "night": night, "began_at": proof.began_at, "took_ms": proof.took_ms, "rows": proof.rows, "counters": proof.counters,
        "differences": len(proof.findings), "repaired": len(proof.findings) - proof.left, "findings": Jsonb(findings),
    }  # fmt: skip
    await connection.execute(_KEEP, values)


async def latest(connection: AsyncConnection[TupleRow]) -> Kept | None:
    cursor = await connection.execute(_LATEST)
    row = await cursor.fetchone()
    return None if row is None else Kept(*row)


async def is_proved(connection: AsyncConnection[TupleRow], night: date) -> bool:
    cursor = await connection.execute("SELECT 1 FROM reconciliations WHERE night = %s", (night,))
    return await cursor.fetchone() is not None


async def begin_alone(connection: AsyncConnection[TupleRow]) -> bool:
    """Whether no other worker proves; until `end_alone`, or the connection's end."""
    cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_PROVING,))
    return await cursor.fetchone() == (True,)


async def end_alone(connection: AsyncConnection[TupleRow]) -> None:
    await connection.execute("SELECT pg_advisory_unlock(%s)", (_PROVING,))
