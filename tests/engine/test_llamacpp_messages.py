"""The Anthropic SDK on the real llama.cpp, as `make up` starts it, through the whole gateway."""

from typing import Any

import pytest

from gateway.local.llamacpp import MODEL
from tests.conformance.test_messages import client_of
from tests.engine.test_llamacpp_responses import here as here
from tests.support.gateway import Town, wait_for
from tests.support.stream import open_holds, settled

pytestmark = pytest.mark.xdist_group("llamacpp")
COLD = {"temperature": 0}  # the SDK has no parameter for it any more
COUNTING: Any = {"role": "user", "content": "Count: one, two, three, four, five."}


def test_a_real_engine_answers_counts_and_stops_where_it_is_told(here: Town) -> None:
    asked: Any = {"model": MODEL, "max_tokens": 40, "stop_sequences": [" "], "extra_body": COLD}
    later: Any = {"role": "system", "content": "Be brief."}
    with client_of(here, here.gateway()) as client:
        with client.messages.stream(**asked, messages=[COUNTING]) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        event = _settled(here)
        counted = client.messages.count_tokens(model=MODEL, messages=[COUNTING]).input_tokens
        whole = client.messages.create(**asked, messages=[COUNTING, later])
    assert text
    assert " " not in text
    assert (final.stop_reason, final.stop_sequence) == (whole.stop_reason, whole.stop_sequence) == ("stop_sequence", " ")
    assert event["completion_tokens"] == final.usage.output_tokens > 0
    assert event["prompt_tokens"] == counted == final.usage.input_tokens + (final.usage.cache_read_input_tokens or 0)


def _settled(town: Town) -> dict[str, Any]:
    wait_for(lambda: not open_holds(town.redis_url))
    (event,) = settled(town.redis_url, town.customers[-1])
    return event.event
