"""What an engine's fault or refusal means to the client: whose fault it is, and what to do about it."""

from typing import Any

import orjson

from gateway.errors import Refusal

# Texts by which engines say that prompt and output do not fit the context.
_CONTEXT_WORDS = ("maximum context length", "context length", "context size", "exceed_context_size", "too large to process")
# llama.cpp's 500 to a text that is longer than it embeds at once: no other replica does better.
_TOO_LONG = "is too large to process"


class EngineOverloaded(Exception):
    """The engine refuses work for now (429, 503): another replica may take it."""


class EngineFailed(Exception):
    """The engine answered with a status or a type that is its own fault: another replica may do better. Its words are not kept:
    engines quote prompts, and these errors are logged."""


class EngineRefused(Exception):
    """The engine says that the request is wrong (4xx): the client's to mend."""

    def __init__(self, status: int, message: str, param: str | None) -> None:
        super().__init__(f"the engine refused the request with status {status}")
        self.status, self.message, self.param = status, message, param


def raise_status(status: int, body: bytes) -> None:
    """For an answer that is not 200. Raises: EngineOverloaded, EngineFailed, EngineRefused."""
    message, param = _message(body)
    if status in (429, 503):
        raise EngineOverloaded(f"status {status}")
    if status == 500 and _TOO_LONG in message:
        raise EngineRefused(400, message, param)
    # 401, 403 and 404 mean that our fleet file is wrong, not the client's request.
    if status >= 500 or status in (401, 403, 404) or status < 400:
        raise EngineFailed(f"status {status}")
    raise EngineRefused(status, message, param)


def client_error(refused: EngineRefused) -> Refusal:
    """An engine's 4xx in our envelope. 413 and 422 become 400, which no client retries."""
    lower = refused.message.lower()
    code = "context_length_exceeded" if any(word in lower for word in _CONTEXT_WORDS) else None
    return Refusal(400, refused.message or "The engine refused the request.", code=code, param=refused.param)


def _message(body: bytes) -> tuple[str, str | None]:
    """From any of the shapes engines use: {"error": {...}}, {"object": "error", ...}, {"detail": ...}, or text."""
    try:
        parsed: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body[:500].decode("utf-8", "replace").strip(), None
    if not isinstance(parsed, dict):
        return str(parsed)[:500], None
    found = parsed.get("error", parsed)
    if not isinstance(found, dict):
        return str(found)[:2000], None
    message = found.get("message") or found.get("detail") or ""
    param = found.get("param")
    return str(message)[:2000], param if isinstance(param, str) else None
