"""All calls that are recorded, by case; a case's name begins with its endpoint's."""

from types import MappingProxyType

from tests.recordings import calls_begun, calls_chat, calls_messages, calls_others, calls_reasoning, calls_responses

CALLS = MappingProxyType(
    {
        **calls_chat.CALLS,
        **calls_responses.CALLS,
        **calls_messages.CALLS,
        **calls_others.CALLS,
        **calls_begun.CALLS,
        **calls_reasoning.CALLS,
    }
)
