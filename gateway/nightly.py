"""The worker's nightly proof that everything adds up: once an installation, kept, logged, and told to the gateways' metrics."""

from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import TupleRow
from redis.asyncio import Redis

from billing.proofs import Proof, begin_alone, end_alone, is_proved, keep, latest
from gateway.clock import Clock
from gateway.log import Log
from gateway.reconciliation import prove
from gateway.settings import Settings
from gateway.stripe_proof import compare_with_stripe
from gateway.worker_metrics import PROOF_KEY

# UTC: the day before is over, its calls have ended, and most of the world is asleep.
HOUR = 3
LOOK_SECONDS = 60.0
# A proof of many days is no outage; each of its statements is one day's.
STATEMENT_TIMEOUT = "30min"
PROOF_LIFE_SECONDS = 600
# In one log line.
FINDINGS_LOGGED = 20

Session = psycopg.AsyncConnection[TupleRow]


class Nightly:
    """One per worker; of several, one proves."""

    def __init__(self, settings: Settings, valkey: Redis, clock: Clock, log: Log) -> None:
        self._settings, self._valkey, self._clock, self._log = settings, valkey, clock, log

    async def turn(self, connection: Session) -> int:
        """Proves when it is time. Raises psycopg's and Valkey's errors."""
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        if now.hour >= HOUR and not await is_proved(connection, now.date()) and await begin_alone(connection):
            try:
                await self._prove(connection, now)
            finally:
                await end_alone(connection)
        await self._tell(connection)
        return 0

    async def _prove(self, connection: Session, now: datetime) -> None:
        if await is_proved(connection, now.date()):  # the other worker has just done it
            return
        await connection.execute("SELECT set_config('statement_timeout', %s, false)", (STATEMENT_TIMEOUT,))
        proof = await prove(connection, self._valkey, now, shards=self._settings.shards)
        proof = proof.and_found(await compare_with_stripe(self._settings, now))
        await keep(connection, proof, now.date())
        self._note(proof)

    def _note(self, proof: Proof) -> None:
        facts = {"rows": proof.rows, "days": len(proof.days), "counters": proof.counters, "took_ms": proof.took_ms}
        if not proof.findings:
            self._log.info("reconciled", **facts)
            return
        found = [f"{one.name or one.account or ''} {one.what}".strip() for one in proof.findings[:FINDINGS_LOGGED]]
        self._log.error("reconciliation_differs", differences=len(proof.findings), found=found, **facts)

    async def _tell(self, connection: Session) -> None:
        """Again and again: a Valkey that has forgotten knows it a minute later."""
        proved = await latest(connection)
        if proved is None:
            return
        facts: dict[Any, Any] = {
            "at_ms": round(proved.began_at.timestamp() * 1000),
            "rows": proved.rows,
            "counters": proved.counters,
            "differences": proved.differences - proved.repaired,
            "took_ms": proved.took_ms,
        }
        pipeline = self._valkey.pipeline(transaction=False)
        pipeline.hset(PROOF_KEY, mapping=facts)
        pipeline.expire(PROOF_KEY, PROOF_LIFE_SECONDS)
        await pipeline.execute()
