"""What a call asks for is read precisely; what an engine gets has our few edits and no others."""

from typing import Any

import orjson
import pytest

from backends.dedicated import Way
from backends.engines.vllm import VLLM
from backends.fleet import Replica
from gateway.api.call import read_call, text_bytes
from gateway.api.chat import CHAT, COMPLETIONS
from gateway.api.edits import engine_body
from gateway.api.endpoint import Endpoint
from gateway.api.order import Order
from gateway.api.salts import Salts
from gateway.errors import Refusal
from gateway.limits.policy import Numbers
from models.catalogue import Catalogue

HELLO = [{"role": "user", "content": "hello"}]
REPLICA = Replica.at("http://127.0.0.1:1", name="r", model="qwen3-8b", engine=VLLM, slots=1, engine_model="engine/name")
MODEL = Catalogue.load().resolve("qwen3-8b")


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": HELLO, **fields}


@pytest.mark.parametrize(
    ("endpoint", "body", "param"),
    [
        (CHAT, {"messages": HELLO}, "model"),
        (CHAT, chat(model=3), "model"),
        (CHAT, chat(model=""), "model"),
        (CHAT, chat(stream="yes"), "stream"),
        (CHAT, chat(stream=1), "stream"),
        (CHAT, chat(n=0), "n"),
        (CHAT, chat(n=True), "n"),
        (CHAT, chat(n=2**40), "n"),
        (CHAT, chat(n="2"), "n"),
        (CHAT, chat(best_of=-1), "best_of"),
        (CHAT, chat(max_tokens=0), "max_tokens"),
        (CHAT, chat(max_completion_tokens=1.5), "max_completion_tokens"),
        (CHAT, chat(stream_options={}), "stream_options"),
        (CHAT, chat(stream=True, stream_options=1), "stream_options"),
        (CHAT, {"model": "m"}, "messages"),
        (CHAT, chat(messages=[]), "messages"),
        (CHAT, chat(messages="hello"), "messages"),
        (CHAT, chat(messages=["hello"]), "messages"),
        (CHAT, chat(messages=[{"role": "wizard", "content": ""}]), "messages[0].role"),
        (CHAT, chat(messages=[{"role": "user", "content": 5}]), "messages[0].content"),
        (COMPLETIONS, {"model": "m"}, "prompt"),
        (COMPLETIONS, {"model": "m", "prompt": []}, "prompt"),
        (COMPLETIONS, {"model": "m", "prompt": ["a", 1]}, "prompt"),
        (COMPLETIONS, {"model": "m", "prompt": [[]]}, "prompt"),
        (COMPLETIONS, {"model": "m", "prompt": [True]}, "prompt"),
    ],
)
def test_a_wrong_field_is_named(endpoint: Endpoint, body: dict[str, Any], param: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_call(endpoint, body, 0)
    assert caught.value.status == 400
    assert caught.value.param == param
    assert param.partition("[")[0] in caught.value.message


@pytest.mark.parametrize(
    ("prompt", "fields", "generations"),
    [("a", {}, 1), (["a", "b"], {}, 2), ([1, 2, 3], {}, 1), ([[1], [2]], {"n": 3}, 6), ("a", {"n": 2, "best_of": 5}, 5)],
)
def test_every_generation_is_counted(prompt: object, fields: dict[str, Any], generations: int) -> None:
    """A list of a hundred prompts is a hundred generations, not one."""
    assert read_call(COMPLETIONS, {"model": "m", "prompt": prompt, **fields}, 0).generations == generations


def test_what_clients_send_as_null_is_not_sent() -> None:
    call = read_call(CHAT, chat(stream=None, n=None, max_tokens=None, stream_options=None), 0)
    assert (call.stream, call.generations, call.output_tokens) == (False, 1, None)


def sent(body: dict[str, Any], output_max: int | None = None, output_default: int | None = None) -> dict[str, Any]:
    order = Order(
        MODEL, [Way("m", [REPLICA])], 1, output_max, output_default, account="a", key="k", service_class="free", numbers=Numbers()
    )
    result: dict[str, Any] = orjson.loads(engine_body(read_call(CHAT, body, 0), order, REPLICA, Salts("pepper", shared=True)))
    return result


def test_unknown_fields_reach_the_engine_and_nothing_is_added() -> None:
    body = chat(top_k=3, response_format={"type": "json_object"}, future={"x": [1]})
    assert sent(body) == {**body, "model": "engine/name"}


@pytest.mark.parametrize(
    "field",
    [
        "priority",
        "cache_salt",
        "kv_transfer_params",
        "vllm_xargs",
        "session_id",
        "prompt_embeds",
        "bootstrap_host",  # where an SGLang that decodes fetches its prefill from
        "lora_path",
        "custom_logit_processor",
        "rid",
    ],
)
def test_no_client_sets_what_only_the_operator_may(field: str) -> None:
    assert field not in sent(chat(**{field: 1}))


def test_usage_is_asked_for_on_streams_only() -> None:
    assert sent(chat(stream=True))["stream_options"] == {"include_usage": True}
    # vLLM's per-chunk usage makes clients add up each one.
    asked = {"include_usage": False, "continuous_usage_stats": True}
    assert sent(chat(stream=True, stream_options=asked))["stream_options"] == {"include_usage": True}
    assert "stream_options" not in sent(chat())


@pytest.mark.parametrize(
    ("fields", "output_max", "default", "expected"),
    [
        ({}, 100, None, {}),
        ({}, 100, 50, {"max_tokens": 50}),
        ({"max_tokens": 70}, 100, 50, {"max_tokens": 70}),
        ({"max_tokens": 32_000}, 100, 50, {"max_tokens": 100}),
        ({"max_completion_tokens": 32_000}, 100, None, {"max_tokens": 100}),
        ({"max_completion_tokens": 32_000}, None, None, {"max_completion_tokens": 32_000}),
    ],
)
def test_output_is_capped_by_plan_and_context(
    fields: dict[str, Any], output_max: int | None, default: int | None, expected: dict[str, Any]
) -> None:
    assert {key: value for key, value in sent(chat(**fields), output_max, default).items() if key.startswith("max_")} == expected


def test_text_is_counted_without_images() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10_000}}
    body = chat(messages=[{"role": "user", "content": [{"type": "text", "text": "é" * 10}, image, image]}])
    call = read_call(CHAT, body, 0)
    assert call.images == 2
    assert 20 <= text_bytes(call) < 300
