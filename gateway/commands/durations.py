"""Spans of time as people write them: `90s`, `30m`, `24h`, `7d`."""

import re
from datetime import timedelta

import typer

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(written: str) -> timedelta:
    """Raises: typer.BadParameter (exit code 2)."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", written.strip())
    if found is None:
        raise typer.BadParameter(f"{written!r} is no span of time; write 90s, 30m, 24h or 7d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
