"""The reference in Markdown, for assistants: a short guide that leads to the whole."""

import json
from typing import Any

from gateway.reference import headers
from gateway.reference.failures import FAILURES
from gateway.reference.view import Operation, Shape, nested, operations


def guide(document: dict[str, Any]) -> str:
    """`/llms.txt`, in the form of llmstxt.org: title, summary, what to know, links."""
    calls = "\n".join(
        f"- `{found.method} {found.path}`: {found.summary}. {found.said}" for found in operations(document, "calls")
    )
    pages = "\n".join(f"- [{found.path}]({found.path}): {found.summary}. {found.said}" for found in operations(document, "pages"))
    summary, *about = document["info"]["description"].split("\n\n")
    told = "\n\n".join(" ".join(paragraph.split()) for paragraph in about)
    return f"""# Faregate API

> {" ".join(summary.split())}

{told}

Base URL: this server's address with `/v1`. Key: `Authorization: Bearer fare_live_...`, or `x-api-key`. Errors: branch on
`error.code`; 400 is final, 429 and 503 say when to come back in `Retry-After`, except `insufficient_quota`, which ends at
midnight UTC.

## Calls

{calls}

## Pages

{pages}
"""


def whole(document: dict[str, Any]) -> str:
    """`/llms-full.txt`."""
    parts = [guide(document).rstrip(), "\n# Reference\n"]
    for tag in ("calls", "pages"):
        parts += [_operation(found) for found in operations(document, tag)]
    told = headers.ASKED | headers.TOLD | headers.TOLD_ANTHROPIC
    parts += ["## Headers\n", *(f"- `{name}`: {said}" for name, said in told.items())]
    parts += ["\n## Errors\n", *(f"- {failure.status} `{failure.code}`: {failure.said}" for failure in FAILURES if failure.code)]
    parts += ["\n## Shapes\n", *(f"### {shape.name}\n\n{_shape(shape)}" for shape in nested(document))]
    return "\n".join(parts) + "\n"


def _operation(found: Operation) -> str:
    parts = [f"## {found.method} {found.path}\n\n{found.said}\n"]
    if found.request is not None:
        parts.append(f"### Request\n\n{_shape(found.request)}")
    if found.answer is not None and found.answer.fields:
        parts.append(f"### Answer\n\n{_shape(found.answer)}")
    if found.event is not None:
        parts.append(f"As a stream: server-sent events, the data of each a {found.event}.\n")
    return "\n".join(parts)


def _shape(shape: Shape) -> str:
    rows = [f"{shape.said}\n"]
    for field in shape.fields:
        needed = ", required" if field.is_needed else ""
        rows.append(f"- `{field.name}` ({field.kind}{needed}): {field.said}".rstrip(": "))
    if shape.example is not None:
        rows.append(f"\n```json\n{json.dumps(shape.example, indent=2, ensure_ascii=False)}\n```")
    return "\n".join(rows) + "\n"
