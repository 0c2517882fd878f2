"""Parameters that would make an engine work out of all proportion, or answer in silence with something else: refused; pure."""

from types import MappingProxyType
from typing import Any

from gateway.errors import Refusal, wrong

Body = dict[str, Any]

# OpenAI's own bound for chat; each is computed and sent for every token.
LOGPROBS_MAX = 20
# Looked through at every token.
LIST_MAX = 1024
STOPS_MAX = 64
STOP_BYTES_MAX = 4096
_LISTS = ("stop_token_ids", "bad_words", "allowed_token_ids", "logprob_token_ids")
# Legacy fields that no engine heeds: the answer would be one without any call. What stands for "none" passes.
_LEGACY = MappingProxyType({"functions": "tools", "function_call": "tool_choice"})

_COUNTS = ("top_logprobs", "prompt_logprobs", "logprobs")
_STOPS = ("stop", "stop_sequences", "stop_regex")
_BOUNDED = frozenset((*_COUNTS, *_STOPS, *_LISTS, *_LEGACY, "logit_bias"))


def check(body: Body) -> None:
    """Raises: Refusal (400)."""
    if body.keys().isdisjoint(_BOUNDED):  # most bodies have none of them
        return
    for field in _COUNTS:
        value = body.get(field)
        if value is not None and not (field == "logprobs" and isinstance(value, bool)):
            _check_count(field, value)
    bias = body.get("logit_bias")
    if bias is not None and not (isinstance(bias, dict) and len(bias) <= LIST_MAX):
        raise wrong("logit_bias", f"an object of at most {LIST_MAX} tokens")
    for field in _LISTS:
        if body.get(field) is not None and not (isinstance(body[field], list) and len(body[field]) <= LIST_MAX):
            raise wrong(field, f"a list of at most {LIST_MAX}")
    for field in _STOPS:
        _check_stop(field, body.get(field))
    for field, instead in _LEGACY.items():
        if body.get(field) not in (None, [], "none"):
            raise Refusal(400, f"{field} is not supported; send {instead} instead.", param=field, code="unsupported_parameter")


def _check_count(field: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LOGPROBS_MAX:
        raise wrong(field, f"a whole number from 0 to {LOGPROBS_MAX}")


def _check_stop(field: str, stop: object) -> None:
    if stop is None or (isinstance(stop, str) and len(stop) <= STOP_BYTES_MAX):
        return
    if not isinstance(stop, list) or len(stop) > STOPS_MAX or not all(isinstance(word, str) for word in stop):
        raise wrong(field, f"a string or a list of at most {STOPS_MAX} strings")
    if sum(map(len, stop)) > STOP_BYTES_MAX:
        raise wrong(field, f"at most {STOP_BYTES_MAX} characters in all")
