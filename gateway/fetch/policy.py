"""Where we connect to for a client, and where never: public addresses on the web's own ports, and what an operator allows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Self

from gateway.access.addresses import Network
from gateway.fetch.address import PORTS, WebAddress, is_name
from gateway.fetch.public import Address, is_public, unwrapped


@dataclass(frozen=True, slots=True)
class Policy:
    """`hosts` and `networks` are an operator's own: private addresses and any port are fine there."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, allowed: Iterable[str]) -> Self:
        """From names, addresses and networks, as a setting lists them. Raises: ValueError for what is none of them."""
        hosts, nets = set(), []
        for entry in allowed:
            try:
                nets.append(ip_network(entry, strict=False))
            except ValueError:
                if not is_name(entry.lower()):
                    raise ValueError(f"{entry!r} is no host, address or network") from None
                hosts.add(entry.lower().removesuffix("."))
        return cls(frozenset(hosts), tuple(nets))

    def is_listed(self, there: WebAddress) -> bool:
        """Whether an operator has named it, by its name or by the address that it is."""
        return there.host in self.hosts or (there.literal is not None and self._is_allowed(there.literal))

    def may_dial(self, there: WebAddress, found: Sequence[Address]) -> bool:
        """Every address that the host has must be fine: one that is not would be tried as soon as another fails."""
        if not found:
            return False
        if there.host in self.hosts:
            return True
        if all(self._is_allowed(address) for address in found):
            return True
        return there.port == PORTS[there.scheme] and all(self._is_allowed(address) or is_public(address) for address in found)

    def _is_allowed(self, address: Address) -> bool:
        plain = unwrapped(address)
        return any(plain in network for network in self.networks)
