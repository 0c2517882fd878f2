"""Form-encoded bodies and queries as Stripe reads them: `items[0][price]=p` is `{"items": [{"price": "p"}]}`."""

import re
from typing import Any
from urllib.parse import parse_qsl

_PART = re.compile(r"\[([^\]]*)\]")


def decode(text: str) -> dict[str, Any]:
    """Every leaf is a string; what is numbered is a list."""
    found: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        head = name.partition("[")[0]
        place = found
        path = [head, *_PART.findall(name)]
        for part in path[:-1]:
            place = place.setdefault(part or str(len(place)), {})
        place[path[-1] or str(len(place))] = value
    return {name: _listed(value) for name, value in found.items()}


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _listed(part) for name, part in value.items()}
    return list(inner.values()) if all(name.isdecimal() for name in inner) else inner
