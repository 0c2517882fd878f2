"""`make bench-ledger`: fills a ledger in a PostgreSQL of its own, measures what reads and writes it, and writes the page."""

import argparse
import asyncio
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
from redis.asyncio import Redis
from rich.console import Console
from rich.progress import track

import migrations
from billing.database import open_engine
from billing.seed import seed
from gateway.local.ports import free_port
from gateway.local.postgres import Postgres
from tests.benchmarks.ledger.measure import ASKING, Figure, drained, pages, proved, retention, today
from tests.benchmarks.ledger.town import Connection, Size, settle, write_day
from tests.benchmarks.run import cpu_name
from tests.support.gateway import ROOT
from tests.support.services import running_valkey, scratch

# A row of the ledger with its indexes, what its making writes ahead, and some air.
BYTES_A_ROW = 1500
EVENTS = 100_000
PAGE = (
    "# A large ledger\n\n"
    "Written by `make bench-ledger ROWS={size.rows}` on {size.last}: {size.rows:,} rows of {size.accounts:,} accounts over"
    " {size.days} days, the n-th account calling about n times as rarely as the first. PostgreSQL 18 as it comes from its wheel,"
    " with its own settings, each commit on the disk; {cpu}, Python {python}.\n\n"
    "| what | seen |\n| --- | --- |\n{table}\n\n"
    "Times are medians over {asking} accounts, from the busiest to the rarest, each asked once, after three that warm up. That"
    " the plans behind them are indexed, leave out other days' partitions and sort no more than a page holds is a test"
    " (`tests/billing/test_query_plans.py`).\n"
)


def main() -> None:
    options = _options()
    needed = options.rows * BYTES_A_ROW + 5_000_000_000
    if shutil.disk_usage("/tmp").free < needed:
        raise SystemExit(f"/tmp has not the {needed / 1e9:.0f} GB that {options.rows:,} rows need")
    size = Size(options.rows, options.days, options.accounts, today())
    with _postgres() as url, running_valkey() as valkey:
        figures = asyncio.run(_measure(url, valkey.url, size))
    options.page.write_text(page(size, figures), encoding="utf-8")
    for figure in figures:
        Console().print(f"{figure.what}: {figure.value}", highlight=False)


@contextmanager
def _postgres() -> Iterator[str]:
    """One that writes as one in production does: every commit is on the disk."""
    with scratch("ledger") as folder:
        postgres = Postgres(folder, free_port(), "bench")
        process = postgres.start()
        try:
            url = postgres.url()
            migrations.upgrade(url)
            seed(url)
            yield url
        finally:
            Postgres.stop(process)


async def _measure(url: str, valkey_url: str, size: Size) -> list[Figure]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection, Redis.from_url(valkey_url) as valkey:
        filled = await _fill(connection, size)
        accounts = await _by_use(connection)
        engine = open_engine(url)
        with engine.connect() as reader:
            asked = pages(reader, accounts, size)
        engine.dispose()
        drain = await drained(connection, valkey, accounts, EVENTS)
        proof = await proved(connection, valkey)
        return [*filled, *asked, drain, proof, *await retention(connection, url, size)]


async def _fill(connection: Connection, size: Size) -> list[Figure]:
    await settle(connection, size)
    began = time.perf_counter()
    for day in track(size.each_day(), "filling", transient=True):
        await write_day(connection, size, day)
    seconds = time.perf_counter() - began
    await connection.execute("VACUUM ANALYZE")
    cursor = await connection.execute("SELECT pg_database_size(current_database()), (SELECT count(*) FROM usage_daily)")
    row = await cursor.fetchone()
    assert row is not None
    told = f"{row[0] / 1e9:.1f} GB, {row[0] / size.rows:.0f} bytes a row"
    return [
        Figure("on the disk, with indexes and roll-ups", told, is_goal=False),
        Figure("roll-ups of these rows", f"{row[1]:,}", is_goal=False),
        Figure("filling it (rows made by the server itself)", f"{size.rows / seconds:,.0f} rows a second", is_goal=False),
    ]


async def _by_use(connection: Connection) -> list[UUID]:
    """Busiest first."""
    query = "SELECT account_id FROM usage_daily GROUP BY account_id ORDER BY sum(posted) DESC, account_id"
    cursor = await connection.execute(query)
    return [account for (account,) in await cursor.fetchall()]


def page(size: Size, figures: list[Figure]) -> str:
    table = "\n".join(f"| {figure.what} | {figure.value} |" for figure in figures)
    return PAGE.format(
        size=size, table=table, asking=min(ASKING, size.accounts), cpu=cpu_name(), python=platform.python_version()
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--accounts", type=int, default=1000)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "ledger-benchmarks.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
