"""Who is calling: one frozen snapshot of a key, its account and its plan, and the pure check of what it may do now."""

from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal, get_args

from billing.entitlements import FOREVER, Source, Term
from billing.plans import Plan
from gateway.limits.policy import Numbers, numbers

Network = IPv4Network | IPv6Network
# `inference`: calls that cost a fare. `read`: models, the key's own limits and usage.
Scope = Literal["inference", "read"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


class KeyRefused(Exception):
    """This key may not do this. The message says what to do; it names no secret."""


class KeyRevoked(KeyRefused):
    """The key was revoked."""


class KeyExpired(KeyRefused):
    """The key's time is over."""


class AddressNotAllowed(KeyRefused):
    """The key has a list of networks, and the caller is in none of them."""


class ScopeMissing(KeyRefused):
    """The key was not given the scope that this needs."""


class ModelNotAllowedForKey(KeyRefused):
    """The key has a list of models, and this is not one of them."""


class AccountSuspended(KeyRefused):
    """Every key of the account is stopped."""


@dataclass(frozen=True, slots=True)
class Caller:
    """As of the account's `version`; the gate answers `stale` to an older one, so a revoked key can't pass on a snapshot."""

    account_id: str
    key_id: str
    account_name: str
    account_state: str
    version: int
    plan: Plan
    scopes: frozenset[str]
    allowed_models: frozenset[str] | None
    networks: tuple[Network, ...]
    expires_at_ms: int | None
    revoked: bool
    key_quota_per_day: int | None
    key_requests_per_minute: int | None
    pack_fares: int = 0  # of the account's packs, used or not
    pack_fares_per_month: int | None = None
    source: Source = "account"  # what gives the plan
    until_ms: int = FOREVER  # the plan is another from then on, and nobody has to say so
    later: tuple[Term, ...] = field(default=(), repr=False)
    digest: bytes = field(default=b"", repr=False)
    numbers: Numbers = field(init=False, repr=False, compare=False)  # what the gate checks, worked out once a snapshot

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", numbers(self))


def at(caller: Caller, now_ms: int) -> Caller:
    """The same snapshot with the plan of now."""
    if now_ms < caller.until_ms:
        return caller
    later = caller.later
    while len(later) > 1 and now_ms >= later[0].until:
        later = later[1:]
    return replace(caller, plan=later[0].plan, source=later[0].source, until_ms=later[0].until, later=later[1:])


def refusal(caller: Caller, model: str | None, address: str, now_ms: int, *, scope: Scope = "inference") -> None:
    """Raises what stands against this call, the most final reason first. `model` is a catalogue id; None: no model is asked."""
    if caller.revoked:
        raise KeyRevoked("This API key was revoked. Use another key of the account, or create one.")
    if caller.expires_at_ms is not None and now_ms >= caller.expires_at_ms:
        raise KeyExpired("This API key has expired. Create a new one, or rotate it before it ends.")
    if caller.networks and not _inside(address, caller.networks):
        raise AddressNotAllowed(
            f"This API key may not be used from {address}. Call from one of the key's networks, or add this one to the key."
        )
    if caller.account_state != "active":
        raise AccountSuspended("This account is suspended, so none of its keys work. Ask the operator to resume it.")
    if scope not in caller.scopes:
        raise ScopeMissing(f"This API key lacks the scope '{scope}'. Use a key that has it.")
    if model is not None and caller.allowed_models is not None and model not in caller.allowed_models:
        may = ", ".join(sorted(caller.allowed_models)) or "none"
        raise ModelNotAllowedForKey(f"This API key may not use the model '{model}'. It may use: {may}.")


def _inside(address: str, networks: tuple[Network, ...]) -> bool:
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return any(parsed in network for network in networks)
