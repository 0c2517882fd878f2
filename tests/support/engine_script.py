"""What the stand-in engine is told to do with one request: by a header, or by a prompt that starts with `@engine {json}`."""

import json
from dataclasses import dataclass, fields
from typing import Any

PROMPT_MARK = "@engine "
HEADER = b"x-engine-script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The defaults are a healthy engine. Counts are of content chunks, times in milliseconds."""

    chunks: int = 3
    text: str = "tok "
    pace_ms: float = 0  # before each chunk
    delay_ms: float = 0  # before the first byte
    status: int = 200  # any other: an error body in vLLM's shape
    retry_after: int | None = None
    hang: bool = False  # takes the request, never answers
    hang_after: int | None = None  # streams so many chunks, then falls silent
    die_after: int | None = None  # cuts the connection after so many chunks (not streamed: in the middle of the body)
    exit_after: int | None = None  # the whole process ends at once after so many chunks
    garbage: bool = False  # answers something that is not HTTP
    split: bool = False  # every byte in a packet of its own
    error_frame_first: bool = False  # 200, then an error instead of output
    error_after: int | None = None  # an error frame after so many chunks
    says: str | None = None  # instead of its answer: this body, or these frames
    empty: bool = False  # no output at all, though it ends well
    no_finish: bool = False  # ends without finish_reason and [DONE]
    no_usage: bool = False
    tool: bool = False  # calls a tool instead of talking (not on /v1/messages: until its result has come)
    tool_name: str = "f"
    tool_arguments: str = '{"a":1}'
    reasoning: bool = False  # its first half is reasoning
    sse_comment: bool = False  # keep-alive comments between the chunks
    close_keepalive: bool = False  # closes without a word when it has answered
    announce_close: bool = False  # the same, announced by `connection: close`
    without_length: bool = False  # ends its body by closing
    prompt_tokens: int | None = None
    other_format: bool = False  # vectors as numbers where base64 was asked for, and the other way round
    short_by: int = 0  # so many vectors, results or scores are missing
    unsorted: bool = False  # results in the order of the documents, all of them, without their texts
    cached_tokens: int | None = None
    completion_tokens: int | None = None


_NAMES = frozenset(field.name for field in fields(Script))


def parse_script(header: bytes | None, payload: dict[str, Any]) -> Script:
    """Raises ValueError for a field that does not exist, so that a test can't misspell its own steering."""
    text = header.decode() if header is not None else None
    if text is None:
        prompt = prompt_of(payload)
        if not prompt.startswith(PROMPT_MARK):
            return Script()
        text = prompt.removeprefix(PROMPT_MARK)
    steps, _ = json.JSONDecoder().raw_decode(text.lstrip())
    unknown = steps.keys() - _NAMES
    if unknown:
        raise ValueError(f"the stand-in engine knows no {', '.join(sorted(unknown))}")
    return Script(**steps)


def prompt_of(payload: dict[str, Any]) -> str:
    """The last user message, or the first prompt, input, query or text."""
    prompt = next((payload[field] for field in ("prompt", "input", "query", "text_1") if field in payload), None)
    first = prompt[0] if isinstance(prompt, list) and prompt else prompt
    if isinstance(first, str):
        return first
    for message in reversed(payload.get("messages") or prompt or []):
        if not isinstance(message, dict) or message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, list):
            texts = [part.get("text", "") for part in content if isinstance(part, dict)]
            # A coding agent puts its reminders before what its user said.
            return next((text for text in texts if text.startswith(PROMPT_MARK)), " ".join(texts))
        return content if isinstance(content, str) else ""
    return ""
