"""The hold protocol in plain Python, small enough to be believed: what each script must answer and leave behind."""

from dataclasses import dataclass, field
from typing import Any

from billing.days import month_number
from gateway.clock import DAY_MS


@dataclass
class Counters:
    n: int = 0  # the epoch they were written under; 0: never
    v: int = 0
    seeded: int | None = None
    open: int = 0
    u: dict[int, int] = field(default_factory=dict)
    g: dict[int, int] = field(default_factory=dict)
    b: int | None = None
    c: dict[int, int] = field(default_factory=dict)

    def knows(self, epoch: int, day: int) -> bool:
        return self.n == epoch and (day in self.u or (self.seeded is not None and day > self.seeded))


@dataclass(frozen=True)
class Limits:
    """-1 is none; `pack` are the fares of the account's packs."""

    quota: int = -1
    key_quota: int = -1
    concurrency: int = -1
    pack: int = 0
    pack_per_month: int = -1


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
    of_pack: set[str] = field(default_factory=set)  # ids of calls that a pack pays

    def account(self, name: str) -> Counters:
        return self.accounts.setdefault(name, Counters())

    def key(self, name: str) -> Counters:
        return self.keys.setdefault(name, Counters())

    def admit(self, call: Call, *, version: int, limits: Limits) -> list[Any]:
        if not self.leased.get(call.gateway, False):
            return ["lease"]
        account, key = self.account(call.account), self.key(call.key)
        used, key_used = account.u.get(call.day, 0), key.u.get(call.day, 0)
        if call.id in self.holds:
            return ["admitted", used, key_used, *([account.b or 0] if call.id in self.of_pack else [])]
        if call.id in self.tombstones:
            return ["settled"]
        if abs(call.at_ms - self.clock_ms) > 60_000:
            return ["skew"]
        key_warm = key.knows(self.epoch, call.day)
        if not account.knows(self.epoch, call.day) or (limits.key_quota >= 0 and not key_warm):
            return ["cold"]
        if account.v > version:
            return ["stale"]
        if 0 <= limits.concurrency < account.open + 1:
            return ["concurrency", account.open]
        is_beyond = 0 <= limits.quota < used + call.fare
        if is_beyond and (no := self._without_pack(account, call, limits)):
            return no
        if 0 <= limits.key_quota < key_used + call.fare:
            return ["quota", "key", key_used]
        self._take(account, call, used - call.fare if is_beyond else used)
        if is_beyond:
            self._move_pack(account, call, call.fare)
            self.of_pack.add(call.id)
        account.open += 1
        account.v = version
        if key_warm:
            self._take(key, call, key_used)
        self.holds[call.id] = (call, self.epoch)
        self.calls[call.id] = call
        return ["admitted", account.u[call.day], key_used + call.fare, *([account.b] if is_beyond else [])]

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
        if call.id in self.of_pack and account.n == self.epoch:
            self._move_pack(account, call, call.fare)
        for counters in (key,) if call.id in self.of_pack else (account, key):
            if counters.knows(self.epoch, call.day):
                counters.u[call.day] = counters.u.get(call.day, 0) + call.fare
        account.open += account.n == self.epoch
        return "asserted"

    def seed(self, account_name: str, key_name: str, day: int, version: int, *, month: int) -> str:
        account, key = self.account(account_name), self.key(key_name)
        account_warm, key_warm = account.knows(self.epoch, day), key.knows(self.epoch, day)
        knows_packs = account.n == self.epoch and account.b is not None and month in account.c
        if account_warm and key_warm and (knows_packs or not month):
            return "warm"
        mine = [call for call, epoch in self.holds.values() if epoch == self.epoch and call.account == account_name]
        today = (self.clock_ms + 60_000) // DAY_MS
        if not account_warm:
            fresh = self._fresh(account, today, day)
            fresh.u[day] = self.posted(day, account=account_name) + sum(
                call.fare for call in mine if call.day == day and call.id not in self.of_pack
            )
            fresh.g[day] = 0
            fresh.open = len(mine)
            fresh.v = max(account.v, version)
            self.accounts[account_name] = account = fresh
        if month:
            self._seed_packs(account, account_name, month, [call for call in mine if call.id in self.of_pack])
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
        """What the ledger says, or will say once it has read the stream: of an account what is not of packs, of a key all."""
        return sum(
            call.fare
            for call in self._billed()
            if call.day == day and (call.key == key or (call.account == account and call.id not in self.of_pack))
        )

    def posted_of_packs(self, account: str, month: int | None = None) -> int:
        return sum(
            call.fare
            for call in self._billed()
            if call.account == account and call.id in self.of_pack and month in (None, month_number(call.day))
        )

    def _billed(self) -> list[Call]:
        first = dict(self.ledger)
        for call_id, verdict in self.stream:
            first.setdefault(call_id, verdict)
        return [self.calls[call_id] for call_id, verdict in first.items() if verdict == "posted"]

    def new_epoch(self, *, forget: bool) -> None:
        self.epoch += 1
        if forget:
            self.leased, self.holds, self.tombstones, self.stream = {}, {}, set(), []
            self.accounts, self.keys = {}, {}

    def _without_pack(self, account: Counters, call: Call, limits: Limits) -> list[Any] | None:
        """Why no pack pays for it; None: one does."""
        month, used = month_number(call.day), account.u.get(call.day, 0)
        if limits.pack <= 0:
            return ["quota", "account", used]
        if account.b is None or month not in account.c:
            return ["cold"]
        if account.b + call.fare > limits.pack or 0 <= limits.pack_per_month < account.c[month] + call.fare:
            return ["quota", "account", used, account.b, account.c[month]]
        return None

    def _move_pack(self, account: Counters, call: Call, fares: int) -> None:
        """What is not known stays so."""
        month = month_number(call.day)
        if account.b is not None:
            account.b = max(0, account.b + fares)
        if month in account.c:
            account.c[month] = max(0, account.c[month] + fares)

    def _seed_packs(self, account: Counters, name: str, month: int, held: list[Call]) -> None:
        if account.b is not None and month in account.c:
            return
        if account.b is None:
            account.b = self.posted_of_packs(name) + sum(call.fare for call in held)
        if month not in account.c:
            of_month = sum(call.fare for call in held if month_number(call.day) == month)
            account.c[month] = self.posted_of_packs(name, month) + of_month
        account.c = {old: count for old, count in account.c.items() if old >= month - 1}

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
            if call.id in self.of_pack and counted:
                self._move_pack(account, call, -call.fare)
            for counters in (key,) if call.id in self.of_pack else (account, key):
                if counters.n == epoch and call.day in counters.u:
                    counters.u[call.day] = max(0, counters.u[call.day] - call.fare)
        return verdict

    def _fresh(self, counters: Counters, today: int, day: int) -> Counters:
        if counters.n != self.epoch:
            return Counters(n=self.epoch, seeded=max(today, day))
        counters.seeded = max(counters.seeded or 0, today, day)
        return counters
