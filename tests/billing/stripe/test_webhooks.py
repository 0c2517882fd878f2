"""Who may tell us what happened at Stripe: nobody without the secret, nothing twice, nothing stale, nothing of another mode."""

import hashlib
import hmac
import json
import time
from typing import Any

import pytest
import stripe
from hypothesis import given
from hypothesis import strategies as st

from billing.webhooks import (
    TOLERANCE_SECONDS,
    TYPES,
    EventForeign,
    EventUnreadable,
    SignatureWrong,
    read_event,
    subject_of,
    verify,
)

SECRET = "whsec_0123456789abcdef"
NOW = 1_800_000_000
BODY = b'{"id": "evt_1", "object": "event"}'
EVENT = {
    "id": "evt_1", "object": "event", "type": "invoice.paid", "created": NOW, "livemode": False,
    "api_version": "2026-10-28.endive",
    "data": {"object": {"id": "in_1", "object": "invoice", "customer_email": "ada@example.com"}},
}  # fmt: skip


def signed(body: bytes = BODY, secret: str = SECRET, at: int = NOW) -> str:
    return str(stripe.WebhookSignature.generate_signature_header(body.decode(), secret, at))


def test_what_stripe_signed_is_taken() -> None:
    verify(BODY, signed(), [SECRET], NOW)


def test_a_forged_event_is_refused() -> None:
    for body, signature in ((b'{"id": "evt_2"}', signed()), (BODY, signed(secret="whsec_guessed_at_random"))):
        with pytest.raises(SignatureWrong):
            verify(body, signature, [SECRET], NOW)


@pytest.mark.parametrize("secrets", [[], [""], [" "], [SECRET, ""]])
def test_an_empty_secret_verifies_nothing(secrets: list[str]) -> None:
    """CVE-2026-41432 of new-api: anybody can sign with an empty secret."""
    with pytest.raises(SignatureWrong, match="no secret"):
        verify(BODY, _signed_with_nothing(), secrets, NOW)


@pytest.mark.parametrize("seconds", [-TOLERANCE_SECONDS - 1, TOLERANCE_SECONDS + 1])
def test_a_stale_or_future_signature_is_refused(seconds: int) -> None:
    with pytest.raises(SignatureWrong, match="before or after"):
        verify(BODY, signed(at=NOW + seconds), [SECRET], NOW)
    verify(BODY, signed(at=NOW + seconds - (1 if seconds > 0 else -1)), [SECRET], NOW)


@pytest.mark.parametrize(
    "header", [None, "", "t=1800000000", "v1=abc", "t=x,v1=abc", "t=1800000000,v0=abc", "t=-1,v1=a", "t=١,v1=a"]
)
def test_half_a_signature_is_none(header: str | None) -> None:
    with pytest.raises(SignatureWrong):
        verify(BODY, header, [SECRET], NOW)


def test_while_a_secret_is_replaced_both_count() -> None:
    for secret in (SECRET, "whsec_the_new_one"):
        verify(BODY, signed(secret=secret), [SECRET, "whsec_the_new_one"], NOW)
    at, old = signed().split(",")
    verify(BODY, f"{at},v1=0000,{old}", ["whsec_the_new_one", SECRET], NOW)


@given(
    st.binary(max_size=200),
    st.text(max_size=80) | st.from_regex(r"(t=\d{1,12},)?v1=[0-9a-f]{0,64}", fullmatch=True),
    st.booleans(),
)
def test_ours_and_the_sdks_check_say_the_same(body: bytes, header: str, is_signed: bool) -> None:  # hypothesis's
    """The SDK reads the machine's clock, and lets what is signed in the future pass."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return
    now = int(time.time())
    header = signed(body, at=now) if is_signed else header
    try:
        stripe.WebhookSignature.verify_header(text, header, SECRET, TOLERANCE_SECONDS)
    except (stripe.SignatureVerificationError, ValueError):
        with pytest.raises(SignatureWrong):
            verify(body, header, [SECRET], now)
    else:
        verify(body, header, [SECRET], now)


def test_an_event_is_kept_in_ids_alone() -> None:
    event = read_event(json.dumps(EVENT).encode(), is_live=False)
    assert (event.id, event.type, event.links) == ("evt_1", "invoice.paid", {"id": "in_1", "object": "invoice"})


def test_an_event_of_the_other_mode_or_of_a_connected_account_is_refused() -> None:
    with pytest.raises(EventForeign, match="test mode"):
        read_event(json.dumps(EVENT).encode(), is_live=True)
    with pytest.raises(EventForeign, match="live mode"):
        read_event(json.dumps({**EVENT, "livemode": True}).encode(), is_live=False)
    with pytest.raises(EventForeign, match="connected account"):
        read_event(json.dumps({**EVENT, "account": "acct_other"}).encode(), is_live=False)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b"{}", b"\xff", b'{"object": "event"}', b'{"object": "v2.core.event", "id": "evt_1"}',
        json.dumps({**EVENT, "created": "now"}).encode(), json.dumps({**EVENT, "created": 1e300}).encode(),
        json.dumps({**EVENT, "data": {"object": None}}).encode(), json.dumps({**EVENT, "data": []}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(EventUnreadable):
        read_event(body, is_live=False)


@pytest.mark.parametrize(
    ("links", "subject"),
    [
        ({"object": "subscription", "id": "sub_1"}, ("subscription", "sub_1")),
        ({"object": "invoice", "id": "in_1", "subscription": "sub_1"}, ("subscription", "sub_1")),
        ({"object": "invoice", "id": "in_1"}, None),
        ({"object": "subscription_schedule", "id": "x", "released_subscription": "sub_1"}, ("subscription", "sub_1")),
        (
            {"object": "checkout.session", "id": "cs_1", "mode": "subscription", "subscription": "sub_1"},
            ("subscription", "sub_1"),
        ),
        ({"object": "checkout.session", "id": "cs_1", "mode": "payment", "payment_intent": "pi_1"}, ("pack", "cs_1")),
        ({"object": "checkout.session", "id": "cs_1", "mode": "setup"}, None),
        ({"object": "charge", "id": "ch_1", "payment_intent": "pi_1"}, ("refund", "pi_1")),
        ({"object": "customer", "id": "cus_1"}, ("customer", "cus_1")),
        ({"object": "product", "id": "prod_1"}, None),
        ({}, None),
    ],
)
def test_what_is_fetched_again_is_found_by_ids(links: dict[str, Any], subject: tuple[str, str] | None) -> None:
    found = subject_of(links)
    assert (found and (found.kind, found.id)) == subject


def test_every_event_that_is_asked_for_is_one_of_stripes_and_they_fit_one_listing() -> None:
    assert len(TYPES) <= 20  # https://docs.stripe.com/api/events/list
    known = str(stripe.params.WebhookEndpointCreateParams.__annotations__["enabled_events"])
    assert [word for word in TYPES if f'"{word}"' not in known and f"'{word}'" not in known] == []


def _signed_with_nothing() -> str:
    return f"t={NOW},v1={hmac.new(b'', b'%d.' % NOW + BODY, hashlib.sha256).hexdigest()}"
