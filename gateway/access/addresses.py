"""Where a call comes from: the peer, or what a trusted proxy says of it."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network


def networks(written: Sequence[str]) -> tuple[Network, ...]:
    """Raises: ValueError, naming what is no address or network."""
    return tuple(ip_network(part, strict=False) for part in written)


def client_address(peer: str, forwarded_for: bytes | None, trusted: Sequence[Network]) -> str:
    """The nearest hop that is not a trusted proxy. Entries left of it are the client's own words, and are not believed."""
    if not trusted or forwarded_for is None:
        return peer
    hops = [hop.strip() for hop in forwarded_for.decode("latin-1").split(",")]
    address = peer
    while hops and _is_within(address, trusted):
        address = hops.pop()
    return address if _is_address(address) else peer


def _is_within(address: str, trusted: Sequence[Network]) -> bool:
    if not _is_address(address):
        return False
    parsed: IPv4Address | IPv6Address = ip_address(address)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:  # how IPv4 peers look on a socket that takes both
        parsed = parsed.ipv4_mapped
    return any(parsed in network for network in trusted)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
