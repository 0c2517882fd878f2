"""The stand-in's post: webhooks signed as Stripe signs them, and every way in which they don't come as one would like."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import stripe

from tests.billing.stripe.receiver import Receiver, receiving
from tests.support.stripe.running import StandInStripe

COUNT = 24


@dataclass(frozen=True, slots=True)
class Told:
    """An endpoint of the test's own, and the customers by whom events come to be."""

    stand_in: StandInStripe
    client: stripe.StripeClient
    receiver: Receiver
    secret: str

    def make(self, count: int = COUNT) -> list[str]:
        """Customers, one after the other; their events' ids in that order."""
        made = [self.client.v1.customers.create({"name": f"n{number}"}).id for number in range(count)]
        events = self.client.v1.events.list({"limit": 100, "type": "customer.created"}).data
        return [one.id for one in reversed(events) if one.data.object["id"] in made]

    def came(self) -> list[str]:
        return [json.loads(body)["id"] for _, body in self.receiver.came]


@pytest.fixture
def told(stand_in: StandInStripe, client: stripe.StripeClient) -> Iterator[Told]:
    with receiving() as receiver:
        made = client.v1.webhook_endpoints.create(
            {"url": receiver.url, "enabled_events": ["customer.created", "customer.updated"], "api_version": "2026-10-28.endive"}
        )
        assert made.secret is not None
        yield Told(stand_in, client, receiver, made.secret)
        client.v1.webhook_endpoints.delete(made.id)
        stand_in.steer("webhooks", lose=0, double=0, late=0, shuffle=False, hold=False, wall_clock=False)


def test_what_comes_is_signed_with_the_endpoints_secret_and_the_stand_ins_time(told: Told) -> None:
    told.stand_in.advance(days=30)
    told.make(1)
    told.stand_in.steer("flush")
    signature, body = told.receiver.came[0]
    stripe.WebhookSignature.verify_header(body, signature, told.secret, None)
    assert signature.startswith(f"t={told.stand_in.steer('clock')['now']},v1=")
    for wrong_body, wrong_secret in ((body.replace(b"n0", b"n1"), told.secret), (body, "whsec_other")):
        with pytest.raises(stripe.SignatureVerificationError):
            stripe.WebhookSignature.verify_header(wrong_body, signature, wrong_secret, None)


def test_what_is_signed_by_the_machines_clock_is_within_the_sdks_tolerance(told: Told) -> None:
    told.stand_in.steer("webhooks", wall_clock=True)
    told.make(1)
    told.stand_in.steer("flush")
    signature, body = told.receiver.came[0]
    event = told.client.construct_event(body, signature, told.secret)
    assert (event.type, event.livemode, event.api_version) == ("customer.created", False, "2026-10-28.endive")
    long_ago = stripe.WebhookSignature.generate_signature_header(body.decode(), told.secret, int(time.time()) - 301)
    with pytest.raises(stripe.SignatureVerificationError, match="tolerance"):
        told.client.construct_event(body, long_ago, told.secret)


def test_only_events_that_were_asked_for_come(told: Told) -> None:
    made = told.client.v1.customers.create({"name": "a"})
    told.client.v1.customers.update(made.id, {"name": "b"})
    told.client.v1.customers.delete(made.id)
    told.stand_in.steer("flush")
    events = [json.loads(body) for _, body in told.receiver.came]
    assert [event["type"] for event in events] == ["customer.created", "customer.updated"]
    assert events[1]["data"]["previous_attributes"] == {"name": "a"}


def test_lost_events_are_in_the_list_of_events_alone(told: Told) -> None:
    told.stand_in.steer("webhooks", lose=0.5)
    made = told.make()
    told.stand_in.steer("flush")
    assert 3 < len(told.came()) < COUNT - 3
    missed = next(one for one in made if one not in told.came())
    told.stand_in.steer("again", event=missed)
    told.stand_in.steer("flush")
    assert told.came()[-1] == missed


def test_events_come_twice(told: Told) -> None:
    told.stand_in.steer("webhooks", double=0.5)
    made = told.make()
    told.stand_in.steer("flush")
    assert set(Counter(told.came()).values()) == {1, 2}
    assert set(told.came()) == set(made)


def test_events_come_out_of_order(told: Told) -> None:
    told.stand_in.steer("webhooks", hold=True, shuffle=True)
    made = told.make()
    told.stand_in.steer("flush")
    assert told.came() == []
    told.stand_in.steer("webhooks", hold=False)
    told.stand_in.steer("flush")
    assert told.came() != made
    assert sorted(told.came()) == sorted(made)


def test_events_come_late(told: Told) -> None:
    told.stand_in.steer("webhooks", late=0.5, late_seconds=3600)
    made = told.make()
    told.stand_in.steer("flush")
    assert 3 < len(told.came()) < COUNT - 3
    told.stand_in.advance(seconds=3600)
    assert sorted(told.came()) == sorted(made)


def test_what_is_not_taken_is_sent_again_for_three_days(told: Told) -> None:
    told.receiver.status = 500
    made = told.make(1)
    told.stand_in.steer("flush")
    told.stand_in.advance(seconds=60)
    assert told.came() == made * 2
    for _ in range(12):
        told.stand_in.advance(days=0.5)
    tries = len(told.came())
    assert 7 <= tries <= 11
    told.receiver.status = 200
    told.stand_in.advance(days=2)
    assert len(told.came()) == tries


def test_what_was_taken_at_last_is_sent_no_more(told: Told) -> None:
    told.receiver.status = 503
    made = told.make(1)
    told.stand_in.steer("flush")
    told.receiver.status = 202
    told.stand_in.advance(seconds=60)
    told.stand_in.advance(days=3)
    assert told.came() == made * 2
    assert told.client.v1.events.retrieve(made[0]).pending_webhooks == 0
