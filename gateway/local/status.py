"""`faregate status`: what runs, since when, where, and whether it is well."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from rich.table import Table

from gateway.local.home import Home, Service
from gateway.local.stopping import ORDER, TITLES

# What no server of the person's own stands in for.
ALWAYS = ("worker", "gateway")


@dataclass(frozen=True)
class Line:
    """One service as a person sees it."""

    name: str
    state: str
    pid: int | None
    port: int | None
    up_seconds: int | None
    memory_mb: int | None
    log: str


def lines(home: Home) -> list[Line]:
    """Every service that this folder knows of, and the programs that an `up` which failed midway has left out."""
    known = {service.name: service for service in home.services()}
    expected = {*known, *(ALWAYS if known else ())}
    return [_line(known[name]) if name in known else _missing(home, name) for name in reversed(ORDER) if name in expected]


def as_json(found: list[Line]) -> list[dict[str, object]]:
    return [asdict(line) for line in found]


def as_table(found: list[Line]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("service", "state", "pid", "port", "up", "memory", "log"):
        table.add_column(title, overflow="fold")
    for line in found:
        state = f"[green]{line.state}[/]" if line.state == "running" else f"[red]{line.state}[/]"
        up = (
            ""
            if line.up_seconds is None
            else f"{line.up_seconds // 3600}:{line.up_seconds // 60 % 60:02}:{line.up_seconds % 60:02}"
        )
        memory = "" if line.memory_mb is None else f"{line.memory_mb} MB"
        table.add_row(TITLES[line.name], state, str(line.pid or ""), str(line.port or ""), up, memory, _near(line.log))
    return table


def _near(path: str) -> str:
    """As short as it can be typed from here."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _missing(home: Home, name: str) -> Line:
    return Line(name, "gone", None, None, None, None, str(home.log(name)))


def _line(service: Service) -> Line:
    if not service.process.is_alive:
        return Line(service.name, "gone", None, service.port or None, None, None, service.log)
    try:
        memory = psutil.Process(service.pid).memory_info().rss // 2**20
    except psutil.Error:
        memory = None
    up = int(time.time() - service.started)
    return Line(service.name, "running", service.pid, service.port or None, up, memory, service.log)
