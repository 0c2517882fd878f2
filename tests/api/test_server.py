"""The front's HTTP/1.1 has limits that stock uvicorn lacks, and tells of a hang-up at once. Raw sockets, as an attacker has."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from gateway.app import _listen, _Server
from gateway.line import LINE, Line
from gateway.server import protocol


class App:
    """Answers "ok"; on /wait it answers when told to, and notes a hang-up."""

    def __init__(self) -> None:
        self.calls = 0
        self.hung_up = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls += 1
        line: Line = scope[LINE]
        line.listener = self.hung_up.set
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/wait":
            leaving = asyncio.create_task(self.hung_up.wait())
            answering = asyncio.create_task(self.may_answer.wait())
            await asyncio.wait([leaving, answering], return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            answering.cancel()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serving(header_seconds: float = 5.0) -> AsyncIterator[tuple[App, int]]:
    app = App()
    async with listening(app, header_seconds) as port:
        yield app, port


@asynccontextmanager
async def listening(app: Any, header_seconds: float = 5.0) -> AsyncIterator[int]:
    """Any ASGI application behind our protocol; yields the port."""
    listener = _listen("127.0.0.1", 0, "X")
    config = uvicorn.Config(
        app,
        http=protocol(8192, header_seconds, 0.6),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=2,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task


async def talk(port: int, *sends: bytes, pause: float = 0.0) -> bytes:
    """Everything the server says until it closes, or falls silent for half a second."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        for data in sends:
            if not writer.transport.is_closing():
                writer.write(data)
                await asyncio.sleep(pause)
        while True:
            async with asyncio.timeout(0.5):
                data = await reader.read(65536)
            if not data:
                return answer
            answer += data
    except (TimeoutError, ConnectionError):
        return answer
    finally:
        writer.close()


GET = b"GET / HTTP/1.1\r\nhost: x\r\n"


async def test_a_plain_request_is_served() -> None:
    async with serving() as (_, port):
        assert (await talk(port, GET + b"\r\n")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("chunk", [100, 7000, 100_000])
async def test_headers_over_the_limit_get_431_and_not_a_200(chunk: int) -> None:
    async with serving() as (app, port):
        big = GET + b"x-big: " + b"a" * 100_000 + b"\r\n\r\n"
        answer = await talk(port, *[big[i : i + chunk] for i in range(0, len(big), chunk)])
        assert answer.startswith(b"HTTP/1.1 431")
        assert b'"message"' in answer
        assert app.calls == 0


async def test_many_small_headers_count_too() -> None:
    async with serving() as (app, port):
        many = b"".join(b"x-%d: a\r\n" % number for number in range(3000))
        assert (await talk(port, GET + many + b"\r\n")).startswith(b"HTTP/1.1 431")
        assert app.calls == 0


async def test_slow_headers_are_cut() -> None:
    async with serving(header_seconds=0.3) as (app, port):
        answer = await talk(port, *[GET[i : i + 1] for i in range(20)], pause=0.03)
        assert answer.startswith(b"HTTP/1.1 408")
        assert app.calls == 0


async def test_slow_headers_of_a_second_request_are_cut_too() -> None:
    async with serving(header_seconds=0.3) as (app, port):
        answer = await talk(port, GET + b"\r\n", GET, pause=0.2)
        assert answer.count(b"HTTP/1.1 200") == 1
        assert answer.count(b"HTTP/1.1 408") == 1
        assert app.calls == 1


async def test_a_slow_body_is_not_taken_for_slow_headers() -> None:
    async with serving(header_seconds=0.2) as (_, port):
        answer = await talk(port, GET.replace(b"GET", b"POST") + b"content-length: 4\r\n\r\n", b"ab", b"cd", pause=0.2)
        assert answer.startswith(b"HTTP/1.1 200")


async def test_a_body_that_never_ends_is_cut_with_words() -> None:
    async with serving() as (_, port):
        answer = await talk(port, GET.replace(b"GET", b"POST") + b"content-length: 40\r\n\r\n", *[b"a"] * 10, pause=0.1)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"body did not arrive" in answer


@pytest.mark.parametrize(
    "request_",
    [
        b"NONSENSE\r\n\r\n",
        GET + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        GET + b"content-length: 4\r\ncontent-length: 5\r\n\r\nabcde",
        GET + b"content-length: -1\r\n\r\n",
        GET + b"bad header\r\n\r\n",
        GET + b"upgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    ],
)
async def test_what_is_not_clean_http_gets_a_json_400_and_the_door(request_: bytes) -> None:
    async with serving() as (_, port):
        answer = await talk(port, request_)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"connection: close" in answer
        assert b'"type":"invalid_request_error"' in answer


async def test_a_pipelined_request_does_not_hide_the_first_ones_hang_up() -> None:
    async with serving() as (app, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n" + GET + b"\r\n" + b"x" * 300_000)
        await asyncio.sleep(0.1)
        writer.transport.abort()
        async with asyncio.timeout(0.2):
            await app.hung_up.wait()
        assert app.calls == 1


async def test_a_pipelined_request_is_not_served_and_the_first_answer_closes() -> None:
    async with serving() as (app, port):
        app.may_answer.set()
        answer = await talk(port, b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n" + GET + b"\r\n")
        assert answer.count(b"HTTP/1.1 200") == 1
        assert b"connection: close" in answer


@pytest.mark.parametrize("size", [0, 10, 70_000, 500_000])
async def test_a_hang_up_is_told_within_200_ms_whatever_the_body_was(size: int) -> None:
    async with serving() as (app, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /wait HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)
        await writer.drain()
        await asyncio.sleep(0.2)
        assert not app.hung_up.is_set()
        writer.close()
        async with asyncio.timeout(0.2):
            await app.hung_up.wait()


async def test_keep_alive_serves_request_after_request() -> None:
    async with serving() as (app, port):
        answer = await talk(port, *[GET + b"\r\n"] * 3, pause=0.05)
        assert answer.count(b"HTTP/1.1 200") == 3
        assert app.calls == 3
