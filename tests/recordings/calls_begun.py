"""Calls whose tool call is begun for the model: llama.cpp goes on from a last message of the assistant."""

from types import MappingProxyType
from typing import Any

from tests.recordings import calls_chat, calls_messages, calls_responses
from tests.recordings.recording import Call
from tests.recordings.words import WEATHER, chat_tool, says

_BEGUN = "<tool_call>\n"
_TURNS = [says(WEATHER), says(_BEGUN, "assistant")]
# After these words the model is content with one call.
_ONCE = [says("Say yes."), says(_BEGUN, "assistant")]
_ITEMS = [calls_responses.says(WEATHER), calls_responses.says(_BEGUN, "assistant", "output_text")]


def chat(turns: Any = _TURNS, **more: Any) -> Call:
    return calls_chat.chat(turns, **{"tools": calls_chat.BOTH_TOOLS, "max_tokens": 64, **more})


def message(**more: Any) -> Call:
    return calls_messages.message(_TURNS, tools=calls_messages.TOOLS, max_tokens=64, **more)


def respond(**more: Any) -> Call:
    return calls_responses.respond(_ITEMS, tools=calls_responses.TOOLS, max_output_tokens=64, **more)


CALLS = MappingProxyType(
    {
        **calls_chat.with_streams(
            {
                "begun-chat-required": chat(tool_choice="required"),
                "begun-chat-required-one": chat(_ONCE, tools=[chat_tool()], tool_choice="required"),
                "begun-chat-named": chat(tool_choice=calls_chat.NAMED),
                "begun-chat-auto": chat(),
            }
        ),
        **calls_messages.with_streams(
            {
                "begun-messages-any": message(tool_choice={"type": "any"}),
                "begun-messages-named": message(tool_choice={"type": "tool", "name": "get_weather"}),
                "begun-responses-required": respond(tool_choice="required"),
                "begun-responses-named": respond(tool_choice=calls_responses.NAMED),
            }
        ),
    }
)
