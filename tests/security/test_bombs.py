"""Input made to be dear: nested, wide, dripping, huge, sent by somebody without a key."""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.access.keys import mint
from gateway.api.body import parse_object, read_body
from gateway.api.intake import AT_ONCE_PER_ACCOUNT
from gateway.errors import Refusal
from tests.security.attacker import CHAT, HI, chat, connect, head, send
from tests.support.gateway import Customer, Running, Town
from tests.support.stream import open_holds

WRONG_COUNTS: list[Any] = [0, -1, 1.0, True, "4", 2**31, 10**18, [1], {}]


def post(gateway: Running, customer: Customer, body: bytes) -> httpx2.Response:
    return httpx2.post(gateway.url + CHAT, headers=customer.headers, content=body, timeout=20)


def test_numbers_and_depths_of_any_size_are_the_clients_mistake(faregate: Town, gateway: Running) -> None:
    customer = faregate.key("free")
    huge = b"1" * 5000
    bodies = [
        b'{"n":' + huge + b"}",
        b'{"x\\u0022":1,"n":' + huge + b"}",
        b'{"n":1e999}',
        b'{"n":NaN}',
        b"[" * 100_000,
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
        b'{"model":"\\ud800"}',
        *(chat(n=count) for count in WRONG_COUNTS),
        *(chat(max_tokens=count) for count in (0, -5, 1.5, False, "9", 2**40)),
        chat(best_of=50),
    ]
    for body in bodies:
        assert post(gateway, customer, body).status_code == 400, body[:60]
    assert open_holds(faregate.redis_url) == 0


def test_255_levels_are_the_clients_mistake_too(faregate: Town, gateway: Running) -> None:
    customer = faregate.key("free")
    assert post(gateway, customer, b'{"a":' * 300 + b"1" + b"}" * 300).status_code == 400


@pytest.mark.parametrize("field", ["role", "type"])
def test_a_list_where_a_word_belongs_is_the_clients_mistake(faregate: Town, gateway: Running, field: str) -> None:
    message = {"role": [], "content": "x"} if field == "role" else {"role": "user", "content": [{"type": [], "text": "x"}]}
    assert post(gateway, faregate.key("free"), chat(messages=[message])).status_code in (200, 400)


def test_a_large_body_never_gets_the_slow_look_for_repeated_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """It builds everything again in Python: 7 MB of small objects cost a second of everybody's time."""
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("the slow look was taken"))
    many = b'{"":0},' * 160_000
    parse_object(b'{"x\\u0022":[' + many + b"{}]}")
    with pytest.raises(Refusal, match="appears twice"):
        parse_object(b'{"x\\u0022":[' + many + b'{"a":1,"a":1}]}')


def test_a_long_model_name_is_not_sent_back(faregate: Town, gateway: Running) -> None:
    customer = faregate.key("free")
    answer = post(gateway, customer, chat(model="\x01\U000e0001" * 100_000))
    assert answer.status_code == 404
    assert len(answer.content) < 2000


def test_a_long_repeated_key_is_not_sent_back(faregate: Town, gateway: Running) -> None:
    customer = faregate.key("free")
    key = b'"' + b"k" * 200_000 + b'"'
    answer = post(gateway, customer, b"{" + key + b":1," + key + b":2}")
    assert answer.status_code == 400
    assert len(answer.content) < 2000


def test_who_has_no_key_is_told_before_the_body_is_read(gateway: Running) -> None:
    """Else anyone fills memory with 32 MiB a connection, and stops the loop for seconds with JSON that is dear to check."""
    with connect(gateway) as client:
        client.sendall(head(None, "content-length: 30000000", "expect: 100-continue"))
        client.settimeout(2)
        assert client.recv(4096).startswith(b"HTTP/1.1 401")


async def test_a_body_in_many_small_pieces_costs_what_it_weighs() -> None:
    """8,000 pieces of 512 bytes; by a copy of the whole for each this took over a second of the loop."""
    pieces = [b" " * 512] * 8000

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

    began = time.process_time()
    await read_body(receive, {}, 32 * 1024 * 1024)
    assert time.process_time() - began < 0.25


def test_a_crowd_of_guessed_keys_is_slowed_down_and_not_said_back(faregate: Town) -> None:
    gateway = faregate.gateway()
    guesses = [mint() for _ in range(55)]
    with httpx2.Client(base_url=gateway.url) as client:
        answers = [
            client.post(CHAT, headers={"authorization": f"Bearer {guess}"}, json={"model": "x", "messages": HI})
            for guess in guesses
        ]
    assert [answer.status_code for answer in answers] == [401] * 50 + [429] * 5
    assert not any(guess in answer.text for guess, answer in zip(guesses, answers, strict=True))


def memory_mib(gateway: Running) -> int:
    return int(Path(f"/proc/{gateway.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 2**20


def test_bodies_that_one_account_never_finishes_do_not_fill_memory(faregate: Town, gateway: Running) -> None:
    """On 12 connections of a free key they took 340 MB for a minute, before any limit of its plan was looked at."""
    greedy, other = faregate.key("free"), faregate.key("free")
    half = b'{"model":"' + b"x" * 8_000_000
    before = memory_mib(gateway)
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            client = stack.enter_context(connect(gateway))
            client.settimeout(0.2)
            with contextlib.suppress(TimeoutError):  # it is not read from any more
                client.sendall(head(greedy, "content-length: 30000000") + half)
        assert memory_mib(gateway) - before < 120
        assert post(gateway, greedy, chat()).status_code == 200
        assert post(gateway, other, chat(user="y" * 600_000)).status_code in (200, 400)


def test_more_large_bodies_than_are_read_at_once_are_all_answered(faregate: Town, gateway: Running) -> None:
    customer = faregate.key()
    body = chat(user="y" * 2_000_000)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(send(gateway, customer, body)) for _ in range(AT_ONCE_PER_ACCOUNT + 4)]
        assert [client.recv(12) for client in clients] == [b"HTTP/1.1 200"] * len(clients)
