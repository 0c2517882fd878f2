"""Plans: what an account may do in a day, in a minute and in one call, and the four that every installation begins with."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

ServiceClass = Literal["enterprise", "premium", "pro", "free", "batch"]
Tier = Literal["free", "pro", "premium", "enterprise"]
# What becomes of a call over the day's quota: a 429, a place in the batch class at no fare (docs/capacity.md), or fares of a pack
# that was bought (docs/packs.md).
BeyondQuota = Literal["refuse", "slow", "pack"]

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
class QueueTerms:
    """What a plan says of waiting; the first three of its class, which several plans may share (docs/capacity.md)."""

    floor_percent: int = 0  # of a pool's grants, while the class has waiters and runs less than that
    reserved_slots: int = 0  # of a pool, kept free for this class and those above
    share_percent: int = 100  # the most of a shared pool that it may run while a class above waits
    queue_depth: int | None = None  # calls of the class that may wait for one model; None: the installation's setting
    queue_seconds: int | None = None  # the longest wait; None: the installation's setting
    ttft_target_ms: int | None = None  # time to first token that is aimed at; only measured
    beyond_quota: BeyondQuota = "refuse"


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
    queue: QueueTerms = QueueTerms()

    def opens(self, tier: str) -> bool:
        return tier in self.tiers


# The columns of `plans` that are the fields of `QueueTerms`.
QUEUE_COLUMNS = tuple(field.name for field in fields(QueueTerms))


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
        queue=QueueTerms(**{name: row[name] for name in QUEUE_COLUMNS}),
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
        **{name: getattr(plan.queue, name) for name in QUEUE_COLUMNS},
    }


def _opened(highest: Tier) -> frozenset[Tier]:
    return frozenset(TIERS[: TIERS.index(highest) + 1])


_K = 1024
# The last four columns of an envelope: calls at once, calls a minute, n, images. Of the queue's: floor, reserved, share.
# fmt: off
DEFAULT_PLANS = (
    Plan("free", 1, "Free", 0, 60, "free", _opened("free"),
         Envelope(32 * _K, 2 * _K, 2, 10, 1, 1), QueueTerms(5, 0, 15, ttft_target_ms=30_000)),
    Plan("pro", 1, "Pro", 80_00, 1_000, "pro", _opened("pro"),
         Envelope(None, 16 * _K, 5, 120, 4, 8), QueueTerms(10, 0, 100, ttft_target_ms=3_000)),
    Plan("premium", 1, "Premium", 350_00, 5_000, "premium", _opened("premium"),
         Envelope(None, 32 * _K, 15, 300, 8, 16), QueueTerms(10, 0, 100, ttft_target_ms=1_000)),
    # Its limits are those of its own GPUs, and what each customer agrees on.
    Plan("enterprise", 1, "Enterprise", None, None, "enterprise", _opened("enterprise"),
         Envelope(None, None, None, None, 8, 16), QueueTerms(0, 0, 100, ttft_target_ms=1_000)),
)
# fmt: on
# All models and Pro's envelope, behind whoever pays.
TRIAL_PLAN = Plan("trial", 1, "Trial", 0, 100, "free", _opened("enterprise"), DEFAULT_PLANS[1].envelope, DEFAULT_PLANS[0].queue)
