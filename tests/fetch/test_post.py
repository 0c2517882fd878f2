"""A POST to where somebody points: what goes out, what counts as delivered, and where it never goes."""

import ssl

import pytest

from gateway.fetch.policy import Policy
from gateway.fetch.post import NotDelivered, Poster
from tests.fetch.host import answer, host, names, trusting

HERE = "127.0.0.0/8"


def poster(*allowed: str, seconds: float = 5.0, tls: ssl.SSLContext | None = None, **known: str) -> Poster:
    return Poster(Policy.of(allowed), seconds=seconds, resolve=names(**known), tls=tls or trusting())


async def test_it_sends_the_body_with_its_headers_and_nothing_of_ours() -> None:
    async with host() as web:
        web.says["/hook?a=1"] = [answer(b"ok")]
        await poster(HERE).post(web.url("/hook?a=1"), {"webhook-id": "m1"}, b"{}")
        await web.until(lambda host: host.left == 1)
    [head] = web.asked
    first, *lines = head.strip().split("\r\n")
    assert first == "POST /hook?a=1 HTTP/1.1"
    assert sorted(line.partition(":")[0] for line in lines) == [
        "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent", "webhook-id",
    ]  # fmt: skip
    assert "content-length: 2" in lines


@pytest.mark.parametrize("status", [100, 301, 302, 400, 404, 410, 500])
async def test_only_a_2xx_is_a_delivery_and_nothing_is_followed(status: int) -> None:
    async with host() as web:
        web.says["/hook"] = [answer(b"", status, "location: /elsewhere"), None]
        with pytest.raises(NotDelivered, match=f"status {status}" if status > 100 else "within 0.3 s"):
            await poster(HERE, seconds=0.3).post(web.url("/hook"), {}, b"{}")
        assert len(web.asked) == 1


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_a_2xx_is_a_delivery_though_its_body_never_ends(status: int) -> None:
    async with host() as web:
        web.says["/hook"] = [answer(b"", status).replace(b"content-length: 0", b"content-length: 99"), None]
        await poster(HERE).post(web.url("/hook"), {}, b"{}")


async def test_a_receiver_that_says_nothing_is_left() -> None:
    async with host() as web:
        with pytest.raises(NotDelivered, match=r"within 0.2 s"):
            await poster(HERE, seconds=0.2).post(web.url("/silent"), {}, b"{}")
        await web.until(lambda host: host.left == 1)


async def test_one_that_hangs_up_is_told_as_that() -> None:
    async with host() as web:
        web.says["/hook"] = [b"HTTP/1.1 200"]
        with pytest.raises(NotDelivered, match="no whole answer"):
            await poster(HERE).post(web.url("/hook"), {}, b"{}")


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "https://10.0.0.1/", "https://[::1]/", "https://inside.example/", "https://public.example:8443/"],
)
async def test_it_goes_to_no_private_address_and_no_odd_port(url: str) -> None:
    with pytest.raises(NotDelivered, match="public address"):
        await poster(inside="192.168.0.7", public="8.8.8.8").post(url, {}, b"{}")


@pytest.mark.parametrize(
    "url", ["ftp://a.example/", "https://user@a.example/", "https://0x7f000001/", "https://a.example/\r\nx: y"]
)
async def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(NotDelivered):
        await poster().post(url, {}, b"{}")


async def test_tls_is_checked() -> None:
    async with host(tls=True) as web:
        web.says["/hook"] = [answer(b"ok")]
        await poster(HERE, "localhost", localhost="127.0.0.1").post(web.url("/hook", "localhost", "https"), {}, b"{}")
        strict = ssl.create_default_context()
        with pytest.raises(NotDelivered, match="valid certificate"):
            await poster(HERE, tls=strict).post(web.url("/hook", scheme="https"), {}, b"{}")
