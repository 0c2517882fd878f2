"""The catalogue as data: what a reviewer would look for in every entry."""

import re
from collections import Counter

import pytest

from billing.plans import TIERS
from models.catalogue import Catalogue, Model
from models.licences import load_licences
from models.model import parameter_count
from models.sources import load_sources
from tests.models.parsers import REASONING_PARSERS, TOOL_PARSERS

CATALOGUE = Catalogue.load()
LICENCES, SOURCES = load_licences(), load_sources()
EACH = pytest.mark.parametrize("model", CATALOGUE.models, ids=[model.id for model in CATALOGUE.models])
# SPDX's identifiers as they stand, and names of licences that SPDX does not list.
SPDX = {"Apache-2.0", "CC-BY-NC-4.0", "MIT"}
NAMED = re.compile(r"^(Llama-[34](\.\d)?-Community|MiniMax-(M2\.7|Community)|Modified-MIT-Kimi|NVIDIA-Open-Model)$")
ASKED_FOR = (
    "Llama 3.3 70B Instruct", "Qwen3 32B", "DeepSeek R1", "DeepSeek V3.2", "DeepSeek V4 Flash", "Kimi K2.6", "GLM 5",
    "gpt-oss 20B", "gpt-oss 120B",
)  # fmt: skip


def test_it_is_large_enough_in_every_tier() -> None:
    tiers = Counter(model.tier for model in CATALOGUE.models if not model.needs_acceptance)
    assert sum(tiers.values()) >= 45
    assert tiers["free"] >= 16
    assert set(tiers) == set(TIERS)
    assert all(tiers[tier] >= 8 for tier in TIERS)


def test_it_has_every_purpose_and_the_models_that_people_ask_for() -> None:
    assert {model.purpose for model in CATALOGUE.models} == {
        "chat", "code", "reasoning", "vision", "embedding", "rerank", "audio",
    }  # fmt: skip
    assert set(ASKED_FOR) <= {model.name for model in CATALOGUE.models}
    popular = [model for model in CATALOGUE.models if model.popular]
    assert 8 <= len(popular) <= 24, "popular is what most people should look at first"


def test_every_fact_names_its_source_and_every_source_is_used() -> None:
    used = set()
    for model in CATALOGUE.models:
        assert model.facts() == set(model.sources), model.id
        used |= set(model.sources.values())
    assert used == set(SOURCES)
    assert all(source.at.startswith("https://") for source in SOURCES.values())


@EACH
def test_a_licence_is_spelled_as_spdx_has_it_or_named_and_its_terms_are_here(model: Model) -> None:
    if model.licence is None:
        assert model.commercial_use == "unknown"
        return
    assert model.licence in SPDX or NAMED.match(model.licence), model.licence
    assert model.commercial_use == LICENCES[model.licence].commercial_use


def test_every_licence_is_used_and_says_its_conditions() -> None:
    assert set(LICENCES) == {model.licence for model in CATALOGUE.models} - {None}
    assert all(licence.conditions or licence.commercial_use == "yes" for licence in LICENCES.values())


@EACH
def test_the_parsers_are_those_that_vllm_has(model: Model) -> None:
    assert model.tool_parser is None or model.tool_parser in TOOL_PARSERS
    assert model.reasoning_parser is None or model.reasoning_parser in REASONING_PARSERS
    assert model.tool_parser is None or model.capabilities.tools is True


@EACH
def test_it_can_be_found_by_the_name_on_hugging_face(model: Model) -> None:
    assert CATALOGUE.resolve(model.hf_repo) is model
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", model.hf_repo)


@EACH
def test_kind_purpose_and_modalities_agree(model: Model) -> None:
    if model.kind == "chat":
        assert model.purpose in ("chat", "code", "reasoning", "vision")
        assert model.purpose != "vision" or model.capabilities.vision is True
        assert model.items_per_fare == 1
    else:
        assert model.purpose == model.kind
        assert (model.items_per_fare == 1) is (model.kind == "audio")
    assert model.inputs is None or ("image" in model.inputs) is (model.capabilities.vision is True)


@EACH
def test_what_is_active_is_no_more_than_all(model: Model) -> None:
    if model.parameters is not None and model.active_parameters is not None:
        assert parameter_count(model.active_parameters) <= parameter_count(model.parameters)


def test_parameters_are_read_as_people_write_them() -> None:
    assert [parameter_count(written) for written in ("135M", "70.55B", "2.4T")] == [135 * 10**6, 70_550_000_000, 24 * 10**11]


def test_hidden_are_those_that_no_admin_has_accepted() -> None:
    hidden = CATALOGUE.hidden(())
    assert {"minimax-m2.7", "kimi-k3", "jina-reranker-m0"} <= hidden
    assert not hidden & {"llama-3.3-70b-instruct", "kimi-k2.6", "qwen3-8b"}
    assert CATALOGUE.hidden(["MiniMaxAI/MiniMax-M2.7"]) == hidden - {"minimax-m2.7"}
