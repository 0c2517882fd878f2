"""The content of Anthropic's messages: blocks within blocks, checked as far as we have to know them, and the images in them."""

from collections.abc import Iterator
from typing import Any

from gateway.api.images import Addressed, in_source, is_address, note
from gateway.errors import Refusal

ROLES = ("user", "assistant", "system")
Block = dict[str, Any]
Content = str | list[Block]


def wrong(place: str, words: str) -> Refusal:
    """In the words of Anthropic's own API: `messages.0.role: ...`."""
    return Refusal(400, f"{place}: {words}", param=place, code="invalid_value")


def check_messages(body: dict[str, Any]) -> None:
    """Raises: Refusal (400), naming the place."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise wrong("messages", "Field required" if messages is None else "must be a list of at least one message")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise wrong(f"messages.{index}", "must be an object with role and content")
        if message.get("role") not in ROLES:
            raise wrong(f"messages.{index}.role", f"must be one of {', '.join(ROLES)}")
        _check_content(f"messages.{index}.content", message.get("content"))
    system = body.get("system")
    if system is not None:
        _check_content("system", system)


def _check_content(place: str, content: object) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise wrong(place, "must be a string or a list of blocks")
    for index, block in enumerate(content):
        here = f"{place}.{index}"
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise wrong(here, "must be a block, an object with a type")
        if block["type"] == "text" and not isinstance(block.get("text"), str):
            raise wrong(f"{here}.text", "must be a string")
        if place == "system" and block["type"] != "text":
            raise wrong(f"{here}.type", "must be text")
        if block["type"] == "document":
            _check_document(here, block)
        elif block["type"] == "tool_result" and block.get("content") is not None:
            _check_content(f"{here}.content", block["content"])


def _check_document(place: str, block: Block) -> None:
    """Text can be written out for an engine; a file can't be read here."""
    source = _source(block)
    if source.get("type") == "content":
        _check_content(f"{place}.source.content", source.get("content"))
    elif source.get("type") != "text" or not isinstance(source.get("data"), str):
        raise wrong(f"{place}.source", "documents are taken as text only, with a source of type text or content")


def _source(block: Block) -> dict[str, Any]:
    source = block.get("source")
    return source if isinstance(source, dict) else {}


def images(body: dict[str, Any]) -> tuple[int, list[Addressed]]:
    """How many, and those that are named by address. Raises: Refusal (400) for a source that is neither data nor an address."""
    count, addressed = 0, list[Addressed]()
    for place, block in _images(body):
        count += 1
        source = _source(block)
        if source.get("type") == "url" and is_address(source.get("url")):
            note(addressed, in_source(f"{place}.source", block))
        elif not _is_data(source):
            raise wrong(
                f"{place}.source", "must be of type base64 with media_type and data, or of type url with an http(s) address"
            )
    return count, addressed


def _is_data(source: dict[str, Any]) -> bool:
    if source.get("type") == "base64":
        return isinstance(source.get("data"), str)
    url = source.get("url")
    return source.get("type") == "url" and isinstance(url, str) and url.startswith("data:")


def media_bytes(body: dict[str, Any]) -> int:
    """Data of images, which no engine reads as text."""
    return sum(len(block["source"].get("data") or block["source"].get("url") or "") for _, block in _images(body))


def _images(body: dict[str, Any]) -> Iterator[tuple[str, Block]]:
    for index, message in enumerate(body["messages"]):
        yield from _images_in(f"messages.{index}.content", message["content"])


def _images_in(place: str, content: object) -> Iterator[tuple[str, Block]]:
    for index, block in enumerate(content) if isinstance(content, list) else ():
        kind, here = block["type"], f"{place}.{index}"
        if kind == "image":
            yield here, block
        elif kind == "tool_result":
            yield from _images_in(f"{here}.content", block.get("content"))
        elif kind == "document":
            yield from _images_in(f"{here}.source.content", block["source"].get("content"))


def text_of(content: Content) -> str:
    """All of its text."""
    if isinstance(content, str):
        return content
    return "\n\n".join(block["text"] for block in content if block["type"] == "text" and block["text"])
