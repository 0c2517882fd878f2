"""Webhook endpoints and the post that brings them events: signed, and late, doubled, out of order or lost when it is asked to."""

import asyncio
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import httpx2
import stripe

from tests.support.stripe.faults import Fault
from tests.support.stripe.world import API_VERSION, DAY, Thing, World, metadata, shown

_RETRY_SECONDS = (60, 300, 1800, 3600, 7200, 14400, 28800, 43200, 43200, 43200)  # about three days in all
_ANSWER_SECONDS = 20.0


@dataclass(slots=True)
class Habits:
    """How the post behaves; chances are of one event and endpoint."""

    lose: float = 0.0  # never sent
    double: float = 0.0  # sent twice
    late: float = 0.0  # sent up to `late_seconds` later
    late_seconds: int = 0
    shuffle: bool = False  # what is due together leaves in any order
    hold: bool = False  # nothing leaves until this is false again
    wall_clock: bool = False  # signed with the machine's time instead of the stand-in's


@dataclass(slots=True)
class Delivery:
    event: str
    endpoint: str
    due: int
    tries: int = 0
    answers: list[int] = field(default_factory=list)  # statuses; 0: no answer
    is_over: bool = False


class Post:
    def __init__(self, world: World) -> None:
        self._world = world
        self.habits = Habits()
        self.deliveries: list[Delivery] = []
        self._sending = asyncio.Lock()
        world.told = self._told

    def set_habits(self, given: Thing) -> Thing:
        """Raises: Fault for a habit that it can't have."""
        unknown = given.keys() - {one.name for one in fields(Habits)}
        if unknown:
            raise Fault(f"The post has no such habit: {', '.join(sorted(unknown))}")
        for name, value in given.items():
            setattr(self.habits, name, value)
        return asdict(self.habits)

    async def flush(self) -> None:
        """Sends what is due until nothing is; two who ask for it at once send nothing twice."""
        async with self._sending:
            while due := self._due():
                async with httpx2.AsyncClient(timeout=_ANSWER_SECONDS, trust_env=False) as client:
                    for delivery in due:
                        await self._send(client, delivery)

    async def run(self) -> None:
        """Until cancelled: does what is due by the clock, then sends."""
        while True:
            self._world.advance(self._world.now)
            await self.flush()
            await asyncio.sleep(0.05)

    def again(self, event: str) -> None:
        """Sends an event once more to every endpoint, as its dashboard's button does."""
        self._world.get("event", event)
        for endpoint in self._world.all("webhook_endpoint", status="enabled"):
            self.deliveries.append(Delivery(event, endpoint["id"], self._world.now))

    def _told(self, event: Thing) -> None:
        world, habits = self._world, self.habits
        for endpoint in world.all("webhook_endpoint", status="enabled"):
            if not {event["type"], "*"} & set(endpoint["enabled_events"]) or world.random.random() < habits.lose:
                continue
            for _ in range(2 if world.random.random() < habits.double else 1):
                is_late = world.random.random() < habits.late
                due = world.now + (world.random.randint(1, max(1, habits.late_seconds)) if is_late else 0)
                self.deliveries.append(Delivery(event["id"], endpoint["id"], due))
                event["pending_webhooks"] += 1

    def _due(self) -> list[Delivery]:
        if self.habits.hold:
            return []
        due = sorted((one for one in self.deliveries if not one.is_over and one.due <= self._world.now), key=lambda one: one.due)
        if self.habits.shuffle:
            self._world.random.shuffle(due)
        return due

    async def _send(self, client: httpx2.AsyncClient, delivery: Delivery) -> None:
        world = self._world
        endpoint, event = world.things.get(delivery.endpoint), world.things[delivery.event]
        if endpoint is None:
            delivery.is_over = True
            return
        body = json.dumps(shown(event))
        at = None if self.habits.wall_clock else world.now
        signature = stripe.WebhookSignature.generate_signature_header(body, endpoint["_secret"], at)
        headers = {"content-type": "application/json; charset=utf-8", "stripe-signature": signature}
        try:
            status = (await client.post(endpoint["url"], content=body, headers=headers)).status_code
        except httpx2.HTTPError:
            status = 0
        delivery.answers.append(status)
        delivery.tries += 1
        if 200 <= status < 300 or delivery.tries > len(_RETRY_SECONDS) or world.now > event["created"] + 3 * DAY:
            delivery.is_over = True
            event["pending_webhooks"] -= 1
        else:
            delivery.due = world.now + _RETRY_SECONDS[delivery.tries - 1]


def create(world: World, params: Thing) -> Thing:
    """The secret is in this one answer only."""
    if params.get("api_version") not in (None, API_VERSION):
        raise Fault(f"The stand-in speaks {API_VERSION} alone.", param="api_version")
    secret = world.id("whsec")
    made = world.add(
        "we", "webhook_endpoint", api_version=params.get("api_version"), application=None, description=params.get("description"),
        enabled_events=params["enabled_events"], metadata=metadata({}, params.get("metadata")), status="enabled",
        url=params["url"], _secret=secret,
    )  # fmt: skip
    return {**made, "secret": secret}


def delete(world: World, params: Thing, which: str) -> Thing:
    world.get("webhook_endpoint", which)
    del world.things[which]
    return {"id": which, "object": "webhook_endpoint", "deleted": True}


def as_json(deliveries: list[Delivery]) -> list[dict[str, Any]]:
    return [asdict(one) for one in deliveries]
