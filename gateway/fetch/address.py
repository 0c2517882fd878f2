"""A web address as a client writes it, taken apart strictly: what is odd in it is refused, not guessed; pure."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

from gateway.fetch.public import Address

# Signed addresses of object stores come near 2,000.
LENGTH_MAX = 8192
PORTS = {"http": 80, "https": 443}
# The host is taken up to its end alone: no user, no backslash, no blank, nothing that another parser may read otherwise.
_PARTS = re.compile(r"(https?)://(\[[^\]]*\]|[^\[\]/?#:@\\]*)(?::([0-9]{1,5}))?(/[^#]*|\?[^#]*)?(?:#.*)?", re.IGNORECASE)
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*\.?")
# A last label of this kind makes a host a number to many a resolver: 2130706433, 0x7f.1, 127.1, 0177.0.0.1.
_NUMERIC_END = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
_ODD = re.compile(r"[\x00-\x20\x7f\\]")


class AddressWrong(Exception):
    """It is no web address that is fetched from; the words say why."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """`literal` is set where the host is an IP address in its one proper spelling."""

    scheme: str
    host: str
    port: int
    target: str
    literal: Address | None

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if isinstance(self.literal, IPv6Address) else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def leads_to(self, location: str) -> "WebAddress":
        """A redirect's. Raises: AddressWrong, also for one that leaves TLS."""
        here = f"{self.scheme}://{self.authority}{self.target}"
        try:
            there = web_address(urljoin(here, location))
        except ValueError:
            raise AddressWrong("it leads to something that is no web address") from None
        if self.is_tls and not there.is_tls:
            raise AddressWrong("it leads from https to http")
        return there


def web_address(url: str) -> WebAddress:
    """Raises: AddressWrong."""
    if len(url) > LENGTH_MAX:
        raise AddressWrong(f"it is longer than {LENGTH_MAX} characters")
    found = None if _ODD.search(url) else _PARTS.fullmatch(url)
    if found is None:
        raise AddressWrong("it must be an http or https address without a user name, blanks or backslashes")
    scheme, port = found[1].lower(), int(found[3] or PORTS[found[1].lower()])
    if not 0 < port < 65536:
        raise AddressWrong("its port is no port")
    host, literal = _host(found[2].lower())
    target = found[4] or "/"
    # What is not ASCII is sent as its UTF-8, escaped, as browsers do; what is escaped already stays.
    target = quote(target if target.startswith("/") else f"/{target}", safe="/?[]@!$&'()*+,;=:%", errors="replace")
    return WebAddress(scheme, host, port, target, literal)


def is_name(host: str) -> bool:
    """Whether it is a host's name, and nothing that could be read as a number."""
    return bool(_NAME.fullmatch(host)) and not _NUMERIC_END.fullmatch(host)


def _host(written: str) -> tuple[str, Address | None]:
    if written.startswith("["):
        try:
            address = IPv6Address(written[1:-1])
        except ValueError:
            raise AddressWrong("its host is no IPv6 address") from None
        if address.scope_id is not None:
            raise AddressWrong("its host names an interface")
        return str(address), address
    if _NUMERIC_END.fullmatch(written):
        try:
            return written, IPv4Address(written)
        except ValueError:
            raise AddressWrong("its host is a number; write an IPv4 address as four decimal numbers") from None
    if not is_name(written):
        raise AddressWrong("its host is no name; write an international one as xn--...")
    return written.removesuffix("."), None
