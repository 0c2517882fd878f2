"""`/v1/responses`: what is required of its body, and what engines are told besides. Stateless: nothing is stored."""

from collections.abc import Iterator
from typing import Any

from backends.fleet import Replica
from gateway.api import response_tools
from gateway.api.chat import MEDIA, ROLES, count_image
from gateway.api.endpoint import Asked, Endpoint
from gateway.api.images import Addressed
from gateway.api.response_events import EVENTS
from gateway.api.response_items import STORED, for_engine, refuse_stored
from gateway.api.spoken import spoken_response
from gateway.errors import Refusal, wrong

Body = dict[str, Any]

# Not of this API, yet heeded by engines that read it as a chat: they would pass the limits by, or bring in a history unseen.
_NOT_OF_THIS_API = (
    *STORED, "n", "best_of", "max_tokens", "max_completion_tokens", "messages", "stream_options", "previous_input_messages",
    "response_format", "json_schema", "grammar",
)  # fmt: skip
# The one addition to an answer that an engine can make. The others name hosted tools, or secrets of a store.
_INCLUDABLE = frozenset({"message.output_text.logprobs"})


def not_stored(path: str) -> Refusal:
    """For what is asked of a response of the past."""
    return Refusal(
        404,
        f"{path[:200]} is not here: answers are not stored. POST /v1/responses gives the whole answer at once.",
        code="not_found",
    )


def _ask(body: Body) -> Asked:
    refuse_stored(body)
    response_tools.check(body)
    included = body.get("include")
    if included is not None and not (isinstance(included, list) and all(isinstance(name, str) for name in included)):
        raise wrong("include", "a list of strings")
    given = body.get("input")
    if isinstance(given, str) and given:
        return Asked(prompts=1)
    if not isinstance(given, list) or not given:
        raise Refusal(400, "input must be a string or a list of at least one item.", param="input", code="invalid_value")
    addressed = list[Addressed]()
    images = sum([_images(index, item, addressed) for index, item in enumerate(given)])
    return Asked(prompts=1, images=images, addressed=addressed)


def _images(index: int, item: object, addressed: list[Addressed]) -> int:
    if not isinstance(item, dict):
        raise wrong(f"input[{index}]", "an object: a message, or an item of an earlier answer")
    if item.get("type") == "item_reference":
        raise wrong(f"input[{index}]", "the item itself: nothing is stored here that it could refer to", code="not_stored")
    role = item.get("role")
    if item.get("type", "message") == "message" and (not isinstance(role, str) or role not in ROLES):
        raise wrong(f"input[{index}].role", f"one of {', '.join(sorted(ROLES))}")
    images = 0
    for place, part in _parts(item):
        if part.get("file_id"):
            raise wrong(f"input[{index}].{place}", "sent as data; no files are stored here", code="not_stored")
        images += count_image(f"input[{index}].{place}", part, addressed)
    return images


def _parts(item: Body) -> Iterator[tuple[str, Body]]:
    """The parts of a message, or of a tool's output, with their places."""
    for field in ("content", "output"):
        held = item.get(field)
        if isinstance(held, dict):
            yield field, held
        elif isinstance(held, list):
            for at, part in enumerate(held):
                if isinstance(part, dict):
                    yield f"{field}[{at}]", part


def _media_bytes(body: Body) -> int:
    """Data in parts that no engine reads as text."""
    found = 0
    for item in body["input"] if isinstance(body["input"], list) else ():
        for _, part in _parts(item):
            for name, value in part.items():
                data = (value.get("url") or value.get("data")) if isinstance(value, dict) else value
                if (name in MEDIA or name == "file_data") and isinstance(data, str):
                    found += len(data)
    return found


def _edit(body: Body, replica: Replica, stream: bool) -> None:
    for field in _NOT_OF_THIS_API:
        body.pop(field, None)
    body["store"] = False
    included = [name for name in body.pop("include", None) or () if name in _INCLUDABLE]
    if included:
        body["include"] = included
    for_engine(body, replica.engine)
    response_tools.for_engine(body, replica.engine)


RESPONSES = Endpoint(
    path="/v1/responses",
    name="responses",
    dialect=EVENTS,
    ask=_ask,
    edit=_edit,
    input_field="input",
    kinds=frozenset({"chat"}),
    output_fields=("max_output_tokens",),
    media_bytes=_media_bytes,
    spoken=spoken_response,
)
