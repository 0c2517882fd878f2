"""Real engines were recorded to break just the rules that the table of breaches names, and a recording reads as it was made."""

from collections import defaultdict
from dataclasses import replace

import pytest

from tests.engine.breaches import BREACHES
from tests.engine.conformance import broken_rules
from tests.recordings.calls import CALLS
from tests.recordings.calls_broken import AFTERWARDS, BROKEN
from tests.recordings.recording import Recording, cases, recorded

FOLDERS = {"vllm": ("vllm",), "llamacpp": ("llamacpp", "llamacpp-tools")}
KNOWN = {**CALLS, **BROKEN, **AFTERWARDS}


def all_of(kind: str) -> list[Recording]:
    return [recorded(folder, case) for folder in FOLDERS[kind] for case in cases(folder)]


@pytest.mark.parametrize("kind", FOLDERS)
def test_an_engine_breaks_the_rules_that_are_written_down_and_no_other(kind: str) -> None:
    found = defaultdict(list)
    for recording in all_of(kind):
        for name in broken_rules(recording.call, recording.answer):
            found[name].append(recording.case)
    known = {name for name, breach in BREACHES.items() if kind in breach.kinds}
    assert {name: where for name, where in found.items() if name not in known} == {}
    assert known - found.keys() == set()


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_recording_is_of_the_call_that_its_name_says(kind: str) -> None:
    """Else the engine was recorded before the call was changed."""
    other = [
        recording.case
        for recording in all_of(kind)
        if (recording.call.method, recording.call.path, recording.call.encoded())
        != (KNOWN[recording.case].method, KNOWN[recording.case].path, KNOWN[recording.case].encoded())
    ]
    assert other == []


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_recording_is_whole(kind: str) -> None:
    recordings = all_of(kind)
    assert len(recordings) > 150
    assert [each.case for each in recordings if b"".join(each.answer.pieces()) != each.answer.body] == []
    assert [
        each.case for each in recordings if each.call.streams and each.answer.status == 200 and not each.answer.is_stream
    ] == []


@pytest.mark.parametrize("case", ["chat-n2", "chat-n2-stream"])
def test_a_choice_that_nobody_asked_for_would_be_seen(case: str) -> None:
    """MCP-Bridge#48: text and a call came as two choices."""
    recording = recorded("vllm", case)
    asked_for_one = replace(recording.call, body={**recording.call.body, "n": 1})
    assert broken_rules(recording.call, recording.answer) == set()
    assert broken_rules(asked_for_one, recording.answer) == {"choices-more-than-asked"}
