"""A flat fare beside prices by the token, for the same calls, in both directions: pure, in micro-dollars, rounded half up once.

A flat fare is dearer for short chats and cheaper for long contexts; and a plan is paid for whether its quota is used or not, so
that what one fare costs depends on how much of it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from billing.margin import MONTH_DAYS
from billing.money import MICROS_PER_CENT, half_up
from billing.plans import Plan
from billing.traffic import Traffic

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """Micro-dollars for a million tokens, at one provider, which sells `model` as `sold_as`; `page` is where it says so.

    `cached` is of prompt tokens that its cache had already: the price of `input` where that makes no difference.
    """

    model: str
    provider: str
    provider_name: str
    sold_as: str
    input: int
    cached: int
    output: int
    page: str | None


@dataclass(frozen=True, slots=True)
class Offer:
    """What one provider would have asked for one model's calls."""

    price: TokenPrice
    micros: int


@dataclass(frozen=True, slots=True)
class ModelCompared:
    """Cheapest offer first; none where no provider that we know of sells the model."""

    traffic: Traffic
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """One account's calls of some days, both ways.

    `flat_micros` is the plan's price for these days, used or not; `flat_compared_micros` its part, by fares, for calls that
    providers have a price for: `cheapest_micros` and `dearest_micros` (each model where it is cheapest, dearest) stand beside it.
    None: the price is agreed with each customer, the quota unlimited, or nothing was used.
    """

    days: int
    models: tuple[ModelCompared, ...]
    fares: int
    unknown_fares: int
    uncounted: int
    used_permille: int | None
    flat_micros: int | None
    flat_a_fare_micros: int | None
    flat_a_fare_at_full_use_micros: int | None
    flat_compared_micros: int | None
    cheapest_micros: int
    dearest_micros: int

    @property
    def saved_at_least_micros(self) -> int | None:
        """Beside the cheapest providers; below 0, the flat fare is dearer by so much."""
        return None if self.flat_compared_micros is None else self.cheapest_micros - self.flat_compared_micros

    @property
    def saved_at_most_micros(self) -> int | None:
        """Beside the dearest."""
        return None if self.flat_compared_micros is None else self.dearest_micros - self.flat_compared_micros


@dataclass(frozen=True, slots=True)
class Imagined:
    """Calls that nobody has made: so many a day to one model, all of one size."""

    model: str
    model_fare: int
    calls_a_day: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class MoreThanTheQuota(Exception):
    """The plan does not take so many calls a day."""


def compare(plan: Plan, carried: Sequence[Traffic], prices: Iterable[TokenPrice], days: int) -> Compared:
    """What an account on this plan paid for these calls, and what they would have cost elsewhere."""
    by_model: dict[str, list[TokenPrice]] = {}
    for price in prices:
        by_model.setdefault(price.model, []).append(price)
    models = tuple(_compared(of_model, by_model.get(of_model.model, [])) for of_model in carried)
    known = [one for one in models if one.offers]
    fares = sum(one.fares for one in carried)
    known_fares = sum(one.traffic.fares for one in known)
    flat = None if plan.price_cents is None else Fraction(plan.price_cents * MICROS_PER_CENT * days, MONTH_DAYS)
    quota = None if plan.quota_per_day is None else plan.quota_per_day * days
    return Compared(
        days=days,
        models=models,
        fares=fares,
        unknown_fares=fares - known_fares,
        uncounted=sum(one.uncounted for one in carried),
        used_permille=fares * 1000 // quota if quota else None,
        flat_micros=None if flat is None else half_up(flat),
        flat_a_fare_micros=half_up(flat / fares) if flat is not None and fares else None,
        flat_a_fare_at_full_use_micros=half_up(flat / quota) if flat is not None and quota else None,
        flat_compared_micros=half_up(flat * known_fares / fares) if flat is not None and fares else None,
        cheapest_micros=sum(one.offers[0].micros for one in known),
        dearest_micros=sum(one.offers[-1].micros for one in known),
    )


def what_if(plan: Plan, imagined: Imagined, prices: Iterable[TokenPrice]) -> Compared:
    """A month of such calls. Raises: MoreThanTheQuota."""
    calls = imagined.calls_a_day * MONTH_DAYS
    fares = calls * imagined.model_fare
    if plan.quota_per_day is not None and fares > plan.quota_per_day * MONTH_DAYS:
        a_day = imagined.calls_a_day * imagined.model_fare
        raise MoreThanTheQuota(f"{a_day:,} fares a day are more than the {plan.quota_per_day:,} of the {plan.name} plan.")
    carried = Traffic(
        model=imagined.model,
        calls=calls,
        fares=fares,
        uncounted=0,
        prompt_tokens=calls * imagined.prompt_tokens,
        cached_tokens=calls * min(imagined.cached_tokens, imagined.prompt_tokens),
        completion_tokens=calls * imagined.completion_tokens,
    )
    return compare(plan, [carried], prices, MONTH_DAYS)


def _compared(carried: Traffic, prices: Iterable[TokenPrice]) -> ModelCompared:
    offers = [Offer(price, _micros(carried, price)) for price in prices]
    return ModelCompared(carried, tuple(sorted(offers, key=lambda offer: (offer.micros, offer.price.provider))))


def _micros(carried: Traffic, price: TokenPrice) -> int:
    """Our cache hits count as the provider's."""
    fresh = carried.prompt_tokens - carried.cached_tokens
    whole = fresh * price.input + carried.cached_tokens * price.cached + carried.completion_tokens * price.output
    return half_up(whole, _MILLION)
