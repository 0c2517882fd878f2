"""An SDK tries again by itself: only what was delivered has a fare, and what no retry can change is tried once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from openai import APIStatusError, OpenAI, RateLimitError

from tests.journeys.conftest import MODEL
from tests.security.attacker import HI, steered
from tests.support.gateway import Customer, Town, wait_for
from tests.support.stream import settled

SENT_BY_THE_SDK = 3


@contextmanager
def counting(town: Town, customer: Customer) -> Iterator[tuple[OpenAI, list[httpx2.Response]]]:
    """The SDK as it is by default, and each answer that it got."""
    answers: list[httpx2.Response] = []
    hook = httpx2.Client(event_hooks={"response": [answers.append]})
    with OpenAI(base_url=f"{town.gateway().url}/v1", api_key=customer.token, http_client=hook) as client:
        yield client, answers


def remaining(town: Town, customer: Customer) -> int:
    page = httpx2.get(f"{town.gateway().url}/v1/key", headers=customer.headers).json()
    return int(page["remaining"])


def test_three_attempts_that_fail_cost_nothing(shared: Town) -> None:
    """No SDK sends an idempotency key: each attempt is a request of its own, and none of these was delivered."""
    customer = shared.key("free")
    with counting(shared, customer) as (client, answers), pytest.raises(APIStatusError) as failed:
        client.chat.completions.create(model=MODEL, messages=messages(status=503))
    assert failed.value.status_code == 503
    assert [answer.status_code for answer in answers] == [503] * SENT_BY_THE_SDK
    assert [answer.request.headers["x-stainless-retry-count"] for answer in answers] == ["0", "1", "2"]
    wait_for(lambda: len(settled(shared.redis_url, customer)) == SENT_BY_THE_SDK)
    assert {event.verdict for event in settled(shared.redis_url, customer)} == {"voided"}
    wait_for(lambda: remaining(shared, customer) == 60)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_the_engine_refuses_is_sent_once(shared: Town, status: int) -> None:
    with counting(shared, shared.key()) as (client, answers), pytest.raises(APIStatusError):
        client.chat.completions.create(model=MODEL, messages=messages(status=status))
    assert [answer.status_code for answer in answers] == [400]


def test_a_spent_quota_is_said_once_and_a_rate_is_waited_out(shared: Town) -> None:
    spent = shared.key(shared.plan("single", quota_per_day=1).code)
    with counting(shared, spent) as (client, answers):
        client.chat.completions.create(model=MODEL, messages=hi())
        with pytest.raises(RateLimitError, match="You have used 1 of 1 requests today"):
            client.chat.completions.create(model=MODEL, messages=hi())
    assert [answer.status_code for answer in answers] == [200, 429]
    hasty = shared.key(requests_per_minute=12)
    with counting(shared, hasty) as (client, answers):
        for _ in range(13):
            client.chat.completions.create(model=MODEL, messages=hi())
    assert [answer.status_code for answer in answers] == [*[200] * 12, 429, 200]


def messages(**script: Any) -> Any:
    return steered(**script)


def hi() -> Any:
    return HI
