"""Replicas behind a name in DNS: who comes is there at once, who is missing from the answers for a while has gone.

A name that can't be resolved, is unknown or stands for nobody changes nothing: those that were found last stay, and probes tell
which of them are well. So neither a name server's fault nor a deployment that begins anew empties the fleet.
"""

import asyncio
import importlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from backends.entry import KeyMissing
from backends.fleet import Group, Replica
from backends.roster import Roster

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

# Name servers near the engines answer in a millisecond and cache themselves; compose's says 600 s, and changes at once.
EVERY_SECONDS = 5.0
# One answer may be without an address that the next one has.
GONE_AFTER_SECONDS = 12.0
PATIENCE_SECONDS = 3.0
log = logging.getLogger(__name__)


class NameUnknown(Exception):
    """Nobody could say what the name stands for."""


class Found(NamedTuple):
    """One replica behind a name: how it is called among them, and its host:port."""

    name: str
    address: str


Known = Mapping[Found, float]
"""Each replica, and when it was last in an answer, in seconds of any one clock."""


def after_answer(known: Known, answer: Iterable[Found], now: float, gone_after: float = GONE_AFTER_SECONDS) -> Known:
    seen = dict.fromkeys(answer, now)
    if not seen:
        return known
    stay = {one: at for one, at in known.items() if now - at < gone_after}
    return dict(sorted((stay | seen).items()))


async def discover(
    roster: Roster,
    *,
    every_seconds: float = EVERY_SECONDS,
    gone_after: float = GONE_AFTER_SECONDS,
) -> None:
    """Runs until it is cancelled; returns at once where the fleet file names nothing to be found."""
    fleet = roster.fleet
    if not fleet.groups:
        return
    # A third of a second of imports, which only those pay who look for names; and not in the loop.
    await asyncio.to_thread(importlib.import_module, "dns.asyncresolver")
    resolver = _resolver(fleet.nameserver)

    async def follow(group: Group) -> None:
        known: Known = {}
        while True:
            try:
                answer = await look_up(resolver, group.source)
            except NameUnknown as error:
                log.warning("%s: %s; those that were found last stay", group.source, error)
            else:
                known = after_answer(known, answer, asyncio.get_running_loop().time(), gone_after)
                roster.found(group.entry.id, _replicas(group, known))
            await asyncio.sleep(every_seconds)

    async with asyncio.TaskGroup() as following:
        for group in fleet.groups:
            following.create_task(follow(group))


async def look_up(resolver: "Resolver", source: str) -> list[Found]:
    """`source` is dns+a://name:port or dns+srv://name. Raises: NameUnknown."""
    import dns.exception

    try:
        return await _look_up(resolver, source)
    except (dns.exception.DNSException, OSError) as error:
        raise NameUnknown(str(error) or type(error).__name__) from error


async def _look_up(resolver: "Resolver", source: str) -> list[Found]:
    parts = urlsplit(source)
    name = parts.hostname or ""
    if parts.scheme == "dns+a":
        return [Found(ip, f"{ip}:{parts.port}") for ip in await _addresses(resolver, name)]
    found = []
    for service in await resolver.resolve(name, "SRV"):
        target = service.target.to_text(omit_final_dot=True)
        called = f"{target.partition('.')[0]}-{service.port}"
        found += [Found(called, f"{ip}:{service.port}") for ip in await _addresses(resolver, target)]
    return found


async def _addresses(resolver: "Resolver", name: str) -> Sequence[str]:
    return [each.address for each in await resolver.resolve(name, "A")]


def _resolver(nameserver: str) -> "Resolver":
    from dns.asyncresolver import Resolver

    resolver = Resolver(configure=not nameserver)
    resolver.lifetime = PATIENCE_SECONDS
    if nameserver:
        where = urlsplit(f"//{nameserver}")
        resolver.nameservers, resolver.port = [where.hostname or ""], where.port or 53
    return resolver


def _replicas(group: Group, known: Known) -> Iterable[Replica]:
    for name, address in known:
        try:
            yield group.replica(name, address)
        except (KeyMissing, ValueError) as error:
            log.warning("%s at %s is left out: %s", group.entry.id, address, error)
