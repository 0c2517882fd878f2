"""Calls of a model that thinks before it answers; vLLM is held to the text, thoughts included, by `structured_outputs`."""

from types import MappingProxyType
from typing import Any

from tests.recordings import calls_chat, calls_messages, calls_responses
from tests.recordings.recording import Call
from tests.recordings.words import WEATHER, says

# Thoughts are read where a call asks for them (`tests/engine/vllm.py`). Their end is one token (`tests/engine/models.py` names it
# so); the bias makes the model take it where the text allows it.
_ASKED = {"chat_template_kwargs": {"thinking": True}}
_THINKS = {**_ASKED, "logit_bias": {"8": 100}}
_ANSWER: dict[str, Any] = {"structured_outputs": {"regex": r"It is a greeting\.</think>Hello there\."}, **_THINKS}
_CALL_TEXT = r'<tool_call>\n\{"name": "get_weather", "arguments": \{"city": "Paris"\}\}\n</tool_call>'
_CALL: dict[str, Any] = {"structured_outputs": {"regex": r"Look it up\.</think>" + _CALL_TEXT}, **_THINKS}
_ROOM = 96
_SHORT = [says("Reply with one word: yes or no?")]


def _message(**more: Any) -> Call:
    """Anthropic's surface takes no such hold: the small model only thinks, and ends by itself after those words."""
    return calls_messages.message(_SHORT, **{"max_tokens": _ROOM, **_ASKED, **more})


CALLS = MappingProxyType(
    {
        **calls_chat.with_streams(
            {
                "reasoning-chat": calls_chat.chat(max_tokens=_ROOM, **_ANSWER),
                "reasoning-chat-tool": calls_chat.chat([says(WEATHER)], max_tokens=_ROOM, tools=calls_chat.BOTH_TOOLS, **_CALL),
                "reasoning-chat-cut": calls_chat.chat(max_tokens=4, **_ANSWER),
                "reasoning-chat-off": calls_chat.chat(max_tokens=_ROOM, include_reasoning=False, **_ANSWER),
            }
        ),
        **calls_responses.with_streams(
            {
                "reasoning-responses": calls_responses.respond(max_output_tokens=_ROOM, **_ANSWER),
                "reasoning-responses-tool": calls_responses.respond(
                    WEATHER, max_output_tokens=_ROOM, tools=calls_responses.TOOLS, **_CALL
                ),
                "reasoning-responses-cut": calls_responses.respond(max_output_tokens=4, **_ANSWER),
                "reasoning-messages": _message(),
                "reasoning-messages-off": _message(thinking={"type": "disabled"}),
                "reasoning-messages-budget": calls_messages.message(_SHORT, thinking=calls_messages.THINKING, max_tokens=1040),
            }
        ),
        "reasoning-chat-history": calls_chat.chat(
            [says(), {"role": "assistant", "content": "Hello.", "reasoning_content": "A greeting."}, says()],
            max_tokens=4,
            **_ASKED,
        ),
        "reasoning-messages-coding-agent-stream": calls_messages.CALLS["messages-coding-agent-thinking-stream"],
    }
)
