"""The fleet file: which replicas exist, what each serves and how much it takes at once."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from backends.engines.kind import EngineKind
from backends.engines.kinds import ENGINE_KINDS


class InvalidFleet(Exception):
    """The fleet file says something that cannot be; the message names file, line and field."""


# What a call of an account with replicas of its own does when none of their slots is free (backends/dedicated.py).
Overflow = Literal["never", "queue", "shared"]


@dataclass(frozen=True, slots=True)
class Replica:
    """One engine server. `slots` is how many calls it is given at once, of which `line` may wait inside it for the others.

    `context` is the tokens one request may have.

    `has_priority`: it was started so that it heeds a request's priority. `dedicated_to`: the one account, by its name, that it
    works for; "" is everybody. `precision` is what its weights are served in ("bf16", "fp8", "q8_0"), if the operator says.
    `cost_cents_per_hour` is what all of its GPUs cost (`faregate plans check`); None: nobody said.
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
        cost_cents_per_hour: int | None = None, line: int = 0,
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
            precision=precision, cost_cents_per_hour=cost_cents_per_hour, api_key=api_key, ca_file=ca_file, host=host, port=port,
            is_tls=is_tls, base_path=base_path, authority=authority,
            origin=f"{parts.scheme}://{authority}",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fleet:
    """All replicas, in the order of the file. `share_prefixes`: one prefix cache for all accounts."""

    replicas: tuple[Replica, ...]
    share_prefixes: bool = False

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Raises InvalidFleet."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            document = tomllib.loads(text)
        except OSError as error:
            raise InvalidFleet(f"{path} can't be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidFleet(f"{path} is no TOML: {error}") from error
        try:
            read = _Document.model_validate(document)
        except ValidationError as error:
            raise InvalidFleet(_first_mistake(path, text, document, error)) from error
        replicas = tuple(_replica(path, text, index, entry) for index, entry in enumerate(read.replica))
        return cls(replicas, read.share_prefixes)

    def pools(self) -> dict[str, list[Replica]]:
        """Which replicas serve which model for everybody."""
        pools: dict[str, list[Replica]] = {}
        for replica in self.replicas:
            if not replica.dedicated_to:
                pools.setdefault(replica.model, []).append(replica)
        return pools

    def dedicated(self) -> dict[tuple[str, str], list[Replica]]:
        """By account and model, which replicas serve that account alone."""
        pools: dict[tuple[str, str], list[Replica]] = {}
        for replica in self.replicas:
            if replica.dedicated_to:
                pools.setdefault((replica.dedicated_to, replica.model), []).append(replica)
        return pools

    def replica(self, replica_id: str) -> Replica | None:
        return next((replica for replica in self.replicas if replica.id == replica_id), None)


_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$")]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    model: _Name
    engine: str
    url: str
    slots: Annotated[int, Field(ge=1, le=4096)]
    line: Annotated[int, Field(ge=0)] = 0
    context: Annotated[int, Field(ge=1)] | None = None
    engine_model: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    api_key_file: str | None = None
    ca_file: str | None = None
    priority: bool = False
    # A part of a key's name in Valkey, where braces mean something.
    dedicated_to: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^{}\x00-\x1f\x7f]+$")] | None = None
    overflow: Overflow | None = None
    precision: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,31}$")] | None = None
    cost_cents_per_hour: Annotated[int, Field(ge=0, le=10_000_000)] | None = None

    @field_validator("engine")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in ENGINE_KINDS:
            raise ValueError(f"{name!r} is none of {', '.join(ENGINE_KINDS)}")
        return name

    @field_validator("priority")
    @classmethod
    def _is_heeded(cls, is_on: bool, info: ValidationInfo) -> bool:
        kind = ENGINE_KINDS.get(info.data.get("engine", ""))
        if is_on and kind is not None and kind.priority is None:
            raise ValueError(f"{kind.name} knows no priorities; leave it out")
        return is_on

    @field_validator("line")
    @classmethod
    def _is_short(cls, line: int, info: ValidationInfo) -> int:
        if line >= info.data.get("slots", line + 1):
            raise ValueError("it counts in slots, and some must be left that run")
        return line

    @field_validator("overflow")
    @classmethod
    def _is_of_a_dedicated_one(cls, overflow: Overflow | None, info: ValidationInfo) -> Overflow | None:
        if overflow is not None and info.data.get("dedicated_to") is None:
            raise ValueError("only a replica with dedicated_to has one")
        return overflow

    @field_validator("url")
    @classmethod
    def _is_root(cls, url: str) -> str:
        Replica.at(url, name="", model="", engine=next(iter(ENGINE_KINDS.values())), slots=1)
        return url


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    replica: Annotated[list[_Entry], Field(min_length=1)]
    share_prefixes: bool = False

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        seen: set[str] = set()
        for entry in self.replica:
            if entry.id in seen:
                raise ValueError(f"two replicas have the id {entry.id!r}")
            seen.add(entry.id)
        return self

    @model_validator(mode="after")
    def _overflows_agree(self) -> Self:
        stated: dict[tuple[str, str], str] = {}
        for entry in self.replica:
            if entry.dedicated_to is not None:
                overflow = stated.setdefault((entry.dedicated_to, entry.model), entry.overflow or "queue")
                if overflow != (entry.overflow or "queue"):
                    raise ValueError(f"the replicas of {entry.model} dedicated to {entry.dedicated_to!r} disagree on overflow")
        return self


