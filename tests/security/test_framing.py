"""Requests framed so that two readers could disagree, trailers that pose as headers, answers before the body has come."""

import re
from ipaddress import ip_network

import pytest

from tests.security.attacker import chat, head, talk
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Running, Town
from tests.support.stream import open_holds


def chunked(body: bytes, *trailers: str) -> bytes:
    return b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, "".join(f"{line}\r\n" for line in trailers).encode())


def answers_in(received: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 (\d{3}) ", received)


def test_what_two_readers_could_frame_differently_is_served_by_neither(
    faregate: Town, gateway: Running, engine: StandInEngine
) -> None:
    customer = faregate.key()
    engine.reset_journal()
    body = chat()
    length = f"content-length: {len(body)}"
    attacks = {
        "bare LF": head(customer, length).replace(b"\r\n", b"\n") + body,
        "space before the colon": head(customer, length.replace(":", " :")) + body,
        "two lengths": head(customer, length, "content-length: 5") + body,
        "signed length": head(customer, length.replace(": ", ": +")) + body,
        "length and chunks": head(customer, length, "transfer-encoding: chunked") + chunked(body),
        "chunks by another name": head(customer, "transfer-encoding: xchunked") + chunked(body),
        "identity with a length": head(customer, "transfer-encoding: identity", length) + body,
        "folded header": head(customer, "x-a: b\r\n c", length) + body,
        "NUL in a header": head(customer, "x-a: b\0c", length) + body,
        "CR in a header": head(customer, "x-a: b\rc", length) + body,
        "LF in a chunk extension": head(customer, "transfer-encoding: chunked") + b"2;a=\nb\r\n{}\r\n0\r\n\r\n",
        "tunnel": b"CONNECT engine:8000 HTTP/1.1\r\nhost: x\r\n\r\n",
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    }
    for name, attack in attacks.items():
        # What follows would be a smuggled request, were the first one read too short.
        answer = talk(gateway, attack + head(customer, length) + body)
        assert answer.startswith(b"HTTP/1.1 400"), name
        assert len(answers_in(answer)) == 1, name
    assert engine.journal()["requests"] == []
    assert open_holds(faregate.redis_url) == 0


def test_a_key_in_a_trailer_opens_nothing(faregate: Town, gateway: Running) -> None:
    customer = faregate.key()
    answer = talk(gateway, head(None, "transfer-encoding: chunked") + chunked(chat(), f"authorization: Bearer {customer.token}"))
    assert answer.startswith(b"HTTP/1.1 401")


def test_a_trailer_does_not_overrule_the_proxys_word_on_where_a_call_comes_from(faregate: Town) -> None:
    gateway = faregate.gateway(trusted_proxies="127.0.0.1")
    customer = faregate.key(networks=(ip_network("10.0.0.0/8"),))
    begin = head(customer, "x-forwarded-for: 203.0.113.9", "transfer-encoding: chunked")
    assert talk(gateway, begin + chunked(chat())).startswith(b"HTTP/1.1 401")
    assert talk(gateway, begin + chunked(chat(), "x-forwarded-for: 10.1.2.3")).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    "line_end",
    [
        pytest.param(b"\r\n", id="many"),
        pytest.param(b"", id="one"),
    ],
)
def test_endless_trailers_are_cut(faregate: Town, gateway: Running, line_end: bytes) -> None:
    begin = head(faregate.key(), "transfer-encoding: chunked") + b"2\r\n{}\r\n0\r\nx-t: "
    assert talk(gateway, begin, *[b"x: " + b"a" * 60_000 + line_end] * 20).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(("path", "coding"), [("/v1/chat/completions", "gzip"), ("/v1/models", "identity")])
def test_one_request_gets_one_answer_also_when_its_body_comes_after_it(
    faregate: Town, gateway: Running, path: str, coding: str
) -> None:
    customer = faregate.key()
    begin = head(customer, f"content-encoding: {coding}", "content-length: 300000", path=path)
    answer = talk(gateway, begin, *[b"x" * 50_000] * 6)
    assert len(answers_in(answer)) == 1


def test_a_transfer_coding_that_is_not_undone_reaches_no_engine(faregate: Town, gateway: Running, engine: StandInEngine) -> None:
    engine.reset_journal()
    talk(gateway, head(faregate.key(), "transfer-encoding: gzip, chunked") + chunked(b"\x1f\x8b\x08" + chat()))
    assert engine.journal()["requests"] == []


def test_forwarded_addresses_are_believed_from_nobody_but_a_trusted_proxy(faregate: Town, gateway: Running) -> None:
    customer = faregate.key(networks=(ip_network("10.0.0.0/8"),))
    body = chat()
    for line in ("x-forwarded-for: 10.1.2.3", "forwarded: for=10.1.2.3", "x-real-ip: 10.1.2.3"):
        assert talk(gateway, head(customer, line, f"content-length: {len(body)}") + body).startswith(b"HTTP/1.1 401")
