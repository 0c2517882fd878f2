"""docker-compose.yml as Docker Compose would read it: anchors, merges and variables resolved."""

import re
from functools import cache
from typing import Any

import yaml

from tests.tidy.source import ROOT


@cache
def compose() -> dict[str, Any]:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(re.sub(r"(?<!\$)\$\{\w+:-([^}]*)\}", r"\1", text).replace("$$", "$"))
    return document


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = compose()["services"][name]
    return found


PROGRAM = ("gateway", "worker", "migrate")
