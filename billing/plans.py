"""Plans: what an account may do in a day, in a minute and in one call, and the four that every installation begins with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

ServiceClass = Literal["enterprise", "premium", "pro", "free", "batch"]
Tier = Literal["free", "pro", "premium", "enterprise"]

TIERS: tuple[Tier, ...] = get_args(Tier)
SERVICE_CLASSES: tuple[ServiceClass, ...] = get_args(ServiceClass)

# How many bytes of a request one token of the limit stands for (docs/decisions/0004-input-limits-in-bytes.md).
BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Envelope:
    """What one call may ask for, and how many calls at once and a minute. None: no limit of the plan's own."""

    input_tokens_max: int | None  # None: the model's served context
    output_tokens_max: int | None  # None: the model's served context
    concurrency: int | None
    requests_per_minute: int | None
    n_max: int
    images_max: int

    @property
    def input_bytes_max(self) -> int | None:
        """The input limit as it is checked; no tokenizer runs in the gateway."""
        return None if self.input_tokens_max is None else self.input_tokens_max * BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Plan:
    """One version of a plan. `price_cents` is a month's, None when agreed with each customer; quota None: unlimited."""

    code: str
    version: int
    name: str
    price_cents: int | None
    quota_per_day: int | None
    service_class: ServiceClass
    tiers: frozenset[Tier]
    envelope: Envelope

    def opens(self, tier: str) -> bool:
        return tier in self.tiers


def plan_from_row(row: Mapping[str, Any]) -> Plan:
    """A row of the table `plans`, or of a query that selects its columns under their own names."""
    return Plan(
        code=row["code"],
        version=row["version"],
        name=row["name"],
        price_cents=row["price_cents"],
        quota_per_day=row["quota_per_day"],
        service_class=row["service_class"],
        tiers=frozenset(row["tiers"]),
        envelope=Envelope(
            input_tokens_max=row["input_tokens_max"],
            output_tokens_max=row["output_tokens_max"],
            concurrency=row["concurrency"],
            requests_per_minute=row["requests_per_minute"],
            n_max=row["n_max"],
            images_max=row["images_max"],
        ),
    )


def row_from_plan(plan: Plan) -> dict[str, Any]:
    """What `plan_from_row` reads; tiers in the order of `TIERS`."""
    envelope = plan.envelope
    return {
        "code": plan.code,
        "version": plan.version,
        "name": plan.name,
        "price_cents": plan.price_cents,
        "quota_per_day": plan.quota_per_day,
        "service_class": plan.service_class,
        "tiers": [tier for tier in TIERS if tier in plan.tiers],
        "input_tokens_max": envelope.input_tokens_max,
        "output_tokens_max": envelope.output_tokens_max,
        "concurrency": envelope.concurrency,
        "requests_per_minute": envelope.requests_per_minute,
        "n_max": envelope.n_max,
        "images_max": envelope.images_max,
    }


def _opened(highest: Tier) -> frozenset[Tier]:
    return frozenset(TIERS[: TIERS.index(highest) + 1])


_K = 1024
# The last four columns: calls at once, calls a minute, n, images.
# fmt: off
DEFAULT_PLANS = (
    Plan("free", 1, "Free", 0, 60, "free", _opened("free"),                      Envelope(32 * _K, 2 * _K, 2, 10, 1, 1)),
    Plan("pro", 1, "Pro", 80_00, 1_000, "pro", _opened("pro"),                   Envelope(None, 16 * _K, 5, 120, 4, 8)),
    Plan("premium", 1, "Premium", 350_00, 5_000, "premium", _opened("premium"),  Envelope(None, 32 * _K, 15, 300, 8, 16)),
    # Its limits are those of its own GPUs, and what each customer agrees on.
    Plan("enterprise", 1, "Enterprise", None, None, "enterprise", _opened("enterprise"), Envelope(None, None, None, None, 8, 16)),
)
# fmt: on
