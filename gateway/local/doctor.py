"""`faregate doctor`: looks at the machine, the settings and each server, and says what to do about what is wrong."""

import http.client
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis

import migrations
from backends.fleet import Fleet, InvalidFleet
from billing.conninfo import conninfo
from gateway.local.ask import get
from gateway.local.ground import NoGround, unprivileged
from gateway.local.home import Home
from gateway.local.machine import MachineUnfit, check_platform, check_space
from gateway.local.status import lines
from gateway.local.stopping import TITLES
from gateway.settings import Settings, SettingsWrong

# Ids are refused when they are 60 s off (docs/decisions/0001); a clock this far off is on its way there.
CLOCK_OFF_MAX_SECONDS = 5.0


@dataclass(frozen=True)
class Finding:
    """One thing looked at; `detail` says what was seen, or what to do."""

    check: str
    ok: bool
    detail: str


def examine(home: Home) -> list[Finding]:
    findings = [_machine(home), _space(home), *(_services(home) or _nothing_runs(home))]
    try:
        settings = Settings.load()
    except SettingsWrong as wrong:
        return [*findings, Finding("settings", False, str(wrong).replace("\n", "; "))]
    return [
        *findings,
        Finding("settings", True, "complete"),
        _try("database", lambda: _database(settings.database_url.get_secret_value())),
        _try("valkey", lambda: _valkey(settings.redis_url.get_secret_value())),
        _try("fleet", lambda: _fleet(settings.fleet_file)),
        _gateway(settings.ops_port),
    ]


def _machine(home: Home) -> Finding:
    try:
        check_platform()
        owner = unprivileged()
    except (MachineUnfit, NoGround) as unfit:
        return Finding("machine", False, str(unfit))
    if not owner.can_reach(home.folder / "postgres"):
        return Finding(
            "machine", True, f"PostgreSQL's user can't reach {home.folder}; its data is in a private folder under /var/tmp"
        )
    return Finding("machine", True, "fit for a local run")


def _space(home: Home) -> Finding:
    try:
        check_space(home.folder)
    except MachineUnfit as unfit:
        return Finding("disk", False, str(unfit))
    return Finding("disk", True, f"{shutil.disk_usage(home.folder.parent).free // 2**20} MB free")


def _services(home: Home) -> list[Finding]:
    return [
        Finding(TITLES[line.name], True, f"pid {line.pid}")
        if line.state == "running"
        else Finding(TITLES[line.name], False, f"should run and doesn't; see {line.log}, then `make up`")
        for line in lines(home)
    ]


def _nothing_runs(home: Home) -> list[Finding]:
    """A fault only where the servers looked for are those of the local run."""
    url = home.environment().get("DATABASE_URL")
    is_local = url is not None and url == os.environ.get("DATABASE_URL")
    return [Finding("local run", False, "is down; `make up` starts it")] if is_local else []


def _try(check: str, look: Callable[[], Finding]) -> Finding:
    """Whatever a server answers, the other checks go on."""
    try:
        return look()
    except (psycopg.Error, redis.RedisError, InvalidFleet, OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return Finding(check, False, first)


def _database(url: str) -> Finding:
    with psycopg.connect(conninfo(url), connect_timeout=3) as connection:
        version = connection.info.server_version // 10000
    at, head = migrations.current(url), migrations.head()
    if at != head:
        return Finding(
            "database", False, f"PostgreSQL {version}, its schema is {at or 'empty'} and must be {head}: run `faregate migrate`"
        )
    return Finding("database", True, f"PostgreSQL {version}, schema {at}")


def _valkey(url: str) -> Finding:
    with redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=3, decode_responses=True) as client:
        facts = client.info()
        name, version = facts.get("server_name", "redis"), facts.get("valkey_version", facts["redis_version"])
        policy, append_only = facts.get("maxmemory_policy"), facts.get("aof_enabled")
        seconds, micros = client.time()
    wrong = []
    if policy != "noeviction":
        wrong.append(f"maxmemory-policy is {policy}: set noeviction, or counters vanish under memory pressure")
    if append_only != 1:
        wrong.append("appendonly is off: set it, or a restart forgets every counter")
    if abs(seconds + micros / 1e6 - time.time()) > CLOCK_OFF_MAX_SECONDS:
        wrong.append("its clock and this machine's are more than 5 s apart: run NTP on both")
    return Finding(
        "valkey",
        not wrong,
        "; ".join(wrong) or f"{name} {version}, append-only, no eviction",
    )


def _fleet(path: Path | None) -> Finding:
    if path is None:
        return Finding("fleet", False, "FAREGATE_FLEET_FILE is not set: no engine, no answer")
    fleet = Fleet.load(path)
    count = len(fleet.replicas)
    return Finding("fleet", True, f"{count} {'replica' if count == 1 else 'replicas'} for {', '.join(sorted(fleet.pools()))}")


def _gateway(ops_port: int) -> Finding:
    try:
        reply = get(ops_port, "/readyz")
    except (OSError, http.client.HTTPException, ValueError):
        return Finding("readiness", False, f"no gateway answers on ops port {ops_port}: `make up`, or `faregate serve`")
    if reply.status == 200:
        return Finding("readiness", True, f"the gateway on ops port {ops_port} takes calls")
    return Finding("readiness", False, f"the gateway is not ready: {'; '.join(map(str, reply.body.get('reasons', ())))}")
