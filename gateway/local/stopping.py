"""Ends the services of a local run in the order in which nothing is lost: our own two first, PostgreSQL last."""

from gateway.local.home import Home, Service
from gateway.local.postgres import Postgres
from gateway.local.screen import Screen
from gateway.local.valkey import Valkey

ORDER = ("gateway", "worker", "llamacpp", "stripe", "valkey", "postgres")
TITLES = {
    "gateway": "Gateway",
    "worker": "Worker",
    "llamacpp": "llama.cpp",
    "stripe": "Stripe's stand-in",
    "valkey": "Valkey",
    "postgres": "PostgreSQL",
}
# Longer than the gateway's own drain, which waits for running answers.
PROGRAM_GRACE_SECONDS = 45.0


def down(home: Home, screen: Screen) -> int:
    """Stop what runs; returns how many services did. Raises: Busy."""
    with home.locked():
        running = [service for service in map(home.find, ORDER) if service is not None]
        for service in running:
            with screen.step(f"{TITLES[service.name]} stops"):
                went_by_itself = end(service)
            if not went_by_itself:
                screen.note(f"it did not end when asked and was killed; see {service.log}")
            home.forget(service.name)
        for service in home.services():
            home.forget(service.name)
        return len(running)


def end(service: Service) -> bool:
    """Returns whether it went by itself."""
    if service.name == "postgres":
        return Postgres.stop(service.process)
    if service.name == "valkey":
        return Valkey.stop(service.process)
    return service.process.end(grace_seconds=PROGRAM_GRACE_SECONDS)
