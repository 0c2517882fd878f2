"""An installation whose stores and engine a test may kill: servers of its own, not the session's."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import redis

from gateway.local.postgres import Postgres
from tests.support.engine_fixture import StandInEngine, start_stand_in_engine
from tests.support.gateway import Town, town, wait_for
from tests.support.services import PostgresServer, ValkeyServer, running_postgres, running_valkey

MODEL = "smollm2-135m-instruct"


@dataclass(slots=True)
class Ground:
    """Everything that can be killed."""

    town: Town
    postgres: PostgresServer
    valkey: ValkeyServer
    engine: StandInEngine

    def restart_engine(self) -> None:
        self.engine = start_stand_in_engine(port=self.engine.port, model=MODEL)

    def restart_postgres(self) -> None:
        self.postgres.process = self.postgres.postgres.start()

    def calm(self, seconds: float = 20.0) -> None:
        """Wait until nothing is held, no slot is taken and every event is in the ledger."""
        try:
            wait_for(self._is_calm, seconds)
        except AssertionError:
            raise AssertionError(f"not calm within {seconds:g} s: {self.unrest()}") from None

    def unrest(self) -> dict[str, object]:
        """What is still open, for the message of a failed test."""
        with redis.Redis.from_url(self.valkey.url, decode_responses=True) as client:
            ledger = {request_id for request_id, _ in self.ledger()}
            return {
                "holds": {key: client.hgetall(key) for key in client.scan_iter("{s*}:holds:*")},
                "slots": {key: client.hgetall(key) for key in client.scan_iter("{p:*}:slots")},
                "not_in_ledger": [
                    (
                        key,
                        entry,
                        fields["id"],
                        client.get(key.replace(":ev", ":wm")),
                        client.hgetall(key.replace(":ev", ":epoch")),
                    )
                    for key in client.scan_iter("{s*}:ev")
                    for entry, fields in client.xrange(key)
                    if fields["id"] not in ledger
                ][:20],
            }

    def _is_calm(self) -> bool:
        """Raises nothing while a store is still on its way back."""
        try:
            return self._nothing_is_open()
        except (redis.RedisError, psycopg.Error):
            return False

    def _nothing_is_open(self) -> bool:
        with redis.Redis.from_url(self.valkey.url, socket_timeout=2) as client:
            holds = sum(client.hlen(key) for key in client.scan_iter("{s*}:holds:*"))
            slots = sum(client.hlen(key) for key in client.scan_iter("{p:*}:slots"))
            ids = {fields[b"id"].decode() for key in client.scan_iter("{s*}:ev") for _, fields in client.xrange(key)}
        if holds or slots:
            return False
        return ids <= {request_id for request_id, _ in self.ledger()}

    def ledger(self) -> list[tuple[str, str]]:
        with psycopg.connect(self.town.database_url) as connection:
            return connection.execute("SELECT id::text, verdict FROM requests").fetchall()

    def counters(self) -> tuple[int, int]:
        """Fares used today and calls open, summed over all accounts, as Valkey has them."""
        used = open_calls = 0
        with redis.Redis.from_url(self.valkey.url) as client:
            for key in client.scan_iter("{s*}:a:*"):
                fields = client.hgetall(key)
                used += sum(int(value) for name, value in fields.items() if name.startswith(b"u"))
                open_calls += int(fields.get(b"open", 0))
        return used, open_calls

    def rollups(self) -> tuple[int, int]:
        """Fares posted, by the roll-ups and by the rows."""
        with psycopg.connect(self.town.database_url) as connection:
            row = connection.execute(
                "SELECT (SELECT coalesce(sum(fares), 0) FROM usage_daily),"
                " (SELECT coalesce(sum(fare), 0) FROM requests WHERE verdict = 'posted')"
            ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with ExitStack() as stack:
        postgres = stack.enter_context(running_postgres())
        valkey = stack.enter_context(running_valkey())
        database_url = stack.enter_context(postgres.database())
        engine = start_stand_in_engine(model=MODEL)
        built = stack.enter_context(town(database_url, valkey.url, tmp_path, engine.fleet_entry()))
        found = Ground(built, postgres, valkey, engine)
        try:
            yield found
        finally:
            for running in built.processes:
                running.kill()
            found.engine.kill()
            found.valkey.process.kill()
    Postgres.stop(postgres.process)  # the one that was started last; the first is stopped where it was begun
