"""`/v1/messages` and `/v1/messages/count_tokens`: what is required of their bodies."""

from typing import Any

from gateway.api.endpoint import Asked, Endpoint
from gateway.api.message_content import check_messages, images, media_bytes, wrong
from gateway.api.message_edits import edit, spoken
from gateway.api.message_events import MESSAGE_EVENTS, TOKEN_COUNTS
from gateway.errors import Refusal


def _message(body: dict[str, Any]) -> Asked:
    if body.get("max_tokens") is None:
        raise wrong("max_tokens", "Field required")
    return _input(body, prompts=1)


def _counted(body: dict[str, Any]) -> Asked:
    """Nothing is generated: it costs no fare, and is kept in bounds by the plan's rate and concurrency alone."""
    return _input(body, prompts=0)


def _input(body: dict[str, Any], *, prompts: int) -> Asked:
    check_messages(body)
    _check_tools(body.get("tools"))
    for field in ("thinking", "tool_choice"):
        if body.get(field) is not None and not isinstance(body[field], dict):
            raise wrong(field, "must be an object")
    count, addressed = images(body)
    return Asked(prompts=prompts, images=count, addressed=addressed)


def _check_tools(tools: object) -> None:
    """Tools that Anthropic runs on its servers, or has taught its models, would be left out without a word, or be made up."""
    if tools is None:
        return
    if not isinstance(tools, list):
        raise wrong("tools", "must be a list")
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise wrong(f"tools.{index}", "must be an object")
        if not isinstance(tool.get("input_schema"), dict):
            raise _no_schema(index, tool.get("type"))


def _no_schema(index: int, kind: object) -> Refusal:
    if kind is None or kind == "custom":
        return wrong(f"tools.{index}.input_schema", "Field required")
    return wrong(
        f"tools.{index}",
        f"{str(kind)[:80]!r} is a tool of Anthropic's own servers or models, which are not here; send tools of yours, with a "
        "name and an input_schema.",
    )


MESSAGES = Endpoint(
    path="/v1/messages",
    name="messages",
    dialect=MESSAGE_EVENTS,
    ask=_message,
    edit=edit,
    input_field="messages",
    kinds=frozenset({"chat"}),
    output_fields=("max_tokens",),
    media_bytes=media_bytes,
    spoken=spoken,
)
COUNT_TOKENS = Endpoint(
    path="/v1/messages/count_tokens",
    name="count_tokens",
    dialect=TOKEN_COUNTS,
    ask=_counted,
    edit=edit,
    input_field="messages",
    kinds=frozenset({"chat"}),
    media_bytes=media_bytes,
    streams=False,
)
