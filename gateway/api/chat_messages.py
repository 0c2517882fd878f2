"""Messages of a chat in the shapes that every template takes; what a client sent is not touched, what an engine gets is new."""

from typing import Any

Message = dict[str, Any]

# Templates put these two into place as a string; a list is left out by some of them without a word (seen with llama.cpp, where
# the model then answers as if the tool had said nothing; vllm#25001).
_PLAIN_ROLES = frozenset({"tool", "function", "assistant"})


def plain(messages: list[Message]) -> list[Message]:
    """Lists of text in messages of tools and assistants as one string; the same list where there are none."""
    for message in messages:
        if type(message.get("content")) is list and message["role"] in _PLAIN_ROLES:
            return [_plain(message) for message in messages]
    return messages


def developer_as_system(messages: list[Message]) -> list[Message]:
    """For a template that knows no developer; the same list where there is none."""
    for message in messages:
        if message["role"] == "developer":
            return [{**message, "role": "system"} if message["role"] == "developer" else message for message in messages]
    return messages


def _plain(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list) or message["role"] not in _PLAIN_ROLES or (text := _joined(content)) is None:
        return message
    return {**message, "content": text}


def _joined(parts: list[Any]) -> str | None:
    """As vLLM and llama.cpp join the texts of other roles. None: there is something else among them."""
    texts = [_text(part) for part in parts]
    return None if None in texts else "\n".join(text for text in texts if text is not None)


def _text(part: Any) -> str | None:
    if not isinstance(part, dict):
        return None
    text = part.get("refusal") if part.get("type") == "refusal" else part.get("text") if part.get("type") == "text" else None
    return text if isinstance(text, str) else None
