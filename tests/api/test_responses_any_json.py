"""Whatever JSON is posted to `/v1/responses`, or that API's bodies to chat: it is read, or refused with 400."""

import contextlib
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.api.call import read_call
from gateway.api.chat import CHAT
from gateway.errors import Refusal
from tests.api.test_responses import sent

NAMES = [
    "type", "role", "content", "output", "name", "namespace", "tools", "format", "summary", "call_id", "image_url", "url", "text",
]  # fmt: skip
KINDS = [
    "message", "function_call", "function_call_output", "custom_tool_call", "reasoning", "function", "namespace", "custom",
    "input_text", "input_image", "web_search", "grammar", "json_schema",
]  # fmt: skip
FIELDS = ["include", "instructions", "tool_choice", "text", "reasoning", "metadata", "tools", "max_output_tokens", "n"]
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(KINDS) | st.text(max_size=2)
TYPES = st.fixed_dictionaries({"type": st.sampled_from(KINDS)})
OBJECTS = st.deferred(lambda: st.builds(dict.__or__, TYPES, st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3)))
JSON: st.SearchStrategy[Any] = st.deferred(lambda: SCALARS | st.lists(OBJECTS | SCALARS, max_size=2) | OBJECTS)
INPUT = st.fixed_dictionaries({"input": st.lists(OBJECTS, min_size=1, max_size=3) | JSON})
BODIES = st.builds(dict.__or__, INPUT, st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3))


@given(body=BODIES, kind=st.sampled_from(["vllm", "llamacpp", "sglang"]))
@settings(max_examples=150, deadline=None)
def test_any_json_is_read_or_refused(body: dict[str, Any], kind: str) -> None:
    with contextlib.suppress(Refusal):
        sent(body.pop("input"), kind, **body)


@given(body=BODIES)
@settings(max_examples=100, deadline=None)
def test_any_json_posted_to_chat_is_read_or_refused(body: dict[str, Any]) -> None:
    with contextlib.suppress(Refusal):
        read_call(CHAT, {"model": "m", **body}, len(orjson.dumps(body)))
