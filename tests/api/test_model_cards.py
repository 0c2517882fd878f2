"""A model's card says what a developer has to know to choose, for the plan that asks; what nobody has shown is null."""

from dataclasses import replace
from typing import Any

import pytest

from backends.engines.llamacpp import LLAMACPP
from backends.engines.vllm import VLLM
from backends.fleet import Replica
from billing.plans import DEFAULT_PLANS
from gateway.access.caller import Caller
from gateway.api.models import model_card, model_list
from models.catalogue import Catalogue
from tests.access.test_caller import CALLER

CATALOGUE = Catalogue.load()
PRO = DEFAULT_PLANS[1]


def replica(model: str, **more: Any) -> Replica:
    engine = more.pop("engine", VLLM)
    return Replica.at("http://127.0.0.1:1", name="r", model=model, engine=engine, slots=1, **more)


def card(model: str, *replicas: Replica, caller: Caller = CALLER) -> dict[str, Any]:
    return model_card(CATALOGUE, {model: replicas or (replica(model),)}, caller, model)


def test_a_chat_model() -> None:
    found = card("gemma-4-12b-it", replica("gemma-4-12b-it", context=65536, precision="fp8"))
    assert found["architecture"] == {"input_modalities": ["text", "image"], "output_modalities": ["text"]}
    assert (found["context_length"], found["precision"]) == (65536, ["fp8"])
    assert found["top_provider"] == {"context_length": 65536, "max_completion_tokens": 2048}
    assert found["per_request_limits"] == {"prompt_tokens": 32768, "completion_tokens": 2048}
    assert found["capabilities"] == {"tools": True, "vision": True, "json_schema": None}
    assert {"tools", "tool_choice", "max_tokens", "seed"} <= set(found["supported_parameters"])
    assert "structured_outputs" not in found["supported_parameters"]
    assert found["endpoints"][:2] == ["/v1/chat/completions", "/v1/completions"]
    assert "/v1/embeddings" not in found["endpoints"]
    assert (found["tier"], found["available"], found["items_per_fare"]) == ("pro", False, None)
    assert found["aliases"] == ["google/gemma-4-12B-it"]


def test_the_longest_output_is_the_plans_or_the_contexts() -> None:
    pro = replace(CALLER, plan=replace(PRO, envelope=replace(PRO.envelope, output_tokens_max=None)))
    assert card("qwen3-8b", caller=pro)["top_provider"]["max_completion_tokens"] == 40960
    assert card("qwen3-8b", replica("qwen3-8b", context=1024))["top_provider"]["max_completion_tokens"] == 1024


def test_an_embedding_model_is_priced_by_the_batch() -> None:
    found = card("all-minilm-l6-v2")
    assert found["architecture"] == {"input_modalities": ["text"], "output_modalities": ["embeddings"]}
    assert (found["kind"], found["fare"], found["items_per_fare"]) == ("embedding", 1, 100)
    assert found["endpoints"] == ["/v1/embeddings", "/v1/score"]
    assert found["supported_parameters"] == ["encoding_format"]
    assert found["top_provider"]["max_completion_tokens"] is None


def test_an_engine_that_lacks_an_endpoint_offers_it_to_nobody() -> None:
    mixed = replica("bge-reranker-v2-m3", engine=LLAMACPP), replica("bge-reranker-v2-m3")
    assert card("bge-reranker-v2-m3", *mixed)["endpoints"] == ["/v1/rerank"]
    assert card("bge-reranker-v2-m3", mixed[1])["endpoints"] == ["/v1/rerank", "/v1/score"]


def test_what_is_not_known_is_not_invented() -> None:
    found = card("bge-reranker-v2-m3")
    assert (found["context_length"], found["precision"], found["architecture"]["output_modalities"]) == (None, None, None)


def test_replicas_of_two_precisions_are_both_told() -> None:
    both = replica("qwen3-8b", precision="fp8"), replica("qwen3-8b", precision="bf16"), replica("qwen3-8b")
    assert card("qwen3-8b", *both)["precision"] == ["bf16", "fp8"]


@pytest.mark.parametrize(("allowed", "available"), [(None, True), (frozenset({"qwen3-8b"}), True), (frozenset({"x"}), False)])
def test_available_is_what_plan_and_key_allow(allowed: frozenset[str] | None, available: bool) -> None:
    caller = replace(CALLER, allowed_models=allowed)
    [only] = model_list(CATALOGUE, {"qwen3-8b": [replica("qwen3-8b")], "glm-4.7": []}, caller)["data"]
    assert only["available"] is available
