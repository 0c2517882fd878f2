"""What upstream APIs cost this month, over all gateways: added to the record every second, and no call beyond the cap.

What the record has not taken yet counts here all the same. Should an answer of the record's be lost, the same cost may be added
twice: rather too little is spent than too much.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime

from psycopg.errors import UndefinedTable

from backends.fleet import Replica
from billing.reader import Reader, RecordUnavailable
from gateway.progress import Progress

EVERY_SECONDS = 1.0
ADD = """
INSERT INTO upstream_spending AS known (replica, month, microcents) VALUES (%(replica)s, %(month)s, %(microcents)s)
ON CONFLICT (replica, month) DO UPDATE SET microcents = known.microcents + excluded.microcents RETURNING microcents
"""


class Spending:
    """One gateway's share, and the whole as it was heard last. Without the record nothing is spent: its sum isn't known."""

    def __init__(self, replicas: Sequence[Replica], now_ms: Callable[[], int]) -> None:
        self.prices = {replica.id: replica.price for replica in replicas if replica.price is not None}
        self._now_ms = now_ms
        self._known: dict[tuple[str, date], int] = {}
        self._unsent: defaultdict[tuple[str, date], int] = defaultdict(int)

    def spent(self, progress: Progress, body_bytes: int) -> None:
        """A call ended on a replica, perhaps on an upstream one. Without the other side's count, what was sent stands for it."""
        price = self.prices.get(progress.replica or "")
        if price is not None and progress.replica is not None:
            prompt = body_bytes if progress.prompt_tokens is None else progress.prompt_tokens
            cost = price.microcents(prompt, progress.completion_tokens or 0)
            self._unsent[progress.replica, self._month()] += cost

    def has_room(self, replica_id: str) -> bool:
        """Whether it may be asked, by the cap of its month."""
        price, this = self.prices.get(replica_id), (replica_id, self._month())
        return price is None or (this in self._known and price.allows(self._known[this] + self._unsent.get(this, 0)))

    def preferred(self, order: Sequence[Replica], tried: Collection[str]) -> Sequence[Replica]:
        """Of those that could take a call: the fleet's own, and if they all have failed it, upstream ones with room."""
        own = [replica for replica in order if replica.id not in self.prices and replica.id not in tried]
        return own or [replica for replica in order if self.has_room(replica.id)]

    async def run(self, record: Reader) -> None:
        """Runs until it is cancelled; returns at once where nothing is paid by the token."""
        while self.prices:
            await self.settle(record)
            await asyncio.sleep(EVERY_SECONDS)

    async def settle(self, record: Reader) -> None:
        for replica in self.prices:
            self._unsent[replica, self._month()] += 0  # also what others spent is to be heard of
        for (replica, month), cost in tuple(self._unsent.items()):
            try:
                rows = await record.ask(ADD, {"replica": replica, "month": month, "microcents": cost})
            except (RecordUnavailable, UndefinedTable):
                return
            self._known[replica, month] = rows[0]["microcents"]
            self._unsent[replica, month] -= cost
            if month != self._month() and not self._unsent[replica, month]:
                del self._unsent[replica, month], self._known[replica, month]

    def _month(self) -> date:
        return datetime.fromtimestamp(self._now_ms() / 1000, UTC).date().replace(day=1)
