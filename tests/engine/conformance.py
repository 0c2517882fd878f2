"""One recorded or live answer against the rules of its surface."""

from tests.engine import chat_rules, surface_rules
from tests.recordings.recording import Answer, Call


def broken_rules(call: Call, answer: Answer) -> set[str]:
    """Names of the rules that this answer breaks; `tests/engine/breaches.py` says what they mean."""
    if answer.status >= 400:
        return surface_rules.broken_by_error(call, answer) if answer.body else set()
    if "completions" in call.path:
        return chat_rules.broken_by_stream(call, answer) if answer.is_stream else chat_rules.broken_by_whole(call, answer)
    if "/responses" in call.path:
        return (
            surface_rules.broken_by_response_stream(answer)
            if answer.is_stream
            else surface_rules.broken_by_response(call, answer)
        )
    if "/messages" in call.path and "count_tokens" not in call.path:
        return (
            surface_rules.broken_by_message_stream(call, answer) if answer.is_stream else surface_rules.broken_by_message(answer)
        )
    return set()
