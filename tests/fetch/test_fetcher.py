"""One image comes as it is, or not at all with words that say why: sizes, times, redirects, certificates, liars."""

import asyncio
import time

import pytest

from gateway.fetch.fetcher import AT_ONCE_PER_ACCOUNT, ImageNotFetched
from tests.fetch.host import PNG, answer, fetcher, host, trusting

LOOPBACK = "127.0.0.0/8"


async def test_an_image_comes_with_its_kind_and_nothing_of_ours_goes() -> None:
    async with host() as web:
        found = await fetcher(LOOPBACK).get(web.url(), "a1")
        assert (found.media_type, found.data) == ("image/png", PNG)
        head = web.asked[0].lower()
        assert head.startswith("get /a.png http/1.1\r\nhost: 127.0.0.1:")
        assert "accept-encoding: identity" in head
        assert not any(name in head for name in ("cookie", "authorization", "referer", "x-forwarded"))


async def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with host() as web:
        assert (await fetcher(LOOPBACK).get(web.url(), "a1")).data == PNG


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """DNS rebinding: a second look-up would lead to 127.0.0.1."""
    async with host("0.0.0.0") as web:
        one = fetcher("127.0.0.2", rebound="127.0.0.2|127.0.0.1|127.0.0.1")
        await one.get(web.url(host="rebound.example"), "a1")
        assert web.reached == ["127.0.0.2"]
        assert f"host: rebound.example:{web.port}" in web.asked[0].lower()
        with pytest.raises(ImageNotFetched, match="public address"):
            await one.get(web.url(host="rebound.example"), "a1")
        assert web.reached == ["127.0.0.2"]


async def test_each_redirect_is_checked_anew() -> None:
    async with host("0.0.0.0") as web:
        web.says |= {
            "/away": [answer(b"", 302, "location: http://169.254.169.254/latest/meta-data/")],
            "/rebind": [answer(b"", 302, f"location: {web.url('/a.png', 'rebound.example')}")],
            "/file": [answer(b"", 301, "location: file:///etc/passwd")],
            "/user": [answer(b"", 301, "location: http://a@127.0.0.1/")],
            "/nowhere": [answer(b"", 307)],
            "/twice": [answer(b"", 308, "location: /a.png", "location: /b.png")],
            "/fine": [answer(b"", 307, "location: a.png")],
        }
        one = fetcher("127.0.0.2/32", start="127.0.0.2", rebound="127.0.0.1")
        for path in ("/away", "/rebind", "/file", "/user", "/nowhere", "/twice"):
            with pytest.raises(ImageNotFetched):
                await asyncio.wait_for(one.get(web.url(path, "start.example"), "a1"), 1)
        assert (await one.get(web.url("/fine", "start.example"), "a1")).data == PNG
        assert set(web.reached) == {"127.0.0.2"}


async def test_three_redirects_are_followed_and_no_fourth() -> None:
    async with host() as web:
        web.says |= {f"/{step}": [answer(b"", 302, f"location: /{step - 1}")] for step in range(1, 5)} | {"/0": [answer()]}
        assert (await fetcher(LOOPBACK).get(web.url("/3"), "a1")).data == PNG
        with pytest.raises(ImageNotFetched, match="more than 3 times"):
            await fetcher(LOOPBACK).get(web.url("/4"), "a1")


