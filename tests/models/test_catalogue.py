"""The catalogue: names resolve to models, near names are offered, and what cannot be is refused."""

from datetime import date

import pytest
from pydantic import ValidationError

from models.catalogue import Catalogue, CatalogueWrong, ModelUnknown

CATALOGUE = Catalogue.load()
ENTRY = '[[model]]\nid = "{0}"\nname = "x"\nhf_repo = "x/x"\nkind = "chat"\ntier = "free"\nsources = {{}}\n'


def test_it_has_the_model_that_a_local_run_serves() -> None:
    model = CATALOGUE.resolve("smollm2-135m-instruct")
    assert (model.tier, model.fare, model.kind) == ("free", 1, "chat")


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


def test_two_models_with_one_name_are_refused() -> None:
    with pytest.raises(CatalogueWrong, match="both a and a"):
        Catalogue.load(ENTRY.format("a") + ENTRY.format("a"))
    with pytest.raises(CatalogueWrong, match="answer to 'a'"):
        Catalogue.load(ENTRY.format("a") + ENTRY.format("b") + 'aliases = ["A"]\n')


def test_a_successor_is_a_model_that_is_there() -> None:
    with pytest.raises(CatalogueWrong, match="a is to be followed by 'b', which is no model here"):
        Catalogue.load(ENTRY.format("a") + 'successor = "b"\n')
    found = Catalogue.load(ENTRY.format("a") + 'retires = 2027-01-31\nsuccessor = "b"\n' + ENTRY.format("b"))
    assert (found.models[0].retires, found.models[0].successor) == (date(2027, 1, 31), "b")


def test_commercial_use_is_what_the_licence_says_and_unknown_without_one() -> None:
    found = Catalogue.load(ENTRY.format("a") + 'licence = "MIT"\n' + ENTRY.format("b") + 'licence = "Ours"\n' + ENTRY.format("c"))
    assert [model.commercial_use for model in found.models] == ["yes", "unknown", "unknown"]
    assert found.hidden(["c"]) == {"b"}
    with pytest.raises(ModelUnknown):
        found.hidden(["d"])


@pytest.mark.parametrize("more", ["fare = 0", 'parameters = "70 billion"', "context = -1", 'tier = "gold"', "colour = 1"])
def test_what_no_model_can_be_is_refused(more: str) -> None:
    text = ENTRY.format("a").replace('tier = "free"\n', "") if more.startswith("tier") else ENTRY.format("a")
    with pytest.raises(ValidationError):
        Catalogue.load(text + more + "\n")
