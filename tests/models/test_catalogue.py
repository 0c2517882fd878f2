"""The catalogue: names resolve to models, near names are offered, and no figure is without its source."""

import pytest
from pydantic import ValidationError

from billing.plans import TIERS
from models.catalogue import Catalogue, CatalogueWrong, ModelUnknown

CATALOGUE = Catalogue.load()
ENTRY = '[[model]]\nid = "{0}"\nname = "x"\nhf_repo = "x/x"\nkind = "chat"\ntier = "free"\nsources = {{}}\n'


def test_it_has_the_model_that_a_local_run_serves() -> None:
    model = CATALOGUE.resolve("smollm2-135m-instruct")
    assert (model.tier, model.fare, model.kind) == ("free", 1, "chat")
    assert len(CATALOGUE.models) >= 9


@pytest.mark.parametrize("name", ["gpt-oss-20b", "GPT-OSS-20B", "openai/gpt-oss-20b", "OpenAI/GPT-OSS-20b"])
def test_id_and_alias_resolve_without_regard_to_case(name: str) -> None:
    assert CATALOGUE.resolve(name).id == "gpt-oss-20b"


@pytest.mark.parametrize(
    ("name", "near"),
    [("gpt-oss-2b", "gpt-oss-20b"), ("smollm2-135m", "smollm2-135m-instruct"), ("llama-3.3-70b", "llama-3.3-70b-instruct")],
)
def test_near_names_are_offered(name: str, near: str) -> None:
    with pytest.raises(ModelUnknown, match="Did you mean") as unknown:
        CATALOGUE.resolve(name)
    assert unknown.value.name == name
    assert near in unknown.value.near


@pytest.mark.parametrize("name", ["", "zzzz", "x" * 1_000_000, "\x00", "日本"])
def test_a_name_that_is_near_nothing_gets_no_offer(name: str) -> None:
    with pytest.raises(ModelUnknown) as unknown:
        CATALOGUE.resolve(name)
    assert unknown.value.near == []
    assert len(str(unknown.value)) < 200


def test_served_are_those_with_a_pool() -> None:
    assert [model.id for model in CATALOGUE.served({"gpt-oss-20b", "unheard-of"})] == ["gpt-oss-20b"]


def test_every_fact_names_its_source() -> None:
    for model in CATALOGUE.models:
        capabilities = {name for name, value in model.capabilities.model_dump().items() if value is not None}
        facts = {name for name in ("context", "parameters", "licence") if getattr(model, name) is not None}
        assert capabilities | facts == set(model.sources), model.id


def test_tiers_are_those_that_plans_open() -> None:
    assert {model.tier for model in CATALOGUE.models} == set(TIERS)


def test_two_models_with_one_name_are_refused() -> None:
    with pytest.raises(CatalogueWrong, match="both a and a"):
        Catalogue.load(ENTRY.format("a") + ENTRY.format("a"))
    with pytest.raises(CatalogueWrong, match="answer to 'a'"):
        Catalogue.load(ENTRY.format("a") + ENTRY.format("b") + 'aliases = ["A"]\n')


@pytest.mark.parametrize("more", ["fare = 0", "context = -1", 'tier = "gold"', "colour = 1"])
def test_what_no_model_can_be_is_refused(more: str) -> None:
    text = ENTRY.format("a").replace('tier = "free"\n', "") if more.startswith("tier") else ENTRY.format("a")
    with pytest.raises(ValidationError):
        Catalogue.load(text + more + "\n")
