"""The reference as one page: no script, nothing from another host, readable on a phone and in the dark."""

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gateway.reference import headers
from gateway.reference.failures import FAILURES
from gateway.reference.view import nested, operations

_CODE = re.compile(r"`([^`]+)`")


def page(document: dict[str, Any]) -> str:
    """The HTML."""
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            about=document["info"]["description"].split("\n\n"),
            style=Markup(_style()),  # noqa: S704 - ours, as it stands beside this file
            calls=operations(document, "calls"),
            pages=operations(document, "pages"),
            shapes=nested(document),
            names=document["components"]["schemas"].keys(),
            failures=FAILURES,
            asked=headers.ASKED,
            told=headers.TOLD,
            told_anthropic=headers.TOLD_ANTHROPIC,
        )
    )


def policy() -> str:
    """What the page may do: show itself, in its own style."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _environment() -> Environment:
    environment = Environment(loader=FunctionLoader(_beside), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.lstrip_blocks = True
    environment.filters |= {"words": _words, "json": _json}
    return environment


def _words(text: str) -> Markup:
    """Text with `code` in it."""
    return Markup(_CODE.sub(r"<code>\1</code>", html.escape(text)))  # noqa: S704 - escaped before the tags are put in


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


@cache
def _style() -> str:
    return _beside("page.css")


def _beside(name: str) -> str:
    return files("gateway.reference").joinpath(name).read_text(encoding="utf-8")
