"""`/v1/chat/completions` and `/v1/completions`: what is required of their bodies, and what engines are told besides."""

from typing import Any

from backends.fleet import Replica
from gateway.api import constraints
from gateway.api.chat_messages import plain
from gateway.api.chunks import CHUNKS
from gateway.api.endpoint import Asked, Endpoint
from gateway.api.images import Addressed, in_field, is_address, note
from gateway.api.response_as_chat import is_misplaced, rewrite
from gateway.api.spoken import spoken_chat, spoken_prompt
from gateway.errors import Refusal

IMAGE_PARTS = ("image_url", "input_image", "image")
ADDRESSED = frozenset({"image_url", "video_url", "audio_url", "image", "file_url"})
# Tensors, which an engine loads into its model as they are: not a client's business.
TENSORS = ("image_embeds", "audio_embeds", "prompt_embeds")
# Parts of a message that are no text; their size is the body limit's business.
MEDIA = frozenset({"image_url", "image", "input_audio", "audio", "video_url", "audio_url", "file"})
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def _messages(body: dict[str, Any]) -> Asked:
    if is_misplaced(body):
        rewrite(body)
    constraints.check(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal(400, "messages must be a list of at least one message.", param="messages", code="invalid_value")
    images, addressed = 0, list[Addressed]()
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise _wrong(index, "", "an object with role and content")
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise _wrong(index, ".role", f"one of {', '.join(sorted(ROLES))}")
        content = message.get("content")
        if isinstance(content, list):
            images += sum([count_image(f"messages[{index}].content[{at}]", part, addressed) for at, part in enumerate(content)])
        elif content is not None and not isinstance(content, str):
            raise _wrong(index, ".content", "a string, a list of parts, or null")
    return Asked(prompts=1, images=images, addressed=addressed)


def count_image(place: str, part: object, addressed: list[Addressed]) -> bool:
    """Whether a part is an image; one that is named by address is noted. No engine gets to see an address: it would connect to
    it; nor a name by which it would find media that anybody sent before: vLLM's `uuid`, SGLang's `content_hash`."""
    if not isinstance(part, dict):
        return False
    part.pop("uuid", None)
    if part.get("type") in TENSORS or not part.keys().isdisjoint(TENSORS):
        raise Refusal(400, f"{place} must not be a tensor; send what it was made of.", param=place, code="invalid_value")
    is_image = part.get("type") in IMAGE_PARTS
    for name in ADDRESSED & part.keys():
        holder, field = (part[name], "url") if isinstance(part[name], dict) else (part, name)
        holder.pop("content_hash", None)
        url = holder.get(field)
        if url is None:
            continue
        where = f"{place}.{name}"
        if name == "image_url" and is_address(url):
            note(addressed, in_field(where, holder, field))
        elif not (isinstance(url, str) and url.startswith("data:")):
            kinds = "a data: URL or an http(s) address" if name == "image_url" else "a data: URL; its address is not fetched here"
            raise Refusal(400, f"{where} must be {kinds}.", param=where, code="invalid_value")
        is_image = is_image or name in IMAGE_PARTS  # engines take it for one without its type too
    return is_image


def _wrong(index: int, field: str, must_be: str) -> Refusal:
    param = f"messages[{index}]{field}"
    return Refusal(400, f"{param} must be {must_be}.", param=param if field else "messages", code="invalid_value")


def _prompt(body: dict[str, Any]) -> Asked:
    """A string, a list of strings, a list of token ids, or a list of such lists (OpenAI's four shapes)."""
    constraints.check(body)
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return Asked(1)
    if isinstance(prompt, list) and prompt:
        if all(type(part) is int for part in prompt):
            return Asked(1)
        if all(isinstance(part, str) for part in prompt) or all(
            isinstance(part, list) and part and all(type(token) is int for token in part) for part in prompt
        ):
            return Asked(len(prompt))
    raise Refusal(
        400,
        "prompt must be a string, a list of strings, a list of token ids, or a list of lists of token ids.",
        param="prompt",
        code="invalid_value",
    )


def _media_bytes(body: dict[str, Any]) -> int:
    """Data in messages' parts that no engine reads as text: data: URLs, and sound in base64."""
    found = 0
    for message in body["messages"]:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            for name, value in part.items() if isinstance(part, dict) else ():
                data = (value.get("url") or value.get("data")) if isinstance(value, dict) else value
                if name in MEDIA and isinstance(data, str):
                    found += len(data)
    return found


def _edit_chat(body: dict[str, Any], replica: Replica, stream: bool) -> None:
    body["messages"] = plain(body["messages"])
    _edit(body, replica, stream)


def _edit(body: dict[str, Any], replica: Replica, stream: bool) -> None:
    """The meter needs the engine's count; its chunk is taken out again unless the client asked too."""
    if stream:
        body["stream_options"] = {"include_usage": True}
    constraints.translate(body, replica.engine.name)


CHAT = Endpoint(
    path="/v1/chat/completions",
    name="chat",
    dialect=CHUNKS,
    ask=_messages,
    edit=_edit_chat,
    input_field="messages",
    kinds=frozenset({"chat"}),
    generation_fields=("n", "best_of"),
    output_fields=("max_tokens", "max_completion_tokens"),
    media_bytes=_media_bytes,
    spoken=spoken_chat,
)
COMPLETIONS = Endpoint(
    path="/v1/completions",
    name="completions",
    dialect=CHUNKS,
    ask=_prompt,
    edit=_edit,
    input_field="prompt",
    kinds=frozenset({"chat", "completion"}),
    generation_fields=("n", "best_of"),
    output_fields=("max_tokens", "max_completion_tokens"),
    output_default=16,  # OpenAI's own
    spoken=spoken_prompt,
)