def _replica(path: Path, text: str, index: int, entry: _Entry) -> Replica:
    api_key = None
    if entry.api_key_file is not None:
        where = f"{path}{_line(text, index, 'api_key_file')}: replica {entry.id}: api_key_file"
        try:
            api_key = (path.parent / entry.api_key_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFleet(f"{where}: {entry.api_key_file} can't be read") from error
        if not api_key or not api_key.isprintable() or " " in api_key:
            raise InvalidFleet(f"{where}: {entry.api_key_file} holds no key")
    return Replica.at(
        entry.url, name=entry.id, model=entry.model, engine=ENGINE_KINDS[entry.engine], slots=entry.slots, line=entry.line,
        context=entry.context, engine_model=entry.engine_model, api_key=api_key, has_priority=entry.priority,
        dedicated_to=entry.dedicated_to or "", overflow=entry.overflow or "queue", precision=entry.precision,
        cost_cents_per_hour=entry.cost_cents_per_hour,
        ca_file=str(path.parent / entry.ca_file) if entry.ca_file else None,
    )  # fmt: skip


def _first_mistake(path: Path, text: str, document: Mapping[str, Any], error: ValidationError) -> str:
    mistake = error.errors(include_url=False)[0]
    location, message = mistake["loc"], mistake["msg"].removeprefix("Value error, ")
    if len(location) < 2 or not isinstance(location[1], int):
        return f"{path}: {'.'.join(map(str, location)) or 'replica'}: {message}"
    index = location[1]
    name = ".".join(map(str, location[2:]))
    entry = document["replica"][index]
    known_as = entry.get("id", index + 1) if isinstance(entry, dict) else index + 1
    return f"{path}{_line(text, index, name)}: replica {known_as}: {name}: {message}"


def _line(text: str, index: int, name: str) -> str:
    """Where the field is written, or the replica it is missing from; nothing when the file is written in another way."""
    heads = [match.start() for match in re.finditer(r"^[ \t]*\[\[[ \t]*replica[ \t]*\]\]", text, re.MULTILINE)]
    if index >= len(heads):
        return ""
    end = heads[index + 1] if index + 1 < len(heads) else len(text)
    written = re.compile(rf"^[ \t]*{re.escape(name)}[ \t]*=", re.MULTILINE).search(text, heads[index], end)
    return f", line {text.count(chr(10), 0, written.start() if written else heads[index]) + 1}"
