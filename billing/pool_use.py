"""How busy each pool of replicas was, what it costs a month, and what the fleet leaves of the plans' prices: pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from billing.margin import HOUR_MS, MONTH_DAYS, Assumed, Pool
from billing.money import MICROS_PER_CENT, half_up
from billing.plans import Plan
from billing.worked import Worked


@dataclass(frozen=True, slots=True)
class PoolUse:
    """`slot_hour_micros` and `month_micros` are None where nobody said a price."""

    pool: Pool
    busy_permille: int
    slot_hour_micros: int | None
    month_micros: int | None


@dataclass(frozen=True, slots=True)
class Balance:
    """A month at list prices: what all accounts on priced plans pay, and what all priced pools cost, used or not."""

    revenue_micros: int
    cost_micros: int

    @property
    def left_micros(self) -> int:
        return self.revenue_micros - self.cost_micros


def pool_use(rows: Iterable[Worked], assumed: Assumed) -> list[PoolUse]:
    """In the order of the pools. What an account with replicas of its own did is counted there, not on the shared ones."""
    held: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row.model, row.account if assumed.own(row.account, row.model) else "")
        held[key] = held.get(key, 0) + row.slot_ms
    return [_use(pool, held.get((pool.model, pool.dedicated_to), 0), assumed.days) for pool in assumed.pools]


def balance(plans: Sequence[Plan], accounts: Mapping[tuple[str, int], int], pools: Iterable[Pool]) -> Balance:
    cents = sum((plan.price_cents or 0) * accounts.get((plan.code, plan.version), 0) for plan in plans)
    return Balance(cents * MICROS_PER_CENT, sum(pool.standing_micros(MONTH_DAYS) for pool in pools))


def _use(pool: Pool, slot_ms: int, days: int) -> PoolUse:
    is_priced = pool.cents_per_hour is not None
    return PoolUse(
        pool=pool,
        busy_permille=slot_ms * 1000 // (pool.room_ms(100) * days),
        slot_hour_micros=half_up(pool.cost(HOUR_MS)) if is_priced else None,
        month_micros=pool.standing_micros(MONTH_DAYS) if is_priced else None,
    )
