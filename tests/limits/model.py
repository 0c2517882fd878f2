"""The hold protocol in plain Python, small enough to be believed: what each script must answer and leave behind."""

from dataclasses import dataclass, field
from typing import Any

from gateway.clock import DAY_MS


@dataclass
class Counters:
    n: int = 0  # the epoch they were written under; 0: never
    v: int = 0
    seeded: int | None = None
    open: int = 0
    u: dict[int, int] = field(default_factory=dict)
    g: dict[int, int] = field(default_factory=dict)

    def knows(self, epoch: int, day: int) -> bool:
        return self.n == epoch and (day in self.u or (self.seeded is not None and day > self.seeded))


@dataclass(frozen=True)
class Call:
    id: str
    gateway: str
    account: str
    key: str
    day: int
    at_ms: int
    fare: int


@dataclass
class Model:
    epoch: int = 1
    clock_ms: int = 0
    leased: dict[str, bool] = field(default_factory=dict)  # gateway -> alive; absent: forgotten
    holds: dict[str, tuple[Call, int]] = field(default_factory=dict)  # id -> call, epoch it counts in
    tombstones: set[str] = field(default_factory=set)
    accounts: dict[str, Counters] = field(default_factory=dict)
    keys: dict[str, Counters] = field(default_factory=dict)
    stream: list[tuple[str, str]] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    ledger: dict[str, str] = field(default_factory=dict)  # id -> verdict; the first one stands

    def account(self, name: str) -> Counters:
        return self.accounts.setdefault(name, Counters())

    def key(self, name: str) -> Counters:
        return self.keys.setdefault(name, Counters())

    def admit(self, call: Call, *, version: int, quota: int, key_quota: int, concurrency: int) -> list[Any]:
        if not self.leased.get(call.gateway, False):
            return ["lease"]
        account, key = self.account(call.account), self.key(call.key)
        used, key_used = account.u.get(call.day, 0), key.u.get(call.day, 0)
        if call.id in self.holds:
            return ["admitted", used, key_used]
        if call.id in self.tombstones:
            return ["settled"]
        if abs(call.at_ms - self.clock_ms) > 60_000:
            return ["skew"]
        key_warm = key.knows(self.epoch, call.day)
        if not account.knows(self.epoch, call.day) or (key_quota >= 0 and not key_warm):
            return ["cold"]
        if account.v > version:
            return ["stale"]
        if 0 <= concurrency < account.open + 1:
            return ["concurrency", account.open]
        if 0 <= quota < used + call.fare:
            return ["quota", "account", used]
        if 0 <= key_quota < key_used + call.fare:
            return ["quota", "key", key_used]
        self._take(account, call, used)
        account.open += 1
        account.v = version
        if key_warm:
            self._take(key, call, key_used)
        self.holds[call.id] = (call, self.epoch)
        self.calls[call.id] = call
        return ["admitted", used + call.fare, key_used + call.fare]

    def settle(self, call: Call, verdict: str, free_hangups: int) -> tuple[str, int]:
        self.calls[call.id] = call
        held = self.holds.pop(call.id, None)
        if held is None:
            verdict = "voided" if verdict == "hangup" else verdict
            self.tombstones.add(call.id)
        else:
            verdict = self._close(*held, verdict, free_hangups)
        self.stream.append((call.id, verdict))
        return verdict, int(held is not None)

    def sweep(self, gateway: str, call_id: str | None) -> str:
        if self.leased.get(gateway, False):
            return "alive"
        answer = "gone"
        if call_id is not None and call_id in self.holds and self.holds[call_id][0].gateway == gateway:
            self._close(*self.holds.pop(call_id), "expired", -1)
            self.stream.append((call_id, "expired"))
            self.tombstones.add(call_id)
            answer = "swept"
        if not any(call.gateway == gateway for call, _ in self.holds.values()):
            self.leased.pop(gateway, None)
        return answer

    def put_back(self, call: Call) -> str:
        if call.gateway not in self.leased:
            return "lease"
        if call.id in self.tombstones:
            return "settled"
        if call.id in self.holds and self.holds[call.id][1] == self.epoch:
            return "held"
        self.holds[call.id] = (call, self.epoch)
        account, key = self.account(call.account), self.key(call.key)
        for counters in (account, key):
            if counters.knows(self.epoch, call.day):
                counters.u[call.day] = counters.u.get(call.day, 0) + call.fare
        account.open += account.n == self.epoch
        return "asserted"

    def seed(self, account_name: str, key_name: str, day: int, version: int) -> str:
        account, key = self.account(account_name), self.key(key_name)
        account_warm, key_warm = account.knows(self.epoch, day), key.knows(self.epoch, day)
        if account_warm and key_warm:
            return "warm"
        mine = [call for call, epoch in self.holds.values() if epoch == self.epoch and call.account == account_name]
        today = (self.clock_ms + 60_000) // DAY_MS
        if not account_warm:
            fresh = self._fresh(account, today, day)
            fresh.u[day] = self.posted(day, account=account_name) + sum(call.fare for call in mine if call.day == day)
            fresh.g[day] = 0
            fresh.open = len(mine)
            fresh.v = max(account.v, version)
            self.accounts[account_name] = fresh
        if not key_warm:
            fresh = self._fresh(key, today, day)
            fresh.u[day] = self.posted(day, key=key_name) + sum(
                call.fare for call in mine if call.day == day and call.key == key_name
            )
            self.keys[key_name] = fresh
        return "seeded"

    def bump(self, account: str, version: int) -> int:
        found = self.account(account)
        found.v = max(found.v, version)
        return found.v

    def drain(self) -> None:
        for call_id, verdict in self.stream:
            self.ledger.setdefault(call_id, verdict)

    def posted(self, day: int, *, account: str = "", key: str = "") -> int:
        """What the ledger says, or will say once it has read the stream."""
        first = dict(self.ledger)
        for call_id, verdict in self.stream:
            first.setdefault(call_id, verdict)
        calls = [self.calls[call_id] for call_id, verdict in first.items() if verdict == "posted"]
        return sum(call.fare for call in calls if call.day == day and (call.account == account or call.key == key))

    def new_epoch(self, *, forget: bool) -> None:
        self.epoch += 1
        if forget:
            self.leased, self.holds, self.tombstones, self.stream = {}, {}, set(), []
            self.accounts, self.keys = {}, {}

    def _take(self, counters: Counters, call: Call, used: int) -> None:
        if call.day not in counters.u:
            counters.u = {day: count for day, count in counters.u.items() if day >= call.day - 1}
            counters.g = {day: count for day, count in counters.g.items() if day >= call.day - 1}
        counters.u[call.day] = used + call.fare

    def _close(self, call: Call, epoch: int, verdict: str, free_hangups: int) -> str:
        account, key = self.account(call.account), self.key(call.key)
        counted = account.n == epoch
        if verdict == "hangup":
            verdict = "voided"
            if counted and call.day in account.u:
                account.g[call.day] = account.g.get(call.day, 0) + 1
                if 0 <= free_hangups < account.g[call.day]:
                    verdict = "posted"
        if counted:
            account.open = max(0, account.open - 1)
        if verdict != "posted":
            for counters in (account, key):
                if counters.n == epoch and call.day in counters.u:
                    counters.u[call.day] = max(0, counters.u[call.day] - call.fare)
        return verdict

    def _fresh(self, counters: Counters, today: int, day: int) -> Counters:
        if counters.n != self.epoch:
            return Counters(n=self.epoch, seeded=max(today, day))
        counters.seeded = max(counters.seeded or 0, today, day)
        return counters
