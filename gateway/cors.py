"""What browsers ask before they let a page call us, and what each answer tells them: any origin, never with cookies."""

import re

Headers = list[tuple[bytes, bytes]]

# No cookie is read here: a page can do no more than what its user's key allows, so every origin may ask. Sent on every answer to
# a request that names its origin.
EVERY_ORIGIN: Headers = [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", b"*")]
METHODS = b"GET, POST, HEAD, OPTIONS"
# The longest that any browser keeps it is a day.
MAX_AGE_SECONDS = 86_400
# Field names, separated by commas (RFC 9110, 5.6.2); nothing else is said back.
_NAMES = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")


def preflight(asked: Headers) -> Headers:
    """The headers of a 204 to an OPTIONS request with these headers. SDKs send a dozen names of their own, so what is asked for
    is allowed (`*` would leave out Authorization)."""
    wanted = dict(asked).get(b"access-control-request-headers", b"")
    found = [(b"allow", METHODS), (b"access-control-allow-methods", METHODS)]
    if _NAMES.fullmatch(wanted):
        found.append((b"access-control-allow-headers", wanted))
    return [*found, (b"access-control-max-age", b"%d" % MAX_AGE_SECONDS), (b"vary", b"Access-Control-Request-Headers")]
