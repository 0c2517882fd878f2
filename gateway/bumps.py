"""Pushes changed accounts' versions into Valkey, from the jobs that the changes staged; doing one twice is harmless."""

import psycopg
from psycopg.rows import TupleRow
from redis.asyncio import Redis

from gateway.limits.scripts import BUMP
from gateway.limits.shard import Shard, shard_of

JOBS_AT_ONCE = 500


async def push_staged(connection: psycopg.AsyncConnection[TupleRow], valkey: Redis, shards: int) -> int:
    """Oldest first; returns how many were done. `connection` is in autocommit: no transaction is open while Valkey is asked."""
    cursor = await connection.execute(
        "SELECT id, payload->>'account', (payload->>'version')::bigint FROM staged_jobs WHERE kind = 'bump' ORDER BY id LIMIT %s",
        (JOBS_AT_ONCE,),
    )
    jobs = await cursor.fetchall()
    if not jobs:
        return 0
    pipeline = valkey.pipeline(transaction=False)
    for _, account, version in jobs:
        pipeline.eval(BUMP.text, 1, Shard(shard_of(account, shards), "").account(account), version)
    await pipeline.execute()
    await connection.execute("DELETE FROM staged_jobs WHERE id = ANY(%s)", ([job for job, _, _ in jobs],))
    return len(jobs)
