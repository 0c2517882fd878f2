"""A gateway process without an engine: asks for so many calls at once, posts those it gets, prints how many."""

import asyncio
import sys

from gateway.limits.gate import QuotaUsedUp
from gateway.limits.policy import Numbers
from tests.limits.house import a_gate, an_ask, serve


async def main(url: str, calls: int, quota: int) -> int:
    async with a_gate(url, lease_ms=1000) as gate:
        outcomes = await asyncio.gather(
            *(serve(gate, an_ask(Numbers(quota=quota))) for _ in range(calls)), return_exceptions=True
        )
        await gate.flush(5)
    for outcome in outcomes:
        if outcome is not None and not isinstance(outcome, QuotaUsedUp):
            raise outcome
    return outcomes.count(None)


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
