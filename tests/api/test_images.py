"""Images by address become data where they stand in a body, in OpenAI's way and in Anthropic's, within what a body may be."""

import asyncio
import base64
import contextlib
from typing import Any

import pytest

from gateway.api.call import read_call
from gateway.api.chat import CHAT
from gateway.api.endpoint import Endpoint
from gateway.api.images import ADDRESSED_MAX, Addressed, ImageUnavailable, check, in_field, in_source, is_address, note, put_in
from gateway.api.responses import RESPONSES
from gateway.errors import Refusal
from tests.fetch.host import PNG, answer, fetcher, host

DATA = base64.b64encode(PNG).decode()


async def test_each_api_has_its_own_place_for_data_and_an_address_is_asked_once() -> None:
    async with host() as web:
        part: dict[str, Any] = {"image_url": {"url": web.url(), "detail": "low"}}
        block: dict[str, Any] = {"type": "image", "source": {"type": "url", "url": web.url()}, "cache_control": {}}
        found = [in_field("a", part["image_url"], "url"), in_source("b", block)]
        await put_in(found, fetcher("127.0.0.0/8"), "a1", 10_000)
        assert part == {"image_url": {"url": f"data:image/png;base64,{DATA}", "detail": "low"}}
        source = {"type": "base64", "media_type": "image/png", "data": DATA}
        assert block == {"type": "image", "source": source, "cache_control": {}}
        assert len(web.asked) == 1


async def test_a_large_image_is_written_without_a_gap() -> None:
    large = PNG + bytes(range(256)) * 300
    async with host() as web:
        web.says["/a.png"] = [answer(large)]
        holder: dict[str, Any] = {"url": web.url()}
        await put_in([in_field("a", holder, "url")], fetcher("127.0.0.0/8"), "a1", 1_000_000)
        assert base64.b64decode(holder["url"].partition(",")[2]) == large


async def test_with_its_images_a_body_stays_within_its_limit() -> None:
    async with host() as web:
        holders = [{"url": f"{web.url()}#{number}"} for number in range(4)]
        found = [in_field(f"place {number}", holder, "url") for number, holder in enumerate(holders)]
        with pytest.raises(ImageUnavailable, match=r"place \d could not be fetched: with it the request is larger"):
            await put_in(found, fetcher("127.0.0.0/8"), "a1", len(DATA) * 2 + 8)


async def test_images_are_not_kept_beyond_what_the_body_may_be_until_the_last_one_has_come() -> None:
    """Sixteen of 20 MiB lay in memory, for each of an account's calls, while they waited for a server that said nothing."""
    async with host() as web:
        found = [in_field(path, {"url": web.url(path)}, "url") for path in ("/silent", "/a.png", "/b.png")]
        web.says["/b.png"] = [answer(PNG)]
        async with asyncio.timeout(5):
            with pytest.raises(ImageUnavailable, match="the request is larger"):
                await put_in(found, fetcher("127.0.0.0/8"), "a1", len(DATA))


async def test_the_first_that_fails_is_named_and_ends_the_others() -> None:
    async with host() as web:
        web.says["/no"] = [answer(b"", 404)]
        found = [in_field(path, {"url": web.url(path)}, "url") for path in ("/silent", "/no")]
        with pytest.raises(ImageUnavailable, match="/no could not be fetched: its server answered with status 404") as caught:
            await put_in(found, fetcher("127.0.0.0/8"), "a1", 10_000)
        assert caught.value.place == "/no"
        await web.until(lambda web: web.left == len(web.reached))


def test_where_none_are_fetched_they_are_refused() -> None:
    found = [in_field("messages[0].content[1].image_url", {"url": "https://a.example/x.png"}, "url")]
    with pytest.raises(Refusal, match="must be a data: URL") as caught:
        check(found, None)
    assert caught.value.param == "messages[0].content[1].image_url"
    check([], None)


@pytest.mark.parametrize("url", ["http://a", "https://a", "HTTPS://a"])
def test_what_is_an_address(url: str) -> None:
    assert is_address(url)


@pytest.mark.parametrize("url", ["data:image/png;base64,AA", "file:///x", "//a", "a", "", None, {"url": "http://a"}])
def test_what_is_none(url: Any) -> None:
    assert not is_address(url)


@pytest.mark.parametrize(("endpoint", "field"), [(CHAT, "messages"), (RESPONSES, "input")])
def test_nobody_finds_anothers_image_by_the_name_it_was_given(endpoint: Endpoint, field: str) -> None:
    """vLLM keeps images under a `uuid` of the client's choice, and takes one without its data for the one that it has; SGLang
    believes a client's `content_hash`."""
    parts = [
        {"type": "image_url", "image_url": None, "uuid": "passport"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "uuid": "passport"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "content_hash": "passport"}},
    ]
    call = read_call(endpoint, {"model": "m", field: [{"role": "user", "content": parts}]}, 100)
    assert "passport" not in str(call.body)


@pytest.mark.parametrize("count", [ADDRESSED_MAX, ADDRESSED_MAX + 1])
def test_so_many_addresses_are_refused_before_everybody_waits_for_their_reading(count: int) -> None:
    """A hundred thousand in 4 MB took a second, and were refused after it: the plan's limit is known later."""
    found = list[Addressed]()
    with pytest.raises(Refusal) if count > ADDRESSED_MAX else contextlib.nullcontext():
        for number in range(count):
            note(found, in_field(f"place {number}", {"url": "http://a"}, "url"))
    assert len(found) == ADDRESSED_MAX
