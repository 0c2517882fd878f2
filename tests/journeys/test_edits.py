"""Edits seen from both ends: what the client sent, what the engine got, and what it costs when an engine can't."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.journeys.replay import Replayer, replaying
from tests.support.gateway import Running, Town, town, wait_for
from tests.support.stream import settled

MODELS = {"vllm": "gpt-oss-20b", "llamacpp": "smollm2-135m-instruct"}
WHOLE = b'{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",'
WHOLE += b'"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
DEVELOPER = [{"role": "developer", "content": "brief"}, {"role": "user", "content": "hi"}]


@pytest.fixture
def engine() -> Iterator[Replayer]:
    with replaying() as replayer:
        replayer.content_type, replayer.pieces = "application/json", [WHOLE]
        yield replayer


@pytest.fixture
def installed(database_url: str, valkey_url: str, tmp_path: Path, engine: Replayer) -> Iterator[tuple[Town, Running]]:
    fleet = engine.fleet_entry(MODELS["vllm"], "vllm", "v") + "priority = true\n"
    with town(database_url, valkey_url, tmp_path, fleet + engine.fleet_entry(MODELS["llamacpp"], "llamacpp", "l")) as built:
        yield built, built.gateway()


def test_what_the_engine_gets(installed: tuple[Town, Running], engine: Replayer) -> None:
    built, gateway = installed
    pro = built.key("pro")

    def got(kind: str, **fields: Any) -> dict[str, Any]:
        body = {"model": MODELS[kind], "messages": DEVELOPER, **fields}
        answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, headers=pro.headers)
        assert answer.status_code == 200, answer.text
        assert answer.content == WHOLE
        return engine.asked[-1]

    plain = got("vllm")
    assert plain["messages"] == DEVELOPER
    assert got("llamacpp")["messages"][0] == {"role": "system", "content": "brief"}
    assert got("vllm", guided_choice=["yes", "no"])["structured_outputs"] == {"choice": ["yes", "no"]}
    assert got("llamacpp", guided_choice=["yes", "no"])["grammar"] == 'root ::= "yes" | "no"'
    classes = {tier: got("vllm", service_tier=tier) for tier in ("auto", "priority", "flex")}
    assert [body["priority"] for body in classes.values()] == [plain["priority"], plain["priority"], 50]
    assert not any("service_tier" in body for body in classes.values())
    assert got("vllm", priority=-100, request_id="x", n_probs=50_000, never_heard_of=1) == {**plain, "never_heard_of": 1}


def test_a_form_that_the_engine_can_not_be_held_to_is_refused_and_costs_nothing(
    installed: tuple[Town, Running], engine: Replayer
) -> None:
    built, gateway = installed
    pro = built.key("pro")
    body = {"model": MODELS["llamacpp"], "messages": DEVELOPER, "guided_regex": "a+"}
    answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, headers=pro.headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "unsupported_parameter")
    assert "regular expression" in error["message"]
    assert engine.asked == []
    wait_for(lambda: len(settled(built.redis_url, pro)) == 1)
    assert [(event.verdict, event.reason) for event in settled(built.redis_url, pro)] == [("voided", "client_error")]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"service_tier": "gold"}, "service_tier"), ({"top_logprobs": 21}, "top_logprobs"), ({"functions": [{}]}, "functions"),
        ({"guided_json": {}, "guided_regex": "a"}, "guided_json"), ({"stop": ["a"] * 65}, "stop"),
    ]  # fmt: skip
    for fields, param in wrong:
        asked = {**body, "guided_regex": None, **fields}
        answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=asked, headers=pro.headers)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert len(settled(built.redis_url, pro)) == 1
