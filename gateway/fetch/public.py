"""Which IP addresses belong to the public internet; pure."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

# IANA's special-purpose registries (RFC 6890 and its updates), and one address that clouds serve secrets at. The standard
# library's `is_global` changes between patch releases: 3.11.7 takes 192.0.0.192 and 2002::/16 for public ones.
_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
            "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
            "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
            "168.63.129.16/32",  # Azure's host agent
        ),
    )
)  # fmt: skip
# What IPv6 routes at all, and what in it is no single host: Teredo and other protocols, documentation, 6to4, AS112.
_UNICAST_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")))
# How an IPv6-only network writes IPv4 hosts (RFC 6052).
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Whether it is a host that anybody on the internet could connect to, and none of ours."""
    plain = unwrapped(address)
    if isinstance(plain, IPv4Address):
        return not any(plain in network for network in _NOT_PUBLIC_4)
    return plain in _UNICAST_6 and plain.scope_id is None and not any(plain in network for network in _NOT_PUBLIC_6)


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where the kernel or the network would connect to that."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
