"""What each gateway tells of the replicas, in Valkey: how far it follows the record, what it sees, and how many calls it runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

FLEET_KEY = "faregate:fleet"
"""A hash with one field a gateway, told anew every second."""
# A gateway that has not told for so long is gone, or so cut off that its leases are over.
SILENT_MS = 5_000


@dataclass(frozen=True, slots=True)
class View:
    """Of one replica, by one gateway: the change that it follows, whether it finds it well, and its own calls that run there."""

    version: int
    is_well: bool
    running: int
    origin: str = "file"
    model: str = ""
    url: str = ""
    slots: int = 0


def told(views: Mapping[str, View], now_ms: int) -> bytes:
    return orjson.dumps({"at": now_ms, "replicas": views})


def heard(fields: Mapping[bytes, bytes], now_ms: int) -> tuple[dict[str, dict[str, View]], list[bytes]]:
    """By gateway, its view of each replica; and the fields of gateways that are gone."""
    views: dict[str, dict[str, View]] = {}
    gone = []
    for gateway, text in fields.items():
        read: dict[str, Any] = orjson.loads(text)
        if now_ms - read["at"] > SILENT_MS:
            gone.append(gateway)
        else:
            views[gateway.decode()] = {name: View(**view) for name, view in read["replicas"].items()}
    return views, gone


def running(views: Mapping[str, Mapping[str, View]], replica_id: str) -> int:
    return sum(view[replica_id].running for view in views.values() if replica_id in view)


def not_following(views: Mapping[str, Mapping[str, View]], replica_id: str, version: int) -> list[str]:
    """Gateways that have not heard of the change yet. Those that do not know the replica give it nothing."""
    return sorted(name for name, view in views.items() if replica_id in view and view[replica_id].version < version)


def of_replica(views: Iterable[Mapping[str, View]], replica_id: str) -> list[View]:
    return [view[replica_id] for view in views if replica_id in view]
