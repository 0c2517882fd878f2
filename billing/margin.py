"""What plans bring and what their calls cost in GPU time: pure, in micro-dollars, each figure rounded half up once.

A replica costs what it costs an hour, whoever uses it; a call costs the share of it that it holds: the time that it holds a slot
x the replica's price of a slot-hour. Slots are never all busy, so that price is divided by the share that is expected to be
(`busy_percent`): the calls that are made have to pay for the idle time too. A month is 30 days.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from billing.money import MICROS_PER_CENT, half_up
from billing.plans import Plan
from billing.worked import Worked

HOUR_MS = 3_600_000
DAY_HOURS = 24
DAY_MS = DAY_HOURS * HOUR_MS
MONTH_DAYS = 30

# Whose calls say what is typical: the plan's own, everybody's to the models that it opens, or nobody's.
Basis = Literal["own", "all", "none"]


@dataclass(frozen=True, slots=True)
class Pool:
    """The replicas of one model, for everybody or for one account. `cents_per_hour` is of all together; None: not said."""

    model: str
    tier: str
    slots: int
    cents_per_hour: int | None
    dedicated_to: str = ""

    def cost(self, slot_ms: int, busy_percent: int = 100) -> Fraction:
        """Micro-dollars of so much slot time, not yet rounded; 0 where nobody said a price."""
        priced = slot_ms * (self.cents_per_hour or 0) * MICROS_PER_CENT * 100
        return Fraction(priced, HOUR_MS * self.slots * busy_percent)

    def standing_micros(self, days: int) -> int:
        """What it costs to have it, used or not."""
        return (self.cents_per_hour or 0) * MICROS_PER_CENT * DAY_HOURS * days

    def room_ms(self, busy_percent: int) -> int:
        """Slot time that it has for calls in a day."""
        return self.slots * DAY_MS * busy_percent // 100


@dataclass(frozen=True, slots=True)
class Assumed:
    """What the figures stand on: pools with prices, how busy slots are, and how many days of the ledger were read."""

    pools: Sequence[Pool]
    busy_percent: int
    days: int

    def shared(self) -> dict[str, Pool]:
        return {pool.model: pool for pool in self.pools if not pool.dedicated_to}

    def own(self, account: str, model: str) -> bool:
        """This account has replicas of its own for this model, which cost the same whether it calls or not."""
        return any(pool.dedicated_to == account and pool.model == model for pool in self.pools)


@dataclass(frozen=True, slots=True)
class Typical:
    """One plan's calls to one model, on average; tokens as the engine counted them."""

    plan_code: str
    plan_version: int
    model: str
    calls: int
    slot_ms: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    micros_a_call: int


@dataclass(frozen=True, slots=True)
class Margin:
    """One plan in figures. Months are of one account; None: there is no such figure (no quota, no price, nothing to go by).

    `typical`: what the accounts that call use. `full`: the whole quota, on the same mix of models and calls. `dearest`: the whole
    quota on the dearest model. `worst`: every slot that it may hold, all month. `loses_from_permille`: the use of the quota above
    which the price is less than the cost; 1000 and more is never. `carries_*`: how many such accounts the shared replicas take.
    """

    plan: Plan
    accounts: int
    calling: int
    basis: Basis
    typical_micros: int | None
    full_micros: int | None
    dearest_micros: int | None
    dearest_model: str | None
    worst_micros: int
    loses_from_permille: int | None
    carries_typical: int | None
    carries_full: int | None
    carries_worst: int | None

    @property
    def price_micros(self) -> int | None:
        return None if self.plan.price_cents is None else self.plan.price_cents * MICROS_PER_CENT


def typical(rows: Iterable[Worked], assumed: Assumed) -> list[Typical]:
    """By plan and model, the calls on shared replicas."""
    found: dict[tuple[str, int, str], list[Worked]] = {}
    for row in on_shared(rows, assumed):
        found.setdefault((*row.plan, row.model), []).append(row)
    return [_typical(key, group, assumed) for key, group in sorted(found.items())]


