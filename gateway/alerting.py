"""The worker's two loops for alerts: notice who has reached a threshold, and tell the address that the account has named."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import psycopg
from psycopg.rows import TupleRow

from billing.alerts import Due, delivered, failed, note, quotas_of, take_due, used_by_account
from billing.days import date_of
from gateway.clock import Clock
from gateway.fetch.post import NotDelivered, Poster
from gateway.log import Log
from gateway.signing import signed, signing_secret

# A threshold is noticed so long after the call that reached it is in the ledger, and its address told at once.
NOTICE_SECONDS = 2.0
DELIVER_SECONDS = 1.0
# A receiver that is slow holds up no more than these.
AT_ONCE = 16

Session = psycopg.AsyncConnection[TupleRow]


class Alerting:
    """One per worker; several are harmless, as a row of the record says what was noticed and who tells it."""

    def __init__(self, pepper: str, poster: Poster, clock: Clock, log: Log, *, grace_days: int) -> None:
        self._grace_days = grace_days
        self._pepper, self._poster, self._clock, self._log = pepper, poster, clock, log
        self._seen: tuple[int, Mapping[UUID, int]] = (0, {})

    async def notice(self, connection: Session) -> int:
        """Of accounts that have used more than when this worker last looked. Raises psycopg's errors."""
        day = self._clock.today()
        used = await used_by_account(connection, date_of(day))
        before = self._seen[1] if self._seen[0] == day else {}
        moved = {account: fares for account, fares in used.items() if before.get(account) != fares}
        if moved:
            quotas = await quotas_of(connection, list(moved), self._now(), self._grace_days)
            if noted := await note(connection, moved, quotas, date_of(day), self._now()):
                self._log.info("quota_thresholds_reached", alerts=noted)
        self._seen = (day, used)
        return 0

    async def deliver(self, connection: Session) -> int:
        """Returns how many were tried. Raises psycopg's errors."""
        due = await take_due(connection, self._now(), limit=AT_ONCE)
        for one, problem in zip(due, await asyncio.gather(*(self._tell(one) for one in due)), strict=True):
            if problem is None:
                await delivered(connection, one, self._now())
            else:
                self._log.warning("alert_not_delivered", alert=one.id, tries=one.tries, why=problem)
                await failed(connection, one, self._now(), problem)
        return len(due)

    async def _tell(self, due: Due) -> str | None:
        """What went wrong."""
        body = message(due)
        secret = signing_secret(self._pepper, due.account_id, due.salt)
        try:
            await self._poster.post(due.url, signed(secret, due.id, int(self._now().timestamp()), body), body)
        except NotDelivered as problem:
            return str(problem)
        return None

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)


def message(due: Due) -> bytes:
    """What is sent; numbers are fares of the day."""
    midnight = datetime(due.day.year, due.day.month, due.day.day, tzinfo=UTC) + timedelta(days=1)
    said = {
        "type": "quota.reached", "timestamp": due.reached_at,
        "data": {
            "account": {"id": str(due.account_id), "name": due.account_name}, "day": due.day, "threshold_percent": due.threshold,
            "used": due.used, "quota": due.quota, "resets_at": midnight,
        },
    }  # fmt: skip
    return orjson.dumps(said, option=orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS)
