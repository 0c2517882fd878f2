"""What is compared: the engine's own two orders, ours with and without reserves, and ours as plans come, under rising load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from billing.plans import DEFAULT_PLANS, QueueTerms

Policy = Literal["fcfs", "priority"]
# An engine refuses nobody, so ours may not either where the two are compared: no wait or depth that binds.
PATIENT_DEPTH, PATIENT_SECONDS = 100_000, 3_600
COMPARED_LOAD = 2.0
LOADS = (0.5, 1.0, 1.5, 2.0, 3.0)
RESERVES = (0, 1, 2)
COMPARED_CLOSELY = ("engine-priority", "ours-0")
# Places inside the engine for the next calls (docs/capacity.md): one for anybody, one for Pro and above, one for Premium.
LINE = 3
# What the engine is told where it is called without us; what ours tells it (backends/engines/priority.py).
ENGINE_PRIORITIES = {"premium": 20, "pro": 30, "free": 40}


@dataclass(frozen=True, slots=True)
class Variant:
    """One thing that is played. `policy` is of the engine; without `terms` it is called directly.

    `load` is a multiple of the capacity. `is_one_line`: all calls are of one account, so that the gateway too serves them as they
    come.
    """

    name: str
    title: str
    policy: Policy
    load: float = COMPARED_LOAD
    terms: Mapping[str, QueueTerms] | None = None
    tells_priorities: bool = False
    is_one_line: bool = False


def in_turns(variants: Sequence[Variant]) -> list[Variant]:
    """The order of play: those that are compared closely twice, in turns, so that a drift of the machine hits both."""
    twice = [variant for variant in variants if variant.name in COMPARED_CLOSELY]
    return [*twice, *twice, *(variant for variant in variants if variant not in twice)]


def product_terms() -> dict[str, QueueTerms]:
    """As every installation begins, Free's cap on; and the places of the line by class."""
    terms = {plan.service_class: plan.queue for plan in DEFAULT_PLANS if plan.service_class in ENGINE_PRIORITIES}
    return {name: replace(one, reserved_slots=0 if name == "free" else 1) for name, one in terms.items()}


def patient_terms(reserved: int = 0) -> dict[str, QueueTerms]:
    """The plans' own floors; nobody refused, Free's cap off; of the engine's batch `reserved` places are Premium's."""
    patient = {
        name: replace(terms, share_percent=100, queue_depth=PATIENT_DEPTH, queue_seconds=PATIENT_SECONDS)
        for name, terms in product_terms().items()
    }
    for_pro, for_premium = (0, LINE + reserved) if reserved else (1, 1)
    return patient | {
        "premium": replace(patient["premium"], reserved_slots=for_premium),
        "pro": replace(patient["pro"], reserved_slots=for_pro),
    }


def compared() -> list[Variant]:
    """Ours stands before the engine with priorities, as the shipped profile runs it (deploy/fleet.gpu.toml)."""
    return [
        Variant("engine-fifo", "engine, FIFO", "fcfs"),
        Variant("gateway-fifo", "FIFO through the gateway", "fcfs", terms=patient_terms(), is_one_line=True),
        Variant("engine-priority", "engine, its own priority", "priority", tells_priorities=True),
        *(
            Variant(f"ours-{reserved}", f"ours, {reserved} reserved", "priority", terms=patient_terms(reserved))
            for reserved in RESERVES
        ),
    ]


def curve() -> list[Variant]:
    return [Variant(f"load-{load:g}", f"{load:g}x", "priority", load, product_terms()) for load in LOADS]
