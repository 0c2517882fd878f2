"""What speaks against a plan: ways in which its price does not pay for the GPU time that it sells. Pure."""

from dataclasses import dataclass
from typing import Literal

from billing.margin import Margin
from billing.money import dollars

Kind = Literal["typical", "full", "dearest", "unlimited"]


@dataclass(frozen=True, slots=True)
class Concern:
    """`loss_micros` is what one account loses the house in a month of it."""

    kind: Kind
    loss_micros: int
    words: str


def concerns(margin: Margin) -> list[Concern]:
    """Likeliest first. A plan that is free, or whose price is agreed with each customer, has none."""
    price = margin.price_micros
    if not price:
        return []
    found: list[Concern] = []
    if margin.typical_micros is not None and margin.typical_micros > price:
        words = f"what its accounts use today costs {dollars(margin.typical_micros)} a month each, more than its {dollars(price)}"
        found.append(Concern("typical", margin.typical_micros - price, words))
    if margin.full_micros is not None and margin.full_micros > price:
        percent = (margin.loses_from_permille or 0) // 10
        words = (
            f"an account that uses more than {percent}% of the quota loses money: all of it costs {dollars(margin.full_micros)}"
        )
        found.append(Concern("full", margin.full_micros - price, words))
    # Where the calls are of one model already, that is nothing new.
    if margin.dearest_micros is not None and margin.dearest_micros > max(price, margin.full_micros or 0):
        words = f"the whole quota on {margin.dearest_model} alone costs {dollars(margin.dearest_micros)} a month"
        found.append(Concern("dearest", margin.dearest_micros - price, words))
    if margin.plan.quota_per_day is None and margin.worst_micros > price:
        words = f"without a quota, its slots may be busy all month, which costs {dollars(margin.worst_micros)}"
        found.append(Concern("unlimited", margin.worst_micros - price, words))
    return found


def new_concerns(before: Margin, after: Margin) -> list[Concern]:
    """Those that a change brings or makes worse."""
    known = {concern.kind: concern.loss_micros for concern in concerns(before)}
    return [concern for concern in concerns(after) if concern.loss_micros > known.get(concern.kind, 0)]
