"""What is changed in the body of a message before an engine gets it; nothing of the client's own body is touched."""

import re
from typing import Any

from backends.fleet import Replica
from gateway.api.message_content import Block, Content, text_of
from gateway.api.spoken import Pieces, spoken_message

# Claude Code puts a line that changes with every request before its system prompt: no two prompts would begin alike, and no
# engine's prefix cache would ever hit. What is taken out is the name, and pairs that end with a semicolon or the line.
_BILLING_LINE = re.compile(r"x-anthropic-billing-header:(?: *[\w-]+=[^;\n]*(?:;|(?=\n)|\Z))* *\n?")
# Kinds that take system messages where they stand, as Claude Code sends them; the others refuse them, or their templates may.
TAKES_SYSTEM_MESSAGES = frozenset({"vllm"})
# Kinds that refuse ways to think which they don't know, and a budget for it (some inside a stream that has begun) unless they
# were started with a parser of thoughts.
PARTICULAR_OF_THINKING = frozenset({"vllm"})
THINKING = ("adaptive", "disabled")
# Kinds that do not heed a tool_choice of "none", and take one of "tool" for "any".
IGNORES_TOOL_CHOICE = frozenset({"llamacpp"})


def edit(body: dict[str, Any], replica: Replica, stream: bool) -> None:
    """Changes `body` in place, but nothing inside of it, which is the client's."""
    kind = replica.engine.name
    _drop_billing_line(body)
    if kind not in TAKES_SYSTEM_MESSAGES:
        _fold_system(body)
    _write_documents_out(body)
    if kind in PARTICULAR_OF_THINKING and body.get("thinking") and body["thinking"].get("type") not in THINKING:
        body["thinking"] = {"type": "adaptive"}
    if kind in IGNORES_TOOL_CHOICE:
        _choose_tools(body)


def spoken(body: dict[str, Any], tools_first: bool) -> Pieces:
    """As an engine will read it: with the changing line no two would begin alike."""
    shown = dict(body)
    _drop_billing_line(shown)
    return spoken_message(shown, tools_first)


def _drop_billing_line(body: dict[str, Any]) -> None:
    system = body.get("system")
    if isinstance(system, str):
        _replace_system(body, _without_billing_line(system))
    elif system and (text := system[0].get("text", "")) != (rest := _without_billing_line(text)):
        _replace_system(body, [*([{**system[0], "text": rest}] if rest else []), *system[1:]])


def _without_billing_line(text: str) -> str:
    found = _BILLING_LINE.match(text)
    return text[found.end() :] if found else text


def _replace_system(body: dict[str, Any], system: Content) -> None:
    if system:
        body["system"] = system
    else:
        del body["system"]


def _fold_system(body: dict[str, Any]) -> None:
    """System messages among the others are joined to the system prompt, in their order; of their parts only text is."""
    messages = body["messages"]
    later = [text_of(message["content"]) for message in messages if message["role"] == "system"]
    if later:
        body["messages"] = [message for message in messages if message["role"] != "system"]
        body["system"] = "\n\n".join(text for text in (text_of(body.get("system") or ""), *later) if text)


def _write_documents_out(body: dict[str, Any]) -> None:
    """Engines know no documents: those of text become text."""
    if any(_has_document(message["content"]) for message in body["messages"]):
        body["messages"] = [{**message, "content": _written_out(message["content"])} for message in body["messages"]]


def _has_document(content: Content | None) -> bool:
    if not isinstance(content, list):
        return False
    return any(
        block["type"] == "document" or (block["type"] == "tool_result" and _has_document(block.get("content")))
        for block in content
    )


def _written_out(content: Content) -> Content:
    return content if isinstance(content, str) else [written for block in content for written in _block(block)]


def _block(block: Block) -> list[Block]:
    if block["type"] == "document":
        return _document(block)
    if block["type"] == "tool_result" and block.get("content"):
        return [{**block, "content": _written_out(block["content"])}]
    return [block]


def _document(block: Block) -> list[Block]:
    source = block["source"]
    told = [block[name] for name in ("title", "context") if isinstance(block.get(name), str)]
    inside = _written_out(source["data"] if source["type"] == "text" else source["content"])
    if isinstance(inside, str):
        return [{"type": "text", "text": "\n\n".join([*told, inside])}]
    return [*({"type": "text", "text": text} for text in told), *inside]


def _choose_tools(body: dict[str, Any]) -> None:
    """What the choice leaves of the tools is all that the engine is shown."""
    choice = body.get("tool_choice") or {}
    if choice.get("type") == "none":
        body.pop("tools", None)
        del body["tool_choice"]
    elif choice.get("type") == "tool" and isinstance(body.get("tools"), list):
        body["tools"] = [tool for tool in body["tools"] if tool.get("name") == choice.get("name")]
