"""What is promised of every call holds on `/v1/messages` too: sent again it is one call, images are fetched, a count is free."""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.test_messages import COUNT, MESSAGES, message, post
from tests.fetch.host import PNG
from tests.journeys.test_images import SEEING, Web
from tests.journeys.test_images import web as web
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town, wait_for
from tests.support.ledger import rows
from tests.support.message_blocks import faults
from tests.support.stream import open_holds, settled


@pytest.fixture
def engine(stand_in_engine: Callable[..., StandInEngine]) -> StandInEngine:
    """With eyes."""
    return stand_in_engine(model=SEEING)


@pytest.mark.parametrize("stream", [False, True])
def test_sent_again_under_its_key_it_has_the_same_answer_and_one_fare(shared: Town, stream: bool) -> None:
    gateway, customer = shared.gateway(), shared.key("free")
    first, again = (
        post(gateway, customer, {**message(chunks=5), "stream": stream}, **{"idempotency-key": "k"}) for _ in range(2)
    )
    assert first.status_code == 200
    assert again.content == first.content
    same = ("request-id", "x-faregate-fare", "anthropic-ratelimit-requests-remaining")
    assert [again.headers[name] for name in same] == [first.headers[name] for name in same]
    assert again.headers["x-faregate-replayed"] == "true"
    wait_for(lambda: not open_holds(shared.redis_url))
    assert [event.verdict for event in settled(shared.redis_url, customer)] == ["posted"]


def test_images_by_address_reach_the_engine_as_data(faregate: Town, engine: StandInEngine, web: Web) -> None:
    gateway, pro = faregate.gateway(fetch_allowed="127.0.0.0/8"), faregate.key("pro")
    source = {"type": "url", "url": web.url()}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": dict(source)}]}
    content = [{"type": "image", "source": dict(source)}, result]
    body = {"model": SEEING, "max_tokens": 9, "messages": [{"role": "user", "content": content}], "stream": True}
    assert faults(post(gateway, pro, body).content) == []
    [request] = engine.journal()["requests"]
    sent = request["body"]["messages"][0]["content"]
    assert sent[0]["source"] == sent[1]["content"][0]["source"]
    assert (sent[0]["source"]["type"], sent[0]["source"]["media_type"]) == ("base64", "image/png")
    assert b64decode(sent[0]["source"]["data"]) == PNG
    missing = {"model": SEEING, "max_tokens": 9, "messages": [{"role": "user", "content": [_image(web.url("/none"))]}]}
    answer = post(gateway, pro, missing)
    assert answer.status_code == 400
    assert "messages.0.content.0.source" in answer.json()["error"]["message"]


def _image(url: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "url", "url": url}}


def test_a_count_is_a_row_of_the_ledger_with_no_fare(faregate: Town) -> None:
    gateway, customer = faregate.gateway(), faregate.key()
    faregate.worker()
    asked = {**message(), "model": SEEING}
    assert post(gateway, customer, asked, MESSAGES).status_code == 200
    del asked["max_tokens"]
    assert post(gateway, customer, asked, COUNT).status_code == 200
    wait_for(lambda: len(rows(faregate.database_url, customer)) == 2, 10)
    assert sorted((row.verdict, row.fare) for row in rows(faregate.database_url, customer)) == [("posted", 0), ("posted", 1)]
