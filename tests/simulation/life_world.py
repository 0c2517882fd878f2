"""A shop whose every step can be its last: Stripe's stand-in in this process, PostgreSQL, the post, and one clock for both."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import stripe
from sqlalchemy import Connection, Engine

from billing import inbox
from billing.catalog_sync import read_catalog, steps_between, take, wanted_of
from billing.plan_versions import list_plans
from billing.shop import Shop
from billing.stripe import API_VERSION, Stripe
from billing.webhooks import TYPES, read_event, verify
from tests.support.stripe import post
from tests.support.stripe.api import Api, Asked, Trouble
from tests.support.stripe.world import Thing, World, shown

KEY = "sk_test_life"
SECRET = "whsec_life_of_a_shop"
BACK = "http://127.0.0.1:1/docs"
START = 1_793_491_200  # 2026-11-01 00:00 UTC


class Killed(BaseException):
    """The process that did this is gone: nothing after it happens, and nothing of it is told."""


@dataclass(slots=True)
class Fate:
    """Whether a process survives a point between two steps. `points` counts where it did not."""

    random: random.Random
    chance: float = 0.0
    points: dict[str, int] = field(default_factory=dict)

    def point(self, name: str) -> None:
        if self.random.random() < self.chance:
            self.points[name] = self.points.get(name, 0) + 1
            raise Killed(name)


class DirectClient(stripe.HTTPClient):
    """The SDK's requests go to the stand-in without a socket: months of them in seconds. Retries do not wait."""

    name = "direct"

    def __init__(self, api: Api, fate: Fate) -> None:
        super().__init__()
        self._api, self._fate = api, fate

    def request(self, method: str, url: str, headers: Any, post_data: Any = None, **_: Any) -> Any:
        """Body, status and headers of the answer."""
        parts = urlsplit(url)
        text = parts.query if method != "post" else post_data or ""
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        if method != "get":
            self._fate.point(f"before {method} {_kind(parts.path)}")
        answer = self._api.ask(Asked(method.upper(), parts.path, text, lower))
        if method != "get":
            self._fate.point(f"after {method} {_kind(parts.path)}")
        return json.dumps(answer.body).encode(), answer.status, answer.headers

    def close(self) -> None:
        """There is nothing to close."""

    def _sleep_time_seconds(self, num_retries: int) -> float:
        return 0.0


class MortalEngine:
    """What the shop asks of an engine: transactions, before and after whose commit the process may end."""

    def __init__(self, engine: Engine, fate: Fate) -> None:
        self._engine, self._fate = engine, fate

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            yield connection
            self._fate.point("before a commit")
        self._fate.point("after a commit")


@dataclass(slots=True)
class Life:
    """`shop` is what processes use, which may end anywhere; `calm` the same for who only looks."""

    api: Api
    shop: Shop
    calm: Shop
    fate: Fate
    chance: random.Random

    @property
    def world(self) -> World:
        return self.api.world

    def bring_post(self) -> None:
        """Every delivery that is due, to a gateway that may end before it has answered; then it comes again."""
        for delivery in self.api.post._due():
            event = self.world.things[delivery.event]
            body = json.dumps(shown(event)).encode()
            signature = stripe.WebhookSignature.generate_signature_header(body.decode(), SECRET, self.world.now)
            try:
                self._gateway_takes(body, signature)
            except Killed:
                delivery.tries += 1
                delivery.is_over = delivery.tries > len(post._RETRY_SECONDS)
                delivery.due = self.world.now + post._RETRY_SECONDS[min(delivery.tries, len(post._RETRY_SECONDS)) - 1]
            else:
                delivery.is_over = True

    def _gateway_takes(self, body: bytes, signature: str) -> None:
        verify(body, signature, [SECRET], self.world.now)
        event = read_event(body, is_live=False)
        with self.shop.engine.begin() as connection:
            inbox.store(connection, event, self.shop.now())

    def trouble(self) -> None:
        """One of the next writes at Stripe fails, or its answer is lost; the SDK tries again by itself."""
        is_done = self.chance.random() < 0.5
        self.api.troubles.append(Trouble("/v1/", self.chance.choice((500, 503)), self.chance.choice((1, 1, 3)), is_done))

    def put_on_sale(self) -> None:
        with self.calm.engine.begin() as connection:
            versions = list_plans(connection)
        wanted = wanted_of(versions, currency="usd", now=datetime.now(UTC))
        for step in steps_between(wanted, *read_catalog(self.calm.stripe, wanted)):
            take(self.calm.stripe, step)

    def find(self, kind: str, **fields: Any) -> list[Thing]:
        return list(self.world.all(kind, **fields))


def open_life(engine: Engine, seed: int) -> Life:
    chance = random.Random(seed)
    world = World(now=START, seed=seed)
    world.address = "http://127.0.0.1:1"
    api = Api(world)
    made = post.create(world, {"url": f"{BACK}/hook", "enabled_events": list(TYPES)})
    world.things[made["id"]]["_secret"] = SECRET

    def now() -> datetime:
        return datetime.fromtimestamp(world.now, UTC)

    def shop(fate: Fate) -> Shop:
        client = stripe.StripeClient(
            KEY, stripe_version=API_VERSION, max_network_retries=2, http_client=DirectClient(api, fate)
        )  # fmt: skip
        mortal: Any = MortalEngine(engine, fate)
        return Shop(Stripe(client, is_live=False), mortal, BACK, now)

    fate = Fate(random.Random(seed + 1))
    return Life(api, shop(fate), shop(Fate(random.Random(0))), fate, chance)


def _kind(path: str) -> str:
    """`/v1/subscriptions/sub_x/cancel` is `subscriptions cancel`."""
    return " ".join(part for part in path.split("/")[2:] if "_" not in part or part.isalpha() or part in KINDS)


KINDS = ("payment_intents", "promotion_codes", "subscription_schedules", "billing_portal", "webhook_endpoints")
