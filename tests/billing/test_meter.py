"""What may become a row of the ledger, and what is refused before the database sees it."""

from typing import Any

import pytest

from billing.days import DAY_MS
from billing.meter import EventMalformed, parse
from tests.billing.events import event, fields

NOW = 1_796_000_000_000
DAYS = range(NOW // DAY_MS - 3, NOW // DAY_MS + 3)


def test_an_event_becomes_a_row() -> None:
    usage = event(NOW, stream=True, fare=4)
    row = parse(fields(usage, "posted", "left_after_output"), DAYS)
    assert (row.id, row.account_id, row.fare, row.verdict, row.reason) == (
        usage["id"],
        usage["account"],
        4,
        "posted",
        "left_after_output",
    )
    assert (row.day, row.at_ms, row.stream, row.cached_tokens) == (usage["day"], NOW, True, 4)


@pytest.mark.parametrize(
    "left_out", ["status", "queue_ms", "first_byte_ms", "total_ms", "prompt_tokens", "completion_tokens", "replica"]
)
def test_what_was_never_known_may_be_missing(left_out: str) -> None:
    usage = event(NOW)
    del usage[left_out]
    assert getattr(parse(fields(usage), DAYS), left_out) is None
    assert getattr(parse(fields(event(NOW, **{left_out: None})), DAYS), left_out) is None


def test_a_newer_gateway_may_say_more() -> None:
    assert parse(fields(event(NOW, colour="green")), DAYS).model == "m"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"fare": -1}, "fare"),
        ({"fare": 1_000_001}, "fare"),
        ({"fare": 1.5}, "fare"),
        ({"fare": "1"}, "fare"),
        ({"fare": None}, "fare"),
        ({"account": "nobody"}, "account"),
        ({"model": "a\x00b"}, "model"),
        ({"model": ""}, "model"),
        ({"model": "m" * 201}, "model"),
        ({"status": 42}, "status"),
        ({"prompt_tokens": -1}, "prompt_tokens"),
        ({"completion_tokens": 2**31}, "completion_tokens"),
        ({"stream": "yes"}, "stream"),
        ({"day": NOW // DAY_MS - 1}, "the id is of day"),
    ],
)
def test_what_can_not_be_is_refused_by_name(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(EventMalformed, match=says):
        parse(fields(event(NOW, **changed)), DAYS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"v", b"hangup"),
        (b"v", b""),
        (b"r", b"Because!"),
        (b"r", b""),
        (b"id", b"0198c0de-0000-7000-8000-0000000000ff"),
        (b"id", b"\xff"),
        (b"e", b"{"),
        (b"e", b"[]"),
        (b"e", b'{"id": "\\ud800"}'),
    ],
)
def test_an_entry_that_is_no_event_is_refused(name: bytes, value: bytes) -> None:
    with pytest.raises(EventMalformed):
        parse({**fields(event(NOW)), name: value}, DAYS)


@pytest.mark.parametrize("days_off", [-4, 4])
def test_a_day_that_is_over_or_far_ahead_is_refused(days_off: int) -> None:
    with pytest.raises(EventMalformed, match="not open"):
        parse(fields(event(NOW + days_off * DAY_MS)), DAYS)
