"""Customers at their limits: one whose quota is a single request, one that may have a single call open."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpx2

from tests.conformance.clients.counting import Counted
from tests.conformance.test_responses import script
from tests.journeys.conftest import MODEL
from tests.support.gateway import OPEN_ENVELOPE, Customer, Town


def one_a_day(town: Town) -> Customer:
    return town.key(town.plan(f"day{town.key().account_id}", quota_per_day=1).code)


def one_at_once(town: Town) -> Customer:
    envelope = replace(OPEN_ENVELOPE, concurrency=1)
    return town.key(town.plan(f"open{town.key().account_id}", envelope=envelope).code)


def ask(counts: Counted) -> None:
    """One good call."""
    assert httpx2.post(counts.url, json=_chat("hi"), headers=counts.customer.headers).status_code == 200


@contextmanager
def another_stream(counts: Counted) -> Iterator[None]:
    """Open, until a call beside it was refused. Raises AssertionError when none was."""
    begun, leave = threading.Event(), threading.Event()

    def stream() -> None:
        body = {**_chat(script(pace_ms=100, chunks=600)), "stream": True}
        with httpx2.stream("POST", counts.url, json=body, headers=counts.customer.headers) as answer:
            chunks = answer.iter_bytes()  # whose end would close the connection
            next(chunks)
            begun.set()
            while not (counts.refusals() or leave.wait(0.05)):
                pass

    other = threading.Thread(target=stream)
    other.start()
    assert begun.wait(10)
    try:
        yield
    finally:
        leave.set()
        other.join()
    assert counts.refusals()


def _chat(prompt: str) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": prompt}]}
