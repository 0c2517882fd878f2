"""The latest calls of an account, page by page, and the receipt of each."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import text

from billing.recent import latest_calls
from billing.verdict import Outcome
from gateway.console.answers import Answer, NotHere, Shown
from gateway.console.visit import Visit

PAGE = 50
# A request's id is a UUIDv7, which begins with its milliseconds; its row is of that UTC day.
_RECEIPT = """
SELECT r.id AS request_id, r.at, r.key_id, k.name AS key_name, r.model, r.endpoint, r.fare,
       CASE r.verdict WHEN 'posted' THEN r.fare ELSE 0 END AS billed, r.from_pack, r.verdict, r.reason, r.status, r.stream,
       r.queue_ms, r.first_byte_ms, r.total_ms, r.prompt_tokens, r.cached_tokens, r.completion_tokens, r.tokens_estimated
  FROM requests r LEFT JOIN keys k ON k.id = r.key_id
 WHERE r.day = :day AND r.id = :id AND r.account_id = :account
"""


def show(visit: Visit) -> Answer:
    before = _moment(visit.query.get("before", "")) or visit.now + timedelta(minutes=1)
    calls = latest_calls(visit.connection, visit.account_id, before, limit=PAGE)
    more = calls[-1].at.astimezone(UTC).isoformat() if len(calls) == PAGE else None
    return Shown("requests.html", {"calls": calls, "more": more, "is_first": "before" not in visit.query})


def receipt(visit: Visit) -> Answer:
    request_id = visit.id_in_path()
    asked = {"id": request_id, "account": visit.account_id, "day": _day_of(request_id.int)}
    row = visit.connection.execute(text(_RECEIPT), asked).mappings().first()
    if row is None:
        raise NotHere
    return Shown("receipt.html", {"call": row, "why": words(row["reason"])})


_WORDS = {
    Outcome.ANSWERED: "It was answered.",
    Outcome.LEFT_AFTER_OUTPUT: "The client left after output had begun, so it is billed.",
    Outcome.LEFT_BEFORE_OUTPUT: "The client left before the first output; a day has so many of these that are not billed.",
    Outcome.ENGINE_BROKE: "The engine broke off. Not billed.",
    Outcome.ENGINE_REFUSED: "The engine refused it. Not billed.",
    Outcome.EMPTY_ANSWER: "The answer was empty. Not billed.",
    Outcome.TIMED_OUT: "It took too long. Not billed.",
    Outcome.SHED: "It waited in line for as long as it may. Not billed.",
    Outcome.NO_CAPACITY: "There was no room for it. Not billed.",
    Outcome.CLIENT_ERROR: "The request itself was wrong. Not billed.",
    Outcome.INTERNAL_ERROR: "We failed. Not billed.",
    Outcome.UNKNOWN_ADMIT: "It is not known whether it was let in. Not billed.",
    Outcome.GATEWAY_DIED: "Its gateway died. Not billed.",
}


def words(reason: str) -> str:
    return _WORDS[Outcome(reason)] if reason in set(Outcome) else reason


def _day_of(number: int) -> date:
    try:
        return datetime.fromtimestamp((number >> 80) / 1000, UTC).date()
    except (OverflowError, ValueError, OSError):
        raise NotHere from None


def _moment(written: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(written.replace(" ", "+"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
