"""The fleet file: which replicas exist, what each serves and how much it takes at once."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from backends.entry import Entry, KeyMissing
from backends.replica import Overflow, Replica

__all__ = ["Fleet", "Group", "InvalidFleet", "Overflow", "Replica", "dedicated_pools", "shared_pools"]


class InvalidFleet(Exception):
    """The fleet file says something that cannot be; the message names file, line and field."""


@dataclass(frozen=True, slots=True)
class Group:
    """Replicas that a name in DNS stands for; all are as `entry` says, whose files are found from `folder`."""

    entry: Entry
    folder: Path

    @property
    def source(self) -> str:
        return self.entry.discover or ""

    def replica(self, name: str, address: str) -> Replica:
        """One of them: `address` is host:port. Raises: KeyMissing."""
        return self.entry.replica(self.folder, url=f"http://{address}", name=f"{self.entry.id}-{name}")


@dataclass(frozen=True, slots=True)
class Fleet:
    """All replicas, in the order of the file, and the groups whose replicas are found; less the upstreams that are off.

    `share_prefixes`: one prefix cache for all accounts. `nameserver`: who is asked for names, host:port; "": as the system does.
    """

    replicas: tuple[Replica, ...]
    share_prefixes: bool = False
    groups: tuple[Group, ...] = ()
    nameserver: str = ""

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
        replicas = tuple(
            _replica(path, text, index, each) for index, each in enumerate(read.replica) if each.url is not None and each.is_used
        )
        groups = tuple(Group(each, path.parent) for each in read.replica if each.discover is not None)
        return cls(replicas, read.share_prefixes, groups, read.nameserver)

    def pools(self) -> dict[str, list[Replica]]:
        """Which replicas serve which model for everybody."""
        return shared_pools(self.replicas)

    def dedicated(self) -> dict[tuple[str, str], list[Replica]]:
        """By account and model, which replicas serve that account alone."""
        return dedicated_pools(self.replicas)

    def replica(self, replica_id: str) -> Replica | None:
        return next((replica for replica in self.replicas if replica.id == replica_id), None)


def shared_pools(replicas: Iterable[Replica]) -> dict[str, list[Replica]]:
    pools: dict[str, list[Replica]] = {}
    for replica in replicas:
        if not replica.dedicated_to:
            pools.setdefault(replica.model, []).append(replica)
    return pools


def dedicated_pools(replicas: Iterable[Replica]) -> dict[tuple[str, str], list[Replica]]:
    pools: dict[tuple[str, str], list[Replica]] = {}
    for replica in replicas:
        if replica.dedicated_to:
            pools.setdefault((replica.dedicated_to, replica.model), []).append(replica)
    return pools


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    replica: Annotated[list[Entry], Field(min_length=1)]
    share_prefixes: bool = False
    nameserver: Annotated[str, Field(pattern=r"^([0-9.]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$|^$")] = ""

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


def _replica(path: Path, text: str, index: int, entry: Entry) -> Replica:
    try:
        return entry.replica(path.parent)
    except KeyMissing as error:
        field = str(error).partition(":")[0]
        raise InvalidFleet(f"{path}{_line(text, index, field)}: replica {entry.id}: {error}") from error


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
