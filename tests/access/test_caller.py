"""What a key may do, decided without asking anyone."""

from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest

from billing.plans import DEFAULT_PLANS
from gateway.access.caller import (
    AccountSuspended,
    AddressNotAllowed,
    Caller,
    KeyExpired,
    KeyRevoked,
    ModelNotAllowedForKey,
    ScopeMissing,
    refusal,
)

CALLER = Caller(
    account_id="a",
    key_id="k",
    account_name="acme",
    account_state="active",
    version=1,
    plan=DEFAULT_PLANS[0],
    scopes=frozenset({"inference", "read"}),
    allowed_models=None,
    networks=(),
    expires_at_ms=None,
    revoked=False,
    key_quota_per_day=None,
    key_requests_per_minute=None,
)
HOME = (ip_network("10.1.0.0/16"), ip_network("2001:db8::/32"))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"revoked": True}, KeyRevoked),
        ({"expires_at_ms": 1000}, KeyExpired),
        ({"networks": HOME}, AddressNotAllowed),
        ({"account_state": "suspended"}, AccountSuspended),
        ({"scopes": frozenset({"read"})}, ScopeMissing),
        ({"allowed_models": frozenset({"other"})}, ModelNotAllowedForKey),
        ({"revoked": True, "expires_at_ms": 1, "account_state": "suspended"}, KeyRevoked),
    ],
)
def test_each_reason_has_a_name_and_says_what_to_do(changed: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"\."):
        refusal(replace(CALLER, **changed), "m", "192.0.2.1", 1000)


@pytest.mark.parametrize(
    "changed",
    [{}, {"expires_at_ms": 1001}, {"allowed_models": frozenset({"m"})}, {"networks": (ip_network("192.0.2.0/24"),)}],
)
def test_what_is_allowed_passes(changed: dict[str, Any]) -> None:
    refusal(replace(CALLER, **changed), "m", "192.0.2.1", 1000)


@pytest.mark.parametrize("address", ["10.1.2.3", "2001:db8::7", "::ffff:10.1.2.3"])
def test_networks_are_of_both_families(address: str) -> None:
    refusal(replace(CALLER, networks=HOME), "m", address, 0)


@pytest.mark.parametrize("address", ["10.2.0.1", "2001:db9::1", "::ffff:10.2.0.1", "unknown", ""])
def test_outside_of_them_is_refused(address: str) -> None:
    with pytest.raises(AddressNotAllowed):
        refusal(replace(CALLER, networks=HOME), "m", address, 0)


def test_a_call_that_asks_for_no_model_needs_its_own_scope_alone() -> None:
    refusal(replace(CALLER, scopes=frozenset({"read"}), allowed_models=frozenset()), None, "192.0.2.1", 0, scope="read")