def margin(plan: Plan, rows: Iterable[Worked], accounts: int, assumed: Assumed) -> Margin:
    """`rows` are everybody's; what the plan's own accounts did is typical of it, if they called at all."""
    shared = on_shared(rows, assumed)
    own = [row for row in shared if row.plan == (plan.code, plan.version)]
    opened = [pool for pool in assumed.shared().values() if plan.opens(pool.tier)]
    used = own or [row for row in shared if row.model in {pool.model for pool in opened}]
    fares = sum(row.fares for row in used)
    calling = len({row.account_id for row in used})
    cost = _cost(used, assumed)
    full = _of_quota(plan, cost, fares)
    dearest = _dearest(plan, shared, opened, assumed)
    return Margin(
        plan=plan,
        accounts=accounts,
        calling=len({row.account_id for row in own}),
        basis="own" if own else "all" if used else "none",
        typical_micros=half_up(cost * MONTH_DAYS, calling * assumed.days) if used else None,
        full_micros=None if full is None else half_up(full),
        dearest_micros=half_up(dearest[0]) if dearest else None,
        dearest_model=dearest[1] if dearest else None,
        worst_micros=_worst(plan, opened),
        loses_from_permille=_loses_from(plan, full),
        carries_typical=_carries(used, assumed, need=(1, calling * assumed.days)),
        carries_full=None if plan.quota_per_day is None else _carries(used, assumed, need=(plan.quota_per_day, fares)),
        carries_worst=sum(pool.slots for pool in opened) // plan.envelope.concurrency if plan.envelope.concurrency else None,
    )


def on_shared(rows: Iterable[Worked], assumed: Assumed) -> list[Worked]:
    """What ran on replicas that are there for everybody. A model that has no pool any more is left out: it costs nothing now."""
    shared = assumed.shared()
    return [row for row in rows if row.model in shared and not assumed.own(row.account, row.model)]


def _typical(key: tuple[str, int, str], group: Sequence[Worked], assumed: Assumed) -> Typical:
    code, version, model = key
    calls = sum(row.calls for row in group)
    return Typical(
        plan_code=code,
        plan_version=version,
        model=model,
        calls=calls,
        slot_ms=half_up(sum(row.slot_ms for row in group), calls),
        prompt_tokens=half_up(sum(row.prompt_tokens for row in group), calls),
        cached_tokens=half_up(sum(row.cached_tokens for row in group), calls),
        completion_tokens=half_up(sum(row.completion_tokens for row in group), calls),
        micros_a_call=half_up(_cost(group, assumed), calls),
    )


def _cost(rows: Iterable[Worked], assumed: Assumed) -> Fraction:
    shared = assumed.shared()
    return sum((shared[row.model].cost(row.slot_ms, assumed.busy_percent) for row in rows), Fraction(0))


def _of_quota(plan: Plan, cost: Fraction, fares: int) -> Fraction | None:
    """What a month of the whole quota costs, where `fares` cost `cost`."""
    if plan.quota_per_day is None or fares == 0:
        return None
    return cost * plan.quota_per_day * MONTH_DAYS / fares


def _dearest(plan: Plan, rows: Sequence[Worked], opened: Sequence[Pool], assumed: Assumed) -> tuple[Fraction, str] | None:
    """The whole quota on the model whose fares cost most, as everybody uses it."""
    found = []
    for pool in opened:
        on_it = [row for row in rows if row.model == pool.model]
        month = _of_quota(plan, _cost(on_it, assumed), sum(row.fares for row in on_it))
        if month is not None:
            found.append((month, pool.model))
    return max(found, default=None)


def _worst(plan: Plan, opened: Sequence[Pool]) -> int:
    """Its slots in the dearest pools first. These are busy all the time, so that no idle time is to be paid beside them."""
    left, month = plan.envelope.concurrency, Fraction(0)
    for pool in sorted(opened, key=lambda pool: pool.cost(HOUR_MS), reverse=True):
        held = pool.slots if left is None else min(left, pool.slots)
        left = None if left is None else left - held
        month += pool.cost(held * DAY_MS * MONTH_DAYS)
    return half_up(month)


def _loses_from(plan: Plan, full: Fraction | None) -> int | None:
    if plan.price_cents is None or not full:
        return None
    return int(plan.price_cents * MICROS_PER_CENT * 1000 / full)


def _carries(rows: Sequence[Worked], assumed: Assumed, *, need: tuple[int, int]) -> int | None:
    """Accounts whose day needs `slot_ms x need` (a fraction) of each model: as many as the tightest pool takes."""
    times, by = need
    shared, held = assumed.shared(), dict[str, int]()
    for row in rows:
        held[row.model] = held.get(row.model, 0) + row.slot_ms
    fits = [
        shared[model].room_ms(assumed.busy_percent) * by // (slot_ms * times)
        for model, slot_ms in held.items()
        if slot_ms * times
    ]
    return min(fits, default=None)


def margins(
    plans: Sequence[Plan], rows: Sequence[Worked], accounts: Mapping[tuple[str, int], int], assumed: Assumed
) -> list[Margin]:
    """Of each version of a plan."""
    return [margin(plan, rows, accounts.get((plan.code, plan.version), 0), assumed) for plan in plans]
