"""A stream whose engine is silent is kept open in the way of each API, at the ends of events alone."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.chunks import CHUNKS
from gateway.api.dialect import Dialect, Question
from gateway.api.exchange import Exchange, KeepWarm
from gateway.api.message_events import MESSAGE_EVENTS
from gateway.api.relay import StreamRelay
from gateway.api.response_events import EVENTS
from gateway.progress import Progress
from tests.api.test_server import listening
from tests.recordings.recording import recorded

SILENCE_SECONDS = 0.12
COMMENT, PING, IN_PROGRESS = b": waiting", b"event: ping", b"event: response.in_progress"


class Halting:
    """An engine's recorded stream that stops for a while in the middle of an event, inside a character."""

    def __init__(self, body: bytes, at: int) -> None:
        self._pieces: Iterator[bytes] = iter((body[:at], body[at:]))
        self._is_first = True

    async def read(self) -> bytes:
        if not self._is_first:
            await asyncio.sleep(SILENCE_SECONDS)
        self._is_first = False
        return next(self._pieces, b"")


class Relaying:
    """Answers every request with the stream."""

    def __init__(self, dialect: Dialect, body: bytes, at: int) -> None:
        self._dialect, self._body, self._at = dialect, body, at

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        exchange = Exchange(scope, receive, "r1", self._dialect)
        reader = self._dialect.reader(Question({}, False, ENGINE_KINDS["vllm"]))
        relay = StreamRelay(exchange, Progress(), reader)
        with exchange.kept_warm(0.02, is_on=True):
            await relay.run(Halting(self._body, self._at))


async def events_of(app: Relaying) -> list[bytes]:
    async with listening(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.0\r\nhost: x\r\n\r\n")
        answer = await reader.read()
        writer.close()
    return answer.partition(b"\r\n\r\n")[2].split(b"\n\n")


@pytest.mark.parametrize(
    ("dialect", "case", "silence"),
    [
        (CHUNKS, "chat-many-bytes-stream", COMMENT),
        (MESSAGE_EVENTS, "messages-plain-stream", PING),
        (EVENTS, "responses-plain-stream", IN_PROGRESS),
    ],
)
async def test_a_silence_in_the_middle_of_an_event_is_told_between_events(
    monkeypatch: pytest.MonkeyPatch, dialect: Dialect, case: str, silence: bytes
) -> None:
    """suna#3696: ten silent seconds, a hop that gave up, a cut 200; opencode#39694: characters cut in two by what was put in."""
    monkeypatch.setattr(KeepWarm, "EVERY_SECONDS", 0.02)
    body = recorded("vllm", case).answer.body
    middle = body.find("😀".encode(), len(body) // 3) + 2 if dialect is CHUNKS else len(body) * 2 // 3
    assert not body[:middle].endswith(b"\n\n")
    reader = dialect.reader(Question({}, False, ENGINE_KINDS["vllm"]))
    expected = (reader.feed(body) + reader.end()).split(b"\n\n")
    got = await events_of(Relaying(dialect, body, middle))
    warm = [event for event in got if event.startswith(silence) and event not in expected]
    assert len(warm) >= 2
    assert [event for event in got if event not in warm] == expected
