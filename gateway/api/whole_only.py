"""The dialect of endpoints that do not stream: OpenAI's errors, and answers that are counted and never empty."""

from typing import Any

from gateway.api.chunks import OpenAiErrors
from gateway.api.dialect import Question, Reader
from gateway.api.sse import StreamBroke
from gateway.errors import Refusal, wrong
from gateway.progress import Usage

# OpenAI's own limit of inputs in one request.
ITEMS_MAX = 2048


class WholeOnly(OpenAiErrors):
    """What streams need is never asked for: `streams=False` refuses them when the call is read."""

    silence = b""

    def reader(self, question: Question) -> Reader:
        raise StreamBroke("this endpoint does not stream")

    def broken(self, refusal: Refusal, reader: Reader | None) -> bytes:
        return refusal.body()


def texts_in(body: dict[str, Any], field: str) -> list[str]:
    """A text, or a list of them. Raises: Refusal (400)."""
    given = body.get(field)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise wrong(field, "a string or a list of at least one string")
    check_count(field, len(texts))
    return texts


def check_count(field: str, count: int) -> None:
    """Raises: Refusal (400)."""
    if count > ITEMS_MAX:
        raise Refusal(
            400,
            f"{field} has {count} items; one request takes at most {ITEMS_MAX}. Send less in one request.",
            code="too_many_items",
            param=field,
        )


def listed(parsed: dict[str, Any], field: str, wanted: int) -> list[dict[str, Any]]:
    """As many objects as were asked for. Raises: StreamBroke: clients take a short list, or none, for a whole answer."""
    found = parsed.get(field)
    if not isinstance(found, list) or len(found) < wanted or not all(isinstance(item, dict) for item in found):
        count = len(found) if isinstance(found, list) else "no"
        raise StreamBroke(f"the engine sent {count} {field} where {wanted} were asked for")
    return found


def is_number(value: object) -> bool:
    """JSON's; a NaN comes as null."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def tokens_of(usage: object) -> Usage:
    """Rerankers that say only `total_tokens` mean the prompt's: there is no other."""
    if not isinstance(usage, dict):
        return Usage()
    return Usage.of(usage.get("prompt_tokens", usage.get("total_tokens")), None, 0)
