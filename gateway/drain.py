"""Leaving without losing a call: not ready, no new calls, the running ones finish."""

import asyncio


class Draining(Exception):
    """This gateway is leaving; another one takes the call."""


class Drain:
    """Counts the calls being served, each `with drain:`. Once begun, it takes no more and waits for the last one."""

    def __init__(self) -> None:
        self.has_begun = False
        self._tasks: set[asyncio.Task[object] | None] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def open_calls(self) -> int:
        return len(self._tasks)

    def __enter__(self) -> None:
        """A call begins. Raises: Draining."""
        if self.has_begun:
            raise Draining
        self._tasks.add(asyncio.current_task())
        self._empty.clear()

    def __exit__(self, *_: object) -> None:
        self._tasks.discard(asyncio.current_task())
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
            cut = [task for task in self._tasks if task is not None]
            for task in cut:
                task.cancel()
            if cut:  # the last one may have ended in the instant that the time was over
                await asyncio.wait(cut, timeout=2.0)
            return len(cut)
        return 0
