"""`faregate up`: from an empty folder, or what is left of the last run, to a platform that has answered a real call."""

import os
from dataclasses import dataclass
from pathlib import Path

from gateway.local.ground import reachable, unprivileged
from gateway.local.home import Home, write_private
from gateway.local.llamacpp import LlamaCpp
from gateway.local.machine import MachineUnfit, check_platform, check_port, check_space
from gateway.local.newcomers import Newcomers, prepare_database, welcome
from gateway.local.postgres import Postgres
from gateway.local.programs import Gateway, Worker
from gateway.local.proof import Proof, await_ledger, prove
from gateway.local.screen import Screen
from gateway.local.selling import StandIn, check_billing, open_sale
from gateway.local.starting import Startable, Starting
from gateway.local.stopping import TITLES, end
from gateway.local.valkey import Valkey
from gateway.local.wanted import Wanted, fleet_of, pepper_of, program_environment
from gateway.settings import Settings


@dataclass(frozen=True)
class Running:
    """What a person needs to know once it runs."""

    base_url: str
    newcomers: Newcomers
    proof: Proof
    stripe_url: str | None


@dataclass(frozen=True)
class _Servers:
    database_url: str
    redis_url: str
    fleet_file: Path
    stripe: StandIn | None
    is_stripe_new: bool


def up(home: Home, wanted: Wanted, screen: Screen) -> Running:
    """Start what doesn't run yet. Raises: MachineUnfit, NoGround, DidNotStart, Busy; then nothing that it started is left."""
    check_platform()
    check_space(home.folder)
    with home.locked(), Starting(home) as starting:
        check_ports(home, wanted)
        servers = _start_servers(home, wanted, screen, starting)
        environment = _environment(home, wanted, servers)
        with screen.step("The database has its newest schema and its plans"):
            prepare_database(servers.database_url)
        with screen.step("An admin and a demo account"):
            newcomers = welcome(home, servers.database_url, pepper_of(environment))
        if servers.stripe is not None:
            with screen.step("The plans are on sale at Stripe's stand-in"):
                open_sale(servers.database_url, environment, is_new=servers.is_stripe_new)
        _start_programs(home, wanted, environment, screen, starting)
        with screen.step("One real completion through the gateway"):
            proof = prove(wanted.port, newcomers.demo_key, home.folder / "gateway.log")
        if proof.request_id:
            with screen.step("Its fare in the ledger"):
                await_ledger(servers.database_url, proof.request_id, home.folder / "worker.log")
        stripe_url = servers.stripe.url if servers.stripe else None
        return Running(f"http://127.0.0.1:{wanted.port}/v1", newcomers, proof, stripe_url)


def check_ports(home: Home, wanted: Wanted) -> None:
    """Before anything that runs is stopped for them. Raises: MachineUnfit."""
    if wanted.port == wanted.ops_port:
        raise MachineUnfit(f"PORT and OPS_PORT are both {wanted.port}; choose another for one: `make up OPS_PORT=<port>`")
    kept = {} if home.find("gateway") is None else home.environment()
    ours = {kept.get("FAREGATE_PORT"), kept.get("FAREGATE_OPS_PORT")}
    for port, what, option in ((wanted.port, "the gateway", "PORT"), (wanted.ops_port, "health and metrics", "OPS_PORT")):
        if str(port) not in ours:
            check_port(port, what, option)


def _start_servers(home: Home, wanted: Wanted, screen: Screen, starting: Starting) -> _Servers:
    database_url, redis_url, fleet_file = wanted.database_url, wanted.redis_url, wanted.fleet_file
    if database_url is None:
        postgres = Postgres(home.folder / "postgres", _port(home, "postgres"), home.secret("postgres"))
        _ensure(home, screen, starting, "postgres", postgres)
        if not unprivileged().can_reach(postgres.folder):
            screen.note(
                f"its user can't enter {home.folder}: its data is in {reachable(postgres.folder, unprivileged())}, private to it"
            )
        database_url = postgres.url()
    if redis_url is None:
        valkey = Valkey(home.folder / "valkey", _port(home, "valkey"), home.secret("valkey"))
        _ensure(home, screen, starting, "valkey", valkey)
        redis_url = valkey.url()
    if fleet_file is None:
        engine = LlamaCpp(home.folder / "llamacpp", _port(home, "llamacpp"))
        _ensure(home, screen, starting, "llamacpp", engine)
        fleet_file = home.folder / "fleet.toml"
        write_private(fleet_file, fleet_of(engine.url))
    is_stripe_new = home.find("stripe") is None
    return _Servers(database_url, redis_url, fleet_file.resolve(), _stand_in(home, wanted, screen, starting), is_stripe_new)


def _stand_in(home: Home, wanted: Wanted, screen: Screen, starting: Starting) -> StandIn | None:
    """Where it is not asked for, one of an earlier `up` goes."""
    running = home.find("stripe")
    if not wanted.is_billing_shown:
        if running is not None:
            with screen.step(f"{TITLES['stripe']} stops, as nobody asked for it"):
                end(running)
            home.forget("stripe")
        return None
    check_billing(os.environ)
    stripe = StandIn(home.folder, _port(home, "stripe"), wanted.port, home.secret("stripe_webhook"))
    write_private(home.secret_file("stripe_signing"), stripe.signing_secret)
    _ensure(home, screen, starting, "stripe", stripe)
    return stripe


def _start_programs(home: Home, wanted: Wanted, environment: dict[str, str], screen: Screen, starting: Starting) -> None:
    """Programs of an earlier `up` go on, unless they run with other settings than those asked for now. Raises: SettingsWrong."""
    os.environ.update(environment)
    Settings.load()  # what the programs will read, looked at before one that runs well is stopped for it
    if home.environment() != environment:
        for name in ("gateway", "worker"):
            if service := home.find(name):
                with screen.step(f"{TITLES[name]} stops, to start with other settings"):
                    end(service)
                home.forget(name)
        home.keep_environment(environment)
    _ensure(home, screen, starting, "worker", Worker(home.folder, os.environ))
    _ensure(home, screen, starting, "gateway", Gateway(home.folder, os.environ, wanted.port, wanted.ops_port))


def _ensure(home: Home, screen: Screen, starting: Starting, name: str, server: Startable) -> None:
    running = home.find(name)
    if running is not None:
        with screen.step(f"{TITLES[name]} runs already"):
            server.wait(running.process)
        return
    with screen.step(f"{TITLES[name]} starts"):
        starting.start(name, server)


def _port(home: Home, name: str) -> int:
    running = home.find(name)
    return running.port if running is not None else home.port(name)


def _environment(home: Home, wanted: Wanted, servers: _Servers) -> dict[str, str]:
    home.secret("pepper")
    return program_environment(
        wanted,
        os.environ,
        database_url=servers.database_url,
        redis_url=servers.redis_url,
        fleet_file=servers.fleet_file,
        pepper_file=home.secret_file("pepper").resolve(),
        more=servers.stripe.settings(home.secret_file("stripe_signing").resolve()) if servers.stripe else {},
    )
