"""An engine's answer on its way to the client: bytes as they came, watched for output, end and errors."""

import asyncio
import traceback
from collections.abc import Callable
from typing import Protocol

from gateway.api.dialect import JSON, Question, Reader
from gateway.api.exchange import Exchange
from gateway.api.sse import StreamBroke
from gateway.progress import Progress

# An answer that is not streamed is held until it is whole; no answer comes near this.
ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
# Reading one as large takes milliseconds, and two thousand vectors that have to be converted half a second: a thread's work, so
# that everybody else's calls go on meanwhile.
LARGE_BYTES = 1024 * 1024
# How reading something fails that has another shape than it should: an engine's words may have any.
UNSHAPED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


class Answer(Protocol):
    """What is needed of `backends.client.Answer`."""

    async def read(self) -> bytes: ...


async def relay_whole(answer: Answer, exchange: Exchange, progress: Progress, question: Question) -> None:
    """Raises: StreamBroke when the engine's body is not an answer to the question, ClientGone."""
    body = await read_all(answer)
    progress.first_byte_ms = exchange.elapsed_ms()
    read = exchange.dialect.whole
    try:
        told = read(body, question) if len(body) < LARGE_BYTES else await asyncio.to_thread(read, body, question)
    except UNSHAPED as error:
        raise unshaped(error) from error
    progress.count(told.usage)
    progress.empty = told.is_empty
    progress.status = 200
    exchange.answer(200, [JSON, *exchange.dialect.took(progress.first_byte_ms)], body if told.body is None else told.body)
    progress.output_began = progress.answered = True


async def read_all(answer: Answer) -> bytes:
    parts = bytearray()
    while data := await answer.read():
        parts += data
        if len(parts) > ANSWER_LIMIT_BYTES:
            raise StreamBroke(f"the engine sent an answer of over {ANSWER_LIMIT_BYTES} bytes")
    return bytes(parts)


def unshaped(error: Exception) -> StreamBroke:
    """Should the mistake be ours, the log says where to look."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return StreamBroke(f"the engine sent something of an unknown shape ({type(error).__name__} at {where})")


class StreamRelay:
    """One stream. Nothing leaves before the engine's first output, so that an early failure still has a status of its own."""

    def __init__(
        self, exchange: Exchange, progress: Progress, reader: Reader, on_output: Callable[[], None] | None = None
    ) -> None:
        self._exchange = exchange
        self._progress = progress
        self._reader = exchange.reader = reader
        self._on_output = on_output
        self._held: list[bytes] = []

    async def run(self, answer: Answer) -> None:
        """Raises: StreamBroke, ClientGone, and what the engine's connection raises."""
        reader = self._reader
        try:
            while data := await answer.read():
                try:
                    out = reader.feed(data)
                except StreamBroke as broke:
                    if self._progress.output_began and broke.before:
                        self._exchange.put(broke.before)
                    raise
                except UNSHAPED as error:
                    raise unshaped(error) from error
                if self._progress.output_began:
                    if out:
                        await self._exchange.write(out)
                elif reader.has_output:
                    await self._begin(out)
                else:
                    self._held.append(out)
            await self._end(reader.end())
        finally:
            self._progress.count(reader.usage, reader.frames)

    async def _begin(self, out: bytes) -> None:
        self._progress.first_byte_ms = self._exchange.elapsed_ms()
        self._progress.status = 200
        self._exchange.begin_output(b"".join([*self._held, out]))
        self._progress.output_began = True
        if self._on_output is not None:
            self._on_output()
        self._held.clear()
        await self._exchange.drained()

    async def _end(self, owed: bytes) -> None:
        if self._progress.output_began:
            self._exchange.put(owed, last=True)
        else:
            # Finished without a word: the client gets it as it is, and pays nothing.
            self._progress.empty, self._progress.status = True, 200
            self._exchange.begin_output(b"".join([*self._held, owed]), last=True)
        self._progress.answered = True
        await self._exchange.drained()

    def cut_as_length(self) -> None:
        """Our own total time-out after output: end the stream properly, with `finish_reason` "length". A client that does not
        read is not waited for."""
        self._exchange.put(self._reader.last_words(), last=True)
        self._progress.answered = True
