"""The accounts that cost most GPU time, beside what they pay: pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

from billing.margin import MONTH_DAYS, Assumed, on_shared
from billing.money import MICROS_PER_CENT, half_up
from billing.plans import Plan
from billing.worked import Worked

TOP = 10


@dataclass(frozen=True, slots=True)
class Dear:
    """One account in the days that were read. `paid_micros`: its plan's price for as many days; None: agreed with it."""

    account_id: UUID
    account: str
    plan_code: str
    plan_version: int
    calls: int
    slot_ms: int
    cost_micros: int
    paid_micros: int | None

    @property
    def left_micros(self) -> int | None:
        return None if self.paid_micros is None else self.paid_micros - self.cost_micros


def dearest_accounts(
    rows: Iterable[Worked], plans: Mapping[tuple[str, int], Plan], assumed: Assumed, top: int = TOP
) -> list[Dear]:
    """Dearest first. Replicas of an account's own cost it their whole time; of the shared ones it has its slot time to bear."""
    by_account: dict[UUID, list[Worked]] = {}
    for row in rows:
        by_account.setdefault(row.account_id, []).append(row)
    found = [_dear(of_one, plans, assumed) for of_one in by_account.values()]
    return sorted(found, key=lambda dear: (-dear.cost_micros, dear.account))[:top]


def _dear(rows: list[Worked], plans: Mapping[tuple[str, int], Plan], assumed: Assumed) -> Dear:
    first = rows[0]
    price_cents = plans[first.plan].price_cents
    return Dear(
        account_id=first.account_id,
        account=first.account,
        plan_code=first.plan_code,
        plan_version=first.plan_version,
        calls=sum(row.calls for row in rows),
        slot_ms=sum(row.slot_ms for row in rows),
        cost_micros=half_up(_shared(rows, assumed)) + _own(first.account, assumed),
        paid_micros=None if price_cents is None else half_up(price_cents * MICROS_PER_CENT * assumed.days, MONTH_DAYS),
    )


def _shared(rows: list[Worked], assumed: Assumed) -> Fraction:
    pools = assumed.shared()
    costs = (pools[row.model].cost(row.slot_ms, assumed.busy_percent) for row in on_shared(rows, assumed))
    return sum(costs, Fraction(0))


def _own(account: str, assumed: Assumed) -> int:
    return sum(pool.standing_micros(assumed.days) for pool in assumed.pools if pool.dedicated_to == account)
