"""A fault is the replica's only if it is: bad requests break nobody's engine, and a broken engine costs nobody an answer."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.journeys.conftest import MODEL
from tests.support.crowd import call, crowd
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import BuildTown, Running, Town

POISON = '@engine {"status": 500}'
CUT = '@engine {"die_after": 0}'


class Broken:
    """Healthy by its own word, and every call gets 500."""

    port = 0
    calls = 0


@contextmanager
def a_broken_engine() -> Iterator[Broken]:
    broken = Broken()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.say(200)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            broken.calls += 1
            self.say(500)

        def say(self, status: int) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        broken.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield broken
        server.shutdown()
        thread.join()


def chat(said: str, *, stream: bool = False) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": said}], "stream": stream}


def states(gateway: Running) -> set[str]:
    return {line["now"] for line in gateway.lines() if line["event"] == "replica_state"}


@pytest.fixture(scope="module")
def estate(build_town: BuildTown, standing_engine: StandInEngine) -> Iterator[Town]:
    with build_town(standing_engine.fleet_entry("a") + standing_engine.fleet_entry("b")) as built:
        yield built


@pytest.mark.parametrize(("poison", "stream"), [(POISON, False), (POISON, True), (CUT, True)])
async def test_two_accounts_with_bad_requests_break_nobodys_engine(estate: Town, poison: str, stream: bool) -> None:
    gateway, bad = estate.gateway(), [estate.key(), estate.key(), estate.key()]
    good = estate.key()
    for _ in range(5):
        replies = await asyncio.gather(*(call(gateway.port, one, chat(poison, stream=stream)) for one in bad))
        assert {reply.status for reply in replies} == {502}
    assert {reply.status for reply in await crowd([gateway.port], good, chat("hi"), 20)} == {200}
    assert gateway.stop() == 0
    assert "broken" not in states(gateway)


async def test_an_engine_that_fails_every_call_is_left_and_no_client_sees_it(
    build_town: BuildTown, standing_engine: StandInEngine
) -> None:
    with a_broken_engine() as broken:
        fleet = standing_engine.fleet_entry("sound")
        fleet += fleet.replace('"sound"', '"broken"').replace(standing_engine.url, f"http://127.0.0.1:{broken.port}")
        with build_town(fleet) as town:
            gateway, customer = town.gateway(), town.key()
            for stream in (False, True):
                for _ in range(20):
                    assert (await call(gateway.port, customer, chat("hi", stream=stream))).status == 200
            assert 3 <= broken.calls <= 6
