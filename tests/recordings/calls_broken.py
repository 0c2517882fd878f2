"""Streams that the engine does not finish: recorded while its core is killed under them."""

from types import MappingProxyType

from tests.recordings.calls_chat import chat, text
from tests.recordings.calls_messages import message
from tests.recordings.calls_responses import respond
from tests.recordings.recording import Call
from tests.recordings.words import says

# The small model would stop by itself long before.
_LONG = {"stream": True, "ignore_eos": True, "temperature": 0}
_STORY = [says("Write a list of all the towns in France, one a line.")]
BROKEN = MappingProxyType(
    {
        "chat-broken-stream": chat(_STORY, max_tokens=2000, **_LONG),
        "completions-broken-stream": text(max_tokens=2000, **_LONG),
        "responses-broken-stream": respond(_STORY, max_output_tokens=2000, **_LONG),
        "messages-broken-stream": message(_STORY, max_tokens=2000, stream=True),
        "chat-broken": chat(_STORY, max_tokens=2000, ignore_eos=True),
        "messages-broken": message(_STORY, max_tokens=2000),
        "responses-broken": respond(_STORY, max_output_tokens=2000, ignore_eos=True),
    }
)
AFTERWARDS = MappingProxyType({"free-health-broken": Call("/health", method="GET"), "chat-broken-afterwards": chat()})
