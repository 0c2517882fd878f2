"""Leaving without losing a call: not ready, no new calls, the running ones finish."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Draining(Exception):
    """This gateway is leaving; another one takes the call."""


class Drain:
    """Counts the calls being served. Once begun it takes no more, and `finished` returns when the last one has ended."""

    def __init__(self) -> None:
        self.has_begun = False
        self._tasks: set[asyncio.Task[object]] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def open_calls(self) -> int:
        return len(self._tasks)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Raises: Draining."""
        if self.has_begun:
            raise Draining
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._empty.clear()
        try:
            yield
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self._empty.set()

    def begin(self) -> None:
        self.has_begun = True

    async def finished(self, within_seconds: float) -> int:
        """Wait for the calls to end; cut those that have not by then (their fares are voided). Returns how many were cut."""
        try:
            async with asyncio.timeout(within_seconds):
                await self._empty.wait()
        except TimeoutError:
            cut = list(self._tasks)
            for task in cut:
                task.cancel()
            await asyncio.wait(cut, timeout=2.0)
            return len(cut)
        return 0
