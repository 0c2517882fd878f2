"""One engine server, and how much it takes at once."""

import re
from dataclasses import dataclass, field
from typing import Literal, Self
from urllib.parse import urlsplit

from backends.engines.kind import EngineKind
from backends.prices import TokenPrice

# What a call of an account with replicas of its own does when none of their slots is free (backends/dedicated.py).
Overflow = Literal["never", "queue", "shared"]


@dataclass(frozen=True, slots=True)
class Replica:
    """One engine server. `slots` is how many calls it is given at once, of which `line` may wait inside it for the others.

    `context` is the tokens one request may have.

    `has_priority`: it was started so that it heeds a request's priority. `dedicated_to`: the one account, by its name, that it
    works for; "" is everybody. `precision` is what its weights are served in ("bf16", "fp8", "q8_0"), if the operator says.
    `cost_cents_per_hour` is what all of its GPUs cost (`faregate plans check`); None: nobody said. `price`: of an upstream API.
    """

    id: str
    model: str
    engine: EngineKind
    url: str
    slots: int
    line: int = 0
    context: int | None = None
    engine_model: str = ""
    has_priority: bool = False
    dedicated_to: str = ""
    overflow: Overflow = "queue"
    precision: str | None = None
    cost_cents_per_hour: int | None = None
    price: TokenPrice | None = None
    api_key: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    # Parsed from `url`.
    host: str = ""
    port: int = 0
    is_tls: bool = False
    base_path: str = ""
    authority: str = ""
    origin: str = ""

    @classmethod
    def at(
        cls, url: str, *, name: str, model: str, engine: EngineKind, slots: int, context: int | None = None,
        engine_model: str | None = None, api_key: str | None = None, ca_file: str | None = None,
        has_priority: bool = False, dedicated_to: str = "", overflow: Overflow = "queue", precision: str | None = None,
        cost_cents_per_hour: int | None = None, line: int = 0, price: TokenPrice | None = None,
    ) -> Self:  # fmt: skip
        """Raises ValueError when `url` is not the root of an engine."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http:// or https:// address")
        if parts.query or parts.fragment or parts.username is not None or not re.fullmatch(r"[!-~]+", url):
            raise ValueError(f"{url!r} has more than a host, a port and a path")
        base_path = parts.path.rstrip("/")
        if base_path.endswith("/v1"):
            raise ValueError(f"{url!r} must be the engine's root: leave out /v1")
        is_tls = parts.scheme == "https"
        host, port = parts.hostname, parts.port or (443 if is_tls else 80)
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return cls(
            id=name, model=model, engine=engine, url=url, slots=slots, line=line, context=context,
            engine_model=engine_model or model, has_priority=has_priority, dedicated_to=dedicated_to, overflow=overflow,
            precision=precision, cost_cents_per_hour=cost_cents_per_hour, price=price, api_key=api_key, ca_file=ca_file,
            host=host, port=port, is_tls=is_tls, base_path=base_path, authority=authority,
            origin=f"{parts.scheme}://{authority}",
        )  # fmt: skip
