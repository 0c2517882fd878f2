"""Where the record and Stripe say different things of subscriptions, and what was told and not heard; changes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, select

from billing.inbox import Backlog, backlog
from billing.proofs import Finding
from billing.shop import Shop
from billing.stripe_objects import Subscription
from billing.subscriptions import LIVE, accounts_with_several, differs
from billing.tables import accounts, customers, subscriptions

# Events are applied within a second; one that waits longer is stuck, or Stripe can't be asked.
EVENT_WAITS = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Compared:
    """`subscriptions` were compared; `stale` are the differing ones' ids, with what is said of each."""

    subscriptions: int
    stale: Mapping[str, Finding]


def compare(shop: Shop) -> Compared:
    """Every subscription that has not ended, there or here. Raises: StripeUnavailable, StripeRefused.

    One that changes in this moment differs too: who wants to know looks again, a little later.
    """
    listed = {one.id: one for one in shop.stripe.subscriptions()}
    with shop.engine.begin() as connection:
        mine = subscriptions.c
        rows = connection.execute(select(subscriptions).where(mine.ended_at.is_(None) | mine.id.in_(listed))).mappings().all()
        buyers = select(customers.c.stripe_id, customers.c.account_id)
        owners = {stripe_id: str(account_id) for stripe_id, account_id in connection.execute(buyers)}
    stale = {row["id"]: found for row in rows if (found := _of_row(row, listed.get(row["id"]))) is not None}
    known = {row["id"] for row in rows}
    for one in listed.values():
        account = owners.get(one.customer) or (str(one.account_id) if one.account_id else None)
        if one.id not in known and account is not None:
            stale[one.id] = Finding("subscription", f"Stripe has {one.id} ({one.status}), and the record does not", account)
    return Compared(len(known | listed.keys()), stale)


def of_the_record(shop: Shop) -> Sequence[Finding]:
    """What is wrong whatever Stripe says: two subscriptions of one account, one that pays for no plan, events that wait."""
    with shop.engine.begin() as connection:
        several = accounts_with_several(connection)
        mine = subscriptions.c
        planless = connection.execute(
            select(mine.id, mine.account_id, mine.price_id).where(mine.ended_at.is_(None), mine.status.in_(LIVE))
            .where(mine.plan_code.is_(None)).order_by(mine.id)
        ).all()  # fmt: skip
        events = backlog(connection)
    doubles = [(f"several are paid for at once: {', '.join(ids)}", account) for account, ids in several.items()]
    priceless = [(f"{row.id} is paid for, and its price {row.price_id} sells no known plan", row.account_id) for row in planless]
    found = [Finding("subscription", what, str(account)) for what, account in (*doubles, *priceless)]
    return [*found, *_of_events(events, shop.now())]


def named(shop: Shop, found: Sequence[Finding]) -> Sequence[Finding]:
    """With the accounts' names."""
    asked = select(accounts.c.id, accounts.c.name).where(accounts.c.id.in_({one.account for one in found if one.account}))
    with shop.engine.begin() as connection:
        names = {str(account_id): name for account_id, name in connection.execute(asked)}
    return [replace(one, name=names.get(one.account or "")) for one in found]


def _of_row(row: RowMapping, listed: Subscription | None) -> Finding | None:
    account = str(row["account_id"])
    if listed is None:
        return Finding("subscription", f"{row['id']} is {row['status']} in the record, and has ended at Stripe", account)
    if not differs(row, listed):
        return None
    here_and_there = [
        (name, row[name], there)
        for name, there in (
            ("status", listed.status), ("price_id", listed.price.id), ("quantity", listed.quantity),
            ("current_period_end", listed.period_end), ("cancel_at_period_end", listed.cancel_at_period_end),
            ("cancel_at", listed.cancel_at), ("paused", listed.is_paused),
            ("pending_at", listed.pending.at if listed.pending else None),
        )
    ]  # fmt: skip
    said = "; ".join(
        f"{name} is {_plain(here)}, at Stripe {_plain(there)}" for name, here, there in here_and_there if here != there
    )
    return Finding("subscription", f"{row['id']}: {said}", account)


def _of_events(events: Backlog, now: datetime) -> Iterator[Finding]:
    for one in events.stuck:
        if one.next_try_at is None:
            way = f"`faregate stripe replay {one.id}` tries it again"
            yield Finding("subscription", f"the event {one.id} ({one.type}) was given up: {one.problem}; {way}")
    oldest = events.oldest_waiting
    if oldest is not None and now - oldest > EVENT_WAITS:
        since = f"{oldest:%Y-%m-%d %H:%M} UTC"
        yield Finding("subscription", f"events of Stripe's that are not applied: {events.waiting:,}, the oldest of {since}")


def _plain(value: object) -> str:
    return f"{value:%Y-%m-%d %H:%M} UTC" if isinstance(value, datetime) else str(value)
