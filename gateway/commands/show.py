"""Answers of a command: a table for people, JSON for machines."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Wider than any row: what a table is measured with.
_UNBOUNDED = 100_000
Json = Annotated[bool, typer.Option("--json", help="For machines: JSON instead of a table.")]


def show_json(value: Any) -> None:
    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS
    typer.echo(orjson.dumps(value, default=_plain, option=options).decode())


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str = "There are none.") -> None:
    """Numbers to the right; None is a dash. No cell is ever folded: what a terminal is too narrow for is a block for each row."""
    console = Console(highlight=False)
    if not rows:
        console.print(empty, markup=False)
        return
    for heads in (columns, [column.replace(" ", "\n") for column in columns]):
        table = _table(heads, rows)
        needed = console.measure(table, options=console.options.update(max_width=_UNBOUNDED)).maximum
        if needed <= console.width or not console.is_terminal:
            Console(highlight=False, width=needed).print(table)
            return
    _show_blocks(console, columns, rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        is_number = all(isinstance(row[place], int | None) and not isinstance(row[place], bool) for row in rows)
        table.add_column(column, justify="right" if is_number else "left", vertical="bottom", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    return table


def _show_blocks(console: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    widest = max(map(len, columns))
    for place, row in enumerate(rows):
        if place:
            console.print()
        for column, value in zip(columns, row, strict=True):
            console.print(Text(f"{column:<{widest}}  ", style="bold") + Text(_cell(value)), soft_wrap=True)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(part) for part in value)
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
