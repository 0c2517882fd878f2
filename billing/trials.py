"""A trial: some days of all models without a card, one for each person and account."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from uuid import UUID

import idna
from disposable_email_domains import blocklist
from sqlalchemy import Connection, func, insert, select, update

from billing.changes import account_changed
from billing.constraints import named_constraints
from billing.plan_versions import plan_on_offer
from billing.plans import TRIAL_PLAN
from billing.tables import trials

# Mailboxes in which dots do not count; what stands behind a plus counts nowhere that we know of.
_DOTLESS = frozenset({"gmail.com"})
_SAME_AS = {"googlemail.com": "gmail.com"}
_PREFIX_V4, _PREFIX_V6 = 24, 48


class TrialRefused(Exception):
    """There is no trial for this account; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class TrialTerms:
    """`per_network`: trials that may begin in a day from one network."""

    days: int
    per_network: int


@dataclass(frozen=True, slots=True)
class Trial:
    """`network` is where its owner came from, None when that is not known."""

    account_id: UUID
    email_normal: str
    network: IPv4Network | IPv6Network | None
    plan_code: str
    plan_version: int
    started_at: datetime
    ends_at: datetime


def start(
    connection: Connection, account_id: UUID, *, email: str, address: str | None, terms: TrialTerms, now: datetime, actor: str
) -> Trial:
    """To be called when the owner's e-mail address is verified. Raises: TrialRefused, AccountUnknown."""
    normal, network = normal_email(email), None if address is None else network_of(address)
    if is_disposable(normal):
        raise TrialRefused("Trials need a lasting e-mail address; this one's domain is for throwing away.")
    plan = plan_on_offer(connection, TRIAL_PLAN.code)
    ends_at = now + timedelta(days=terms.days)
    details = {"plan": f"{plan.code}@{plan.version}", "until": ends_at.isoformat(), "network": str(network)}
    account_changed(connection, account_id, "trial.start", actor=actor, details=details)
    _check_network(connection, network, terms, now)
    values = {
        "account_id": account_id, "email_normal": normal, "network": network, "plan_code": plan.code,
        "plan_version": plan.version, "started_at": now, "ends_at": ends_at,
    }  # fmt: skip
    errors = {
        "trials_pkey": TrialRefused("This account has had its trial."),
        "trials_email_normal_key": TrialRefused("There was a trial for this e-mail address already; one person has one."),
    }
    with named_constraints(errors):
        return Trial(**connection.execute(insert(trials).values(values).returning(*trials.c)).one()._mapping)  # noqa: SLF001


def end(connection: Connection, account_id: UUID, now: datetime, *, actor: str) -> None:
    """Before its time. Raises: TrialRefused when there is none that runs."""
    ended = update(trials).where(trials.c.account_id == account_id, trials.c.ends_at > now, trials.c.started_at < now)
    if not connection.execute(ended.values(ends_at=now)).rowcount:
        raise TrialRefused("This account has no trial that runs.")
    account_changed(connection, account_id, "trial.end", actor=actor, details={})


def trial_of(connection: Connection, account_id: UUID) -> Trial | None:
    """The one that it has, or had."""
    row = connection.execute(select(*trials.c).where(trials.c.account_id == account_id)).first()
    return None if row is None else Trial(**row._mapping)  # noqa: SLF001 - documented under this name


def normal_email(email: str) -> str:
    """One spelling for each mailbox: case, width, what follows a plus, Gmail's dots, and the domain's other alphabets.

    Raises: TrialRefused.
    """
    name, at, domain = unicodedata.normalize("NFKC", email.strip()).casefold().rpartition("@")
    try:
        domain = idna.encode(domain.rstrip("."), uts46=True).decode()
    except idna.IDNAError:
        domain = ""
    domain = _SAME_AS.get(domain, domain)
    name = name.partition("+")[0]
    if domain in _DOTLESS:
        name = name.replace(".", "")
    if not at or not name or "." not in domain:
        raise TrialRefused(f"{email!r} is no e-mail address.")
    return f"{name}@{domain}"


def is_disposable(normal: str) -> bool:
    """By a list that is kept by many (PyPI: disposable-email-domains); of a domain in it all subdomains are too."""
    parts = normal.rpartition("@")[2].split(".")
    return any(".".join(parts[start:]) in blocklist for start in range(len(parts) - 1))


def network_of(address: str) -> IPv4Network | IPv6Network:
    """What one household or office has: a /24, or a /48 of IPv6."""
    given = ip_address(address)
    mapped = getattr(given, "ipv4_mapped", None) or given
    return ip_network((mapped, _PREFIX_V4 if mapped.version == 4 else _PREFIX_V6), strict=False)


def _check_network(connection: Connection, network: IPv4Network | IPv6Network | None, terms: TrialTerms, now: datetime) -> None:
    """Two who begin at once from one network are counted one after the other."""
    if network is None:
        return
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(str(network), 0))))
    mine = trials.c
    query = select(func.count()).where(mine.network == network, mine.started_at > now - timedelta(days=1))
    if (connection.scalar(query) or 0) >= terms.per_network:
        raise TrialRefused("Many trials began from this network today. Try again tomorrow, or take a plan at once.")
