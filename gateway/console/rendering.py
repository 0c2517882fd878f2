"""Templates become HTML; figures, money and times are written in one way everywhere."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gateway.console.static_files import address_of


def render(template: str, facts: Mapping[str, Any]) -> bytes:
    return _environment().get_template(template).render(facts).encode()


def number(value: int | None) -> str:
    """`12,345`; a dash for what is not known."""
    return "–" if value is None else f"{value:,}"


def money(cents: int | None) -> str:
    """`$80`, `$80.50`."""
    if cents is None:
        return "–"
    whole, rest = divmod(abs(cents), 100)
    return f"{'−' if cents < 0 else ''}${whole:,}" + (f".{rest:02}" if rest else "")


def milliseconds(value: int | None) -> str:
    """`840 ms`, `12.4 s`."""
    if value is None:
        return "–"
    return f"{value} ms" if value < 1000 else f"{value / 1000:.1f} s"


def moment(value: datetime | None) -> Markup:
    """UTC, which the browser turns into the reader's own time where it runs scripts."""
    if value is None:
        return Markup("–")
    at = value.astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M"))


@cache
def _environment() -> Environment:
    environment = Environment(loader=FunctionLoader(_template), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.lstrip_blocks = True
    environment.filters |= {"number": number, "money": money, "ms": milliseconds, "moment": moment}
    environment.globals["static"] = address_of
    return environment


def _template(name: str) -> str:
    return (files("gateway.console") / "templates" / name).read_text(encoding="utf-8")