CHUNKED = b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 x\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (answer(b"<html>", 404), "status 404"),
        (answer(PNG, 206), "status 206"),
        (answer(b"", 204), "status 204"),
        (answer(b"<html>not found"), "not a PNG"),
        (answer(b"%PDF-1.7 .........."), "not a PNG"),
        (answer(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "not a PNG"),
        (answer(b""), "not a PNG"),
        (answer(PNG[:11]), "header is broken"),
        (answer(PNG + b"x" * 100_001), "larger than 100000"),
        (b"HTTP/1.1 200 x\r\ncontent-length: 99999999999999999999999\r\n\r\n", "no whole answer"),
        ([ENDLESS, PNG, *[b"x" * 60_000] * 50], "larger than 100000"),
        ([CHUNKED, b"78\r\n" + PNG[:120] + b"\r\n", *[b"ffff\r\n" + b"x" * 65535 + b"\r\n"] * 4], "larger than 100000"),
        ([CHUNKED, b"78\r\n" + PNG[:120] + b"\r\nnonsense"], "no whole answer"),
        ([CHUNKED, b"78\r\n" + PNG[:120] + b"\r\n"], "no whole answer"),
        (answer(PNG, 200, "content-encoding: gzip"), "compressed"),
        (b"HTTP/1.1 200 x\r\n" + b"a: b\r\n" * 20_000, "no whole answer"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "no whole answer"),
        (b"", "no whole answer"),
    ],
)  # fmt: skip
async def test_what_is_not_a_whole_image_is_refused_with_words(said: bytes | list[bytes | None], words: str) -> None:
    async with host() as web:
        web.says["/x"] = [said] if isinstance(said, bytes) else said
        with pytest.raises(ImageNotFetched, match=words):
            await asyncio.wait_for(fetcher(LOOPBACK).get(web.url("/x"), "a1"), 3)


async def test_a_body_without_length_and_in_crumbs_comes_whole() -> None:
    async with host() as web:
        web.says["/x"] = [ENDLESS, *[PNG[at : at + 1] for at in range(len(PNG))]]
        assert (await fetcher(LOOPBACK).get(web.url("/x"), "a1")).data == PNG


async def test_a_slow_server_is_given_up() -> None:
    async with host() as web:
        web.says["/drip"] = [ENDLESS, PNG[:20], None]
        for path in ("/silent", "/drip"):
            started = time.monotonic()
            with pytest.raises(ImageNotFetched, match=r"within 0\.3 s"):
                await fetcher(LOOPBACK, seconds=0.3).get(web.url(path), "a1")
            assert time.monotonic() - started < 2


async def test_a_server_that_is_not_there() -> None:
    async with host() as web:
        gone = web.url()
    with pytest.raises(ImageNotFetched, match="takes no connection"):
        await fetcher(LOOPBACK).get(gone, "a1")


async def test_the_second_address_is_tried_when_the_first_takes_no_connection() -> None:
    async with host("127.0.0.2") as web:
        found = await fetcher(LOOPBACK, two="127.0.0.1 127.0.0.2").get(web.url(host="two.example"), "a1")
        assert found.data == PNG


async def test_tls_is_verified_against_the_name_that_was_asked_for() -> None:
    async with host(tls=True) as web:
        knowing = fetcher(LOOPBACK, tls=trusting(), localhost="127.0.0.1", other="127.0.0.1")
        assert (await knowing.get(web.url(host="localhost", scheme="https"), "a1")).data == PNG
        with pytest.raises(ImageNotFetched, match="certificate"):
            await knowing.get(web.url(host="other.example", scheme="https"), "a1")
        with pytest.raises(ImageNotFetched, match="certificate"):
            await fetcher(LOOPBACK, localhost="127.0.0.1").get(web.url(host="localhost", scheme="https"), "a1")


async def test_one_account_has_so_many_fetched_at_once_and_holds_up_nobody_else() -> None:
    async with host() as web:
        one = fetcher(LOOPBACK, seconds=1)
        waiting = [asyncio.create_task(one.get(web.url("/silent"), "greedy")) for _ in range(AT_ONCE_PER_ACCOUNT * 3)]
        await web.until(lambda web: len(web.asked) == AT_ONCE_PER_ACCOUNT)
        await asyncio.sleep(0.05)
        assert len(web.asked) == AT_ONCE_PER_ACCOUNT
        assert (await asyncio.wait_for(one.get(web.url(), "patient"), 0.5)).data == PNG
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_caller_that_leaves_closes_the_connection() -> None:
    async with host() as web:
        task = asyncio.create_task(fetcher(LOOPBACK).get(web.url("/silent"), "a1"))
        await web.until(lambda web: len(web.asked) == 1)
        task.cancel()
        await web.until(lambda web: web.left == 1)
