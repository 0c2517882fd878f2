"""A shop with its record and the stand-in Stripe, and the customers who buy there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import stripe
from sqlalchemy import Connection, RowMapping, delete, select

from billing import inbox
from billing.accounts import create_account
from billing.catalog_sync import read_catalog, steps_between, take, wanted_of
from billing.checkout import buy_plan
from billing.database import open_engine
from billing.plan_versions import list_plans
from billing.purchases import apply_due, end_doubles, sweep
from billing.seed import seed
from billing.shop import Shop
from billing.stripe import Stripe
from billing.tables import audit_entries, packs, stripe_events, subscriptions
from tests.support.stripe.running import StandInStripe

GOOD, DECLINED, LATER = "4242 4242 4242 4242", "4000 0000 0000 0002", "4000 0000 0000 0341"
BACK = "http://127.0.0.1:1/docs"


@dataclass(frozen=True, slots=True)
class Market:
    """`name` in its methods is an account's, made where it is not there."""

    shop: Shop
    stand_in: StandInStripe

    @property
    def client(self) -> stripe.StripeClient:
        """Stripe, for what a test does there without us."""
        return self.shop.stripe.client

    @contextmanager
    def record(self) -> Iterator[Connection]:
        with self.shop.engine.begin() as connection:
            yield connection

    def account(self, name: str) -> UUID:
        with self.record() as connection:
            return create_account(connection, name=name, email=f"{name}@example.com", plan_code="free", actor="test").id

    def pay(self, url: str, number: str = GOOD, **more: str) -> int:
        """On a hosted page; the status of its answer."""
        return self.stand_in.browse(url, email="a@b.test", number=number, **more)[0]

    def subscribe(self, name: str, plan: str = "pro", *, number: str = GOOD) -> UUID:
        """An account that has bought a plan."""
        account = self.account(name)
        assert self.pay(buy_plan(self.shop, name, plan, actor="test"), number) == 303
        self.settle()
        return account

    def settle(self) -> None:
        """What Stripe has to tell comes, and is applied."""
        sweep(self.shop, None)
        while apply_due(self.shop):
            pass
        end_doubles(self.shop)

    def advance(self, **by: float) -> None:
        self.stand_in.advance(**by)  # type: ignore[arg-type]  # days and seconds
        self.settle()

    def advance_past_period(self, account: UUID, *, days: float = 1) -> None:
        """To a day after the end of the period that is paid, or before it."""
        left = self.subscription(account)["current_period_end"] - self.shop.now()
        self.advance(seconds=int(left.total_seconds() + days * 86400))

    def subscriptions(self, account: UUID) -> Sequence[RowMapping]:
        with self.record() as connection:
            return connection.execute(select(subscriptions).where(subscriptions.c.account_id == account)).mappings().all()

    def subscription(self, account: UUID) -> RowMapping:
        """The one that has not ended, or the only one."""
        rows = self.subscriptions(account)
        living = [row for row in rows if row["ended_at"] is None] or rows
        assert len(living) == 1, rows
        return living[0]

    def plan(self, account: UUID) -> tuple[str, str]:
        """Status, and which plan."""
        row = self.subscription(account)
        return row["status"], row["plan_code"]

    def audited(self, account: UUID) -> list[str]:
        with self.record() as connection:
            mine = audit_entries.c
            return list(connection.scalars(select(mine.action).where(mine.account_id == account).order_by(mine.id)))

    def events(self) -> Sequence[RowMapping]:
        with self.record() as connection:
            return connection.execute(select(stripe_events).order_by(stripe_events.c.created)).mappings().all()

    def replay(self, event: str) -> None:
        with self.record() as connection:
            inbox.replay(connection, event, self.shop.now())

    def packs(self, account: UUID) -> Sequence[RowMapping]:
        with self.record() as connection:
            return connection.execute(select(packs).where(packs.c.account_id == account)).mappings().all()

    def forget_packs(self) -> None:
        with self.record() as connection:
            connection.execute(delete(packs))


@contextmanager
def open_market(database_url: str, stand_in: StandInStripe, ours: Stripe) -> Iterator[Market]:
    """The plans are on sale."""

    def now() -> datetime:
        return datetime.fromtimestamp(stand_in.steer("clock")["now"], UTC)

    seed(database_url)
    engine = open_engine(database_url)
    try:
        shop = Shop(ours, engine, BACK, now)
        with engine.begin() as connection:
            versions = [replace(one, effective_from=now() - timedelta(days=1)) for one in list_plans(connection)]
        wanted = wanted_of(versions, currency="usd", now=now())
        for step in steps_between(wanted, *read_catalog(ours, wanted)):
            take(ours, step)
        yield Market(shop, stand_in)
    finally:
        engine.dispose()
