"""From an entry of a shard's stream to a row of the ledger; what can't be one is refused here, before it meets the database."""

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from billing.days import day_of_id
from billing.fare import FARE_MAX

_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_VERDICTS = frozenset({"posted", "voided", "expired"})
_REASON = re.compile(r"[a-z][a-z_]{0,39}")
_INT_MAX = 2**31 - 1  # PostgreSQL's integer

Id = Annotated[str, Field(pattern=_UUID)]
Name = Annotated[str, Field(pattern=r"^[^\x00]{1,200}$")]  # PostgreSQL's text has no NUL
Amount = Annotated[int, Field(ge=0, le=_INT_MAX)]


class EventMalformed(Exception):
    """The entry is no usage event; the message says what is wrong, and holds nothing of a prompt."""


class LedgerRow(NamedTuple):
    """The columns of `requests`, in its order; ids as text, `day` and `at_ms` as numbers."""

    day: int
    id: str
    account_id: str
    key_id: str
    model: str
    endpoint: str
    fare: int
    verdict: str
    reason: str
    stream: bool
    status: int | None
    at_ms: int
    queue_ms: int | None
    first_byte_ms: int | None
    total_ms: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    tokens_estimated: bool
    replica: str | None
    gateway: str
    from_pack: bool


class _Usage(BaseModel):
    """Field `e` of an entry. What it does not know is ignored: a newer gateway may say more."""

    model_config = ConfigDict(strict=True)

    id: Id
    account: Id
    key: Id
    model: Name
    endpoint: Name
    fare: int = Field(ge=0, le=FARE_MAX)
    day: int
    stream: bool
    status: int | None = Field(default=None, ge=100, le=599)
    at_ms: int = Field(ge=0, le=4_102_444_800_000)  # until 2100
    queue_ms: Amount | None = None
    first_byte_ms: Amount | None = None
    total_ms: Amount | None = None
    prompt_tokens: Amount | None = None
    cached_tokens: Amount | None = None
    completion_tokens: Amount | None = None
    tokens_estimated: bool = False
    replica: Name | None = None
    gateway: Name
    from_pack: bool = False


def parse(fields: Mapping[bytes, bytes], days: range) -> LedgerRow:
    """`days` are those that may still be written. Raises: EventMalformed."""
    verdict, reason = _text(fields, b"v"), _text(fields, b"r")
    if verdict not in _VERDICTS:
        raise EventMalformed(f"v is {verdict[:40]!r}, which is no verdict")
    if not _REASON.fullmatch(reason):
        raise EventMalformed(f"r is {reason[:40]!r}, which is no reason")
    try:
        usage = _Usage.model_validate_json(fields.get(b"e", b""))
    except ValidationError as error:
        raise EventMalformed("; ".join(_explain(problem) for problem in error.errors(include_url=False))[:500]) from None
    if usage.id != _text(fields, b"id"):
        raise EventMalformed("the entry and its event have different ids")
    if usage.day != day_of_id(usage.id):
        raise EventMalformed(f"day is {usage.day}, but the id is of day {day_of_id(usage.id)}")
    if usage.day not in days:
        raise EventMalformed(f"day {usage.day} is not open: it is too old, or has not come yet")
    return _row(usage, verdict, reason)


def _row(usage: _Usage, verdict: str, reason: str) -> LedgerRow:
    return LedgerRow(
        day=usage.day,
        id=usage.id,
        account_id=usage.account,
        key_id=usage.key,
        model=usage.model,
        endpoint=usage.endpoint,
        fare=usage.fare,
        verdict=verdict,
        reason=reason,
        stream=usage.stream,
        status=usage.status,
        at_ms=usage.at_ms,
        queue_ms=usage.queue_ms,
        first_byte_ms=usage.first_byte_ms,
        total_ms=usage.total_ms,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        tokens_estimated=usage.tokens_estimated,
        replica=usage.replica,
        gateway=usage.gateway,
        from_pack=usage.from_pack,
    )


def _text(fields: Mapping[bytes, bytes], name: bytes) -> str:
    return fields.get(name, b"").decode("utf-8", "replace")


def _explain(problem: object) -> str:
    assert isinstance(problem, dict)
    where = ".".join(str(part) for part in problem["loc"]) or "event"
    return f"{where}: {problem['msg']}"
