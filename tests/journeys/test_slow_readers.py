"""A client that reads slowly, or not at all, holds its engine back: what waits for it is bounded, and nobody else waits."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.journeys.conftest import MODEL
from tests.journeys.replay import Replayer, replaying
from tests.security.attacker import CHAT, chat, send, steered
from tests.support.gateway import Running, Town, town, wait_for
from tests.support.hang_up import hang_up, nothing_is_taken
from tests.support.stream import settled

CHOICE = {"index": 0, "delta": {"content": "y" * 10_000}, "finish_reason": None}
LONG = [b'data: {"choices":[%b]}\n\n' % json.dumps(CHOICE, separators=(",", ":")).encode()] * 6000
# Of 60 MB. Most of it is what the sockets of two connections may take; the gateway itself keeps a few hundred kilobytes.
TAKEN_MAX_BYTES = 20_000_000
KEPT_MAX_BYTES = 5_000_000
PROMISED_NS = 200_000_000


@pytest.fixture
def engine() -> Iterator[Replayer]:
    with replaying() as replayer:
        replayer.pieces = LONG
        yield replayer


@pytest.fixture
def installed(database_url: str, valkey_url: str, tmp_path: Path, engine: Replayer) -> Iterator[tuple[Town, Running]]:
    with town(database_url, valkey_url, tmp_path, engine.fleet_entry(MODEL, "vllm", "v")) as built:
        yield built, built.gateway()


def is_held_back(engine: Replayer) -> bool:
    """It wants to send, and for a while nobody took anything."""
    before = engine.sent_bytes
    time.sleep(0.3)
    return 0 < engine.sent_bytes == before


def resident_bytes(running: Running) -> int:
    return 4096 * int(Path(f"/proc/{running.process.pid}/statm").read_text().split()[1])


def test_a_client_that_reads_nothing_is_kept_little_for_and_frees_the_engine_when_it_leaves(
    installed: tuple[Town, Running], engine: Replayer
) -> None:
    """apisix#13254: writes that wait for nobody never told that the reader was gone, and the whole answer was read for him."""
    (built, gateway), customer = installed, installed[0].key()
    before = resident_bytes(gateway)
    client = send(gateway, customer, chat(stream=True), receive_buffer=4096)
    wait_for(lambda: is_held_back(engine))
    assert engine.sent_bytes < TAKEN_MAX_BYTES
    assert resident_bytes(gateway) - before < KEPT_MAX_BYTES
    at = hang_up(client)
    wait_for(lambda: engine.left_ns is not None)
    assert engine.left_ns is not None
    assert 0 <= engine.left_ns - at < PROMISED_NS
    wait_for(lambda: nothing_is_taken(built))
    assert [(event.verdict, event.reason) for event in settled(built.redis_url, customer)] == [("posted", "left_after_output")]


def test_a_stream_that_comes_in_one_burst_leaves_others_their_turn(shared: Town) -> None:
    """apisix#13256: it kept the worker for itself."""
    gateway, customer = shared.gateway(), shared.key()
    body, answers = chat(stream=True, messages=steered(chunks=20_000)), []

    def read() -> None:
        answers.append(httpx2.post(gateway.url + CHAT, content=body, headers=customer.headers, timeout=30))

    reading = threading.Thread(target=read)
    reading.start()
    waits = []
    while reading.is_alive():
        began = time.monotonic()
        assert httpx2.get(f"{gateway.url}/healthz").status_code == 200
        waits.append(time.monotonic() - began)
    reading.join()
    assert answers[0].text.count('"content":"tok "') == 20_000
    assert len(waits) > 2
    assert max(waits) < 1
