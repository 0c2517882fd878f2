"""No client chooses where we connect to: every private, embedded, odd or misspelled address is refused before any packet."""

import asyncio
import socket
from ipaddress import ip_address

import pytest
from pydantic import SecretStr, ValidationError

from gateway.fetch.address import AddressWrong, web_address
from gateway.fetch.fetcher import ImageNotFetched
from gateway.fetch.policy import Policy
from gateway.fetch.public import is_public
from gateway.fetch.resolve import Resolver
from gateway.settings import Settings
from tests.fetch.host import fetcher

NEEDED = SecretStr("x" * 40)
PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254",
    "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
    "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "168.63.129.16",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:7f00:1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1", "2001:20::1", "2002:7f00:1::", "2002:808:808::1", "2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "4000::1",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.1", "100.63.255.255", "192.167.255.255", "223.255.255.255",
          "2606:4700:4700::1111", "2a00:1450:4001::200e", "::ffff:8.8.8.8", "64:ff9b::808:808"]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
async def test_what_is_not_public_is_not_connected_to(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an answer of a name server, and written in the address itself."""
    dialled = _no_connections(monkeypatch)
    assert not is_public(ip_address(address))
    with pytest.raises(ImageNotFetched, match="public address"):
        await fetcher(inner=address).get("http://inner.example/a.png", "a1")
    literal = f"[{address}]" if ":" in address else address
    with pytest.raises(ImageNotFetched):
        await fetcher().get(f"http://{literal}/a.png", "a1")
    assert dialled == []


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_may_be_connected_to(address: str) -> None:
    assert is_public(ip_address(address))
    assert Policy().may_dial(web_address("https://a.example/x"), [ip_address(address)])


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://a.example/x", "gopher://a.example/", "//a.example/x", "a.example/x", "", "http://",
        "http:///x", "http:a.example", "javascript:alert(1)", "data:image/png;base64,AAAA",
        # Hosts that some resolver takes for numbers.
        "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://127.0.1/",
        "http://1.2.3.4.5/", "http://127.0.0.01/", "http://256.1.1.1/", "http://0/", "http://a.example.0x/",
        # Two parsers, two hosts.
        "http://user@127.0.0.1/", "http://a.example@127.0.0.1/", "http://127.0.0.1:80@a.example/", "http://a.example\\@127.0.0.1/",
        "http://a.example\\#@127.0.0.1/", "http://a.example:80:80/", "http://a b.example/",
        "http://a.example/\r\nx: y",
        "http://a.example/\x00", "http://a.example:0/", "http://a.example:99999/", "http://a.example:8o/", "http://-a.example/",
        "http://[::1/", "http://::1/", "http://[fe80::1%25lo]/", "http://[127.0.0.1]/", "http://a..example/", "http://*.example/",
        "http://１２７.0.0.1/", "http://ⓔxample.com/", "http://127。0。0。1/", "http://a.example/" + "x" * 9000,
    ],
)  # fmt: skip
async def test_an_odd_address_is_refused_and_not_guessed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled = _no_connections(monkeypatch)
    with pytest.raises(ImageNotFetched):
        await fetcher(a="8.8.8.8").get(url, "a1")
    assert dialled == []


@pytest.mark.parametrize(
    ("url", "target", "authority"),
    [
        ("http://A.Example", "/", "a.example"),
        ("HTTPS://a.example:443/x?y=1#top", "/x?y=1", "a.example"),
        ("https://a.example.:8443/ü %20".replace(" ", ""), "/%C3%BC%20", "a.example:8443"),
        ("http://a.example?q=%2F&r=ä", "/?q=%2F&r=%C3%A4", "a.example"),
        ("http://[2606:4700:4700:0::1111]/", "/", "[2606:4700:4700::1111]"),
        ("http://xn--mnchen-3ya.example/a_b", "/a_b", "xn--mnchen-3ya.example"),
    ],
)
def test_a_web_address_is_taken_apart(url: str, target: str, authority: str) -> None:
    there = web_address(url)
    assert (there.target, there.authority) == (target, authority)


@pytest.mark.parametrize("port", [22, 25, 81, 443, 6379, 8080])
def test_only_the_webs_own_ports(port: int) -> None:
    assert not Policy().may_dial(web_address(f"http://a.example:{port}/x"), [ip_address("8.8.8.8")])


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    mixed = [ip_address("8.8.8.8"), ip_address("10.0.0.1")]
    assert not Policy().may_dial(web_address("http://a.example/x"), mixed)


def test_what_an_operator_allows() -> None:
    policy = Policy.of(["10.1.0.0/16", "Images.Intra.Example", "fd00::/8"])
    assert policy.may_dial(web_address("http://x.example:9000/"), [ip_address("10.1.2.3")])
    assert policy.may_dial(web_address("http://x.example:9000/"), [ip_address("::ffff:10.1.2.3"), ip_address("fd00::1")])
    assert policy.may_dial(web_address("http://images.intra.example:9000/"), [ip_address("192.168.1.1")])
    assert not policy.may_dial(web_address("http://x.example/"), [ip_address("10.2.0.1")])
    assert not policy.may_dial(web_address("http://other.intra.example/"), [ip_address("192.168.1.1")])
    assert not policy.may_dial(web_address("http://images.intra.example/"), [])


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "http://a.example", "*.a.example", "127.1", "a b", "10.0.0.256"])
def test_a_misspelled_permission_is_refused_and_not_taken_for_a_name(entry: str) -> None:
    with pytest.raises(ValueError, match="no host, address or network"):
        Policy.of(["a.example", entry])
    with pytest.raises(ValidationError, match="no host, address or network"):
        Settings(database_url=NEEDED, redis_url=NEEDED, key_pepper=NEEDED, fetch_allowed=("a.example", entry))


def test_a_redirect_may_not_leave_tls() -> None:
    there = web_address("https://a.example/one/two")
    assert there.leads_to("three?x").target == "/one/three?x"
    assert there.leads_to("//b.example/y").authority == "b.example"
    for location in ("http://a.example/", "file:///etc/passwd", "http://[", "//user@b.example/"):
        with pytest.raises(AddressWrong):
            there.leads_to(location)


async def test_names_are_looked_up_by_the_system_off_the_loop() -> None:
    resolver = Resolver(threads=1)
    local, none = await asyncio.gather(resolver("localhost", 80), resolver("no-such-name.invalid", 80))
    assert {str(address) for address in local} <= {"127.0.0.1", "::1"}
    assert local
    assert none == ()


def _no_connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    dialled: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, where: dialled.append(where))
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "sock_connect", lambda _, where: dialled.append(where))
    return dialled
