"""What one `faregate up` has started so far, so that a failure or a Ctrl-C leaves nothing of it behind."""

import signal
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol, Self

from gateway.local.home import Home, Service
from gateway.local.process import Process
from gateway.local.stopping import end


class Startable(Protocol):
    """One server: `launch` begins it, `wait` returns when it answers."""

    @property
    def port(self) -> int: ...
    @property
    def log(self) -> Path: ...
    def launch(self) -> Process: ...
    def wait(self, process: Process) -> None: ...


class Starting(AbstractContextManager["Starting"]):
    """Leaving the block with an error ends what was started inside it, last first; services that ran before stay."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._begun: list[Service] = []

    def start(self, name: str, server: Startable) -> None:
        process = server.launch()
        service = Service(name, process.pid, process.started, server.port, str(server.log))
        self._home.record(service)
        self._begun.append(service)
        server.wait(process)

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, _as_interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        signal.signal(signal.SIGTERM, self._before)
        if kind is None:
            return
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for service in reversed(self._begun):
                end(service)
                self._home.forget(service.name)
        finally:
            signal.signal(signal.SIGINT, before)


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
