"""Which services a local run starts itself: those that no URL of yours replaces."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.local.llamacpp import CONTEXT_TOKENS, MODEL, SLOTS


@dataclass(frozen=True)
class Wanted:
    """What the person asked for. A URL or a fleet file of theirs is used as it is, and nothing is started in its place."""

    port: int
    ops_port: int
    database_url: str | None = None
    redis_url: str | None = None
    fleet_file: Path | None = None
    is_billing_shown: bool = False


def fleet_of(engine_url: str) -> str:
    """The fleet file of the one engine that we start."""
    # The slots share the context; what one request may have is bounded so that all four can work at once.
    return f"""[[replica]]
id = "local"
model = "{MODEL}"
engine = "llamacpp"
url = "{engine_url}"
slots = {SLOTS}
context = {CONTEXT_TOKENS // SLOTS}
"""


def program_environment(
    wanted: Wanted,
    inherited: Mapping[str, str],
    *,
    database_url: str,
    redis_url: str,
    fleet_file: Path,
    pepper_file: Path,
    more: Mapping[str, str],
) -> dict[str, str]:
    """What `serve`, `worker` and the commands are run with: the person's own settings, and ours where they left them to us."""
    own = {name: value for name, value in inherited.items() if name.startswith("FAREGATE_") and name != "FAREGATE_HOME"}
    if "FAREGATE_KEY_PEPPER" not in own:
        own.setdefault("FAREGATE_KEY_PEPPER_FILE", str(pepper_file))
    return {
        **own,
        **more,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "FAREGATE_FLEET_FILE": str(fleet_file),
        "FAREGATE_PORT": str(wanted.port),
        "FAREGATE_OPS_PORT": str(wanted.ops_port),
    }


def pepper_of(environment: Mapping[str, str]) -> str:
    """What keys are hashed with, as the gateway will read it."""
    if path := environment.get("FAREGATE_KEY_PEPPER_FILE"):
        return Path(path).read_text(encoding="utf-8").strip()
    return environment["FAREGATE_KEY_PEPPER"]
