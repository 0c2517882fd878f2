"""`faregate usage export`: an account's statement, written as it is read."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer

from billing.accounts import find_account
from billing.spreadsheet import csv_lines
from billing.statements import DAILY, RECEIPTS, statement_rows
from gateway.commands.record import reading


class By(StrEnum):
    DAY = "day"
    REQUEST = "request"


class Form(StrEnum):
    CSV = "csv"
    JSON = "json"


_STATEMENTS = {By.DAY: DAILY, By.REQUEST: RECEIPTS}


def export(
    account: Annotated[str, typer.Argument(help="The account's name or id.")],
    by: Annotated[By, typer.Option(help="One row for each day, key and model; or a receipt for each request.")] = By.DAY,
    form: Annotated[Form, typer.Option("--format", help="CSV for spreadsheets, or one JSON array.")] = Form.CSV,
    since: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="The first day (UTC); 30 days without it.")] = None,
    until: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="The last day (UTC); today without it.")] = None,
) -> None:
    """Write an account's statement to standard output."""
    last = datetime.now(UTC).date() if until is None else until.date()
    first = last - timedelta(days=29) if since is None else since.date()
    if first > last:
        raise typer.BadParameter(f"{first} is after {last}")
    statement = _STATEMENTS[by]
    with reading() as connection:
        rows = statement_rows(connection, statement, find_account(connection, account).id, first, last)
        for piece in csv_lines(statement.columns, rows) if form is Form.CSV else json_lines(statement.columns, rows):
            sys.stdout.write(piece)


def json_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """One array, an object a line."""
    before = "["
    for row in rows:
        yield f"{before}\n{orjson.dumps(dict(zip(columns, row, strict=True)), option=orjson.OPT_UTC_Z).decode()}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"
