"""The paid endpoints: what each requires of its body."""

from typing import Any

from gateway.api.call import Endpoint
from gateway.errors import Refusal

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def _messages(body: dict[str, Any]) -> int:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal(400, "messages must be a list of at least one message.", param="messages", code="invalid_value")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise Refusal(
                400, f"messages[{index}] must be an object with role and content.", param="messages", code="invalid_value"
            )
        if message.get("role") not in ROLES:
            raise Refusal(
                400,
                f"messages[{index}].role must be one of {', '.join(sorted(ROLES))}.",
                param=f"messages[{index}].role",
                code="invalid_value",
            )
        if not isinstance(message.get("content"), str | list | None):
            raise Refusal(
                400,
                f"messages[{index}].content must be a string, a list of parts, or null.",
                param=f"messages[{index}].content",
                code="invalid_value",
            )
    return 1


def _prompt(body: dict[str, Any]) -> int:
    """A string, a list of strings, a list of token ids, or a list of such lists (OpenAI's four shapes)."""
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return 1
    if isinstance(prompt, list) and prompt:
        if all(type(part) is int for part in prompt):
            return 1
        if all(isinstance(part, str) for part in prompt) or all(
            isinstance(part, list) and part and all(type(token) is int for token in part) for part in prompt
        ):
            return len(prompt)
    raise Refusal(
        400,
        "prompt must be a string, a list of strings, a list of token ids, or a list of lists of token ids.",
        param="prompt",
        code="invalid_value",
    )


CHAT = Endpoint("/v1/chat/completions", "chat", chat=True, prompts=_messages)
COMPLETIONS = Endpoint("/v1/completions", "completions", chat=False, prompts=_prompt)
PAID = {endpoint.path: endpoint for endpoint in (CHAT, COMPLETIONS)}
