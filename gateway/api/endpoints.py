"""The paid endpoints: what each requires of its body."""

from typing import Any

from gateway.api.call import Asked, Endpoint
from gateway.errors import Refusal

IMAGE_PARTS = ("image_url", "input_image", "image")
ADDRESSED = frozenset({"image_url", "video_url", "audio_url", "image", "file_url"})
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def _messages(body: dict[str, Any]) -> Asked:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal(400, "messages must be a list of at least one message.", param="messages", code="invalid_value")
    images = 0
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise _wrong(index, "", "an object with role and content")
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise _wrong(index, ".role", f"one of {', '.join(sorted(ROLES))}")
        content = message.get("content")
        if isinstance(content, list):
            images += sum([_image(index, part) for part in content])
        elif content is not None and not isinstance(content, str):
            raise _wrong(index, ".content", "a string, a list of parts, or null")
    return Asked(prompts=1, images=images)


def _image(index: int, part: object) -> bool:
    """Whether a part is an image. What names an address is refused: the engine would connect to it."""
    if not isinstance(part, dict):
        return False
    is_image = part.get("type") in IMAGE_PARTS
    for name in ADDRESSED & part.keys():
        found = part[name]
        url = found.get("url") if isinstance(found, dict) else found
        if url is None:
            continue
        if not (isinstance(url, str) and url.startswith("data:")):
            raise _wrong(index, f".content: {name}", "a data: URL; addresses are not fetched here")
        is_image = is_image or name in IMAGE_PARTS  # engines take it for one without its type too
    return is_image


def _wrong(index: int, field: str, must_be: str) -> Refusal:
    param = f"messages[{index}]{field}"
    return Refusal(400, f"{param} must be {must_be}.", param=param if field else "messages", code="invalid_value")


def _prompt(body: dict[str, Any]) -> Asked:
    """A string, a list of strings, a list of token ids, or a list of such lists (OpenAI's four shapes)."""
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


CHAT = Endpoint("/v1/chat/completions", "chat", chat=True, ask=_messages)
COMPLETIONS = Endpoint("/v1/completions", "completions", chat=False, ask=_prompt)
PAID = {endpoint.path: endpoint for endpoint in (CHAT, COMPLETIONS)}
