"""The model list in Anthropic's shape: what this key may use, page by page."""

from dataclasses import replace
from typing import Any

import pytest

from backends.engines.vllm import VLLM
from backends.fleet import Replica
from billing.plans import DEFAULT_PLANS
from gateway.api.message_models import model_info, model_page
from gateway.errors import Refusal
from gateway.menu import Menu
from models.catalogue import Catalogue, ModelUnknown
from tests.access.test_caller import CALLER

ENTRY = (
    '[[model]]\nid = "{0}"\nname = "The {0}"\naliases = [{1}]\nhf_repo = "x/{0}"\nkind = "chat"\ntier = "{2}"\ncontext = 4096\n'
    'sources = {{ context = "x" }}\n'
)
TEXT = "".join(
    [
        ENTRY.format("a", "", "free"),
        ENTRY.format("b", '"claude-of-ours", "other"', "free"),
        ENTRY.format("c", "", "premium"),
        ENTRY.format("d", '"anthropic/d"', "free"),
        ENTRY.format("not-served", "", "free"),
    ]
)
POOLS = {name: [Replica.at("http://127.0.0.1:1", name=f"r{name}", model=name, engine=VLLM, slots=1)] for name in "abcd"}
MENU = Menu(Catalogue.load(TEXT), POOLS)


def page(**query: str) -> dict[str, Any]:
    return model_page(MENU, CALLER, query)


def ids(found: dict[str, Any]) -> list[str]:
    return [card["id"] for card in found["data"]]


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "ten", "9" * 5000])
def test_a_limit_that_is_none_is_the_clients_mistake(limit: str) -> None:
    """One of five thousand digits was a 500: Python reads no such numbers."""
    with pytest.raises(Refusal, match="limit must be"):
        page(limit=limit)


def test_it_lists_what_the_plan_opens_and_aliases_that_claude_code_looks_for() -> None:
    found = page(limit="1000")
    assert ids(found) == ["a", "b", "claude-of-ours", "d", "anthropic/d"]
    assert (found["has_more"], found["first_id"], found["last_id"]) == (False, "a", "anthropic/d")
    assert found["data"][2] == {
        "type": "model",
        "id": "claude-of-ours",
        "display_name": "The b",
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 4096,
    }


def test_a_key_with_a_list_of_models_sees_those() -> None:
    narrow = replace(CALLER, allowed_models=frozenset({"b"}), plan=DEFAULT_PLANS[3])
    assert ids(model_page(MENU, narrow, {})) == ["b", "claude-of-ours"]
    assert page(limit="1")["has_more"] is True


@pytest.mark.parametrize(
    ("query", "found", "has_more"),
    [
        ({"limit": "2"}, ["a", "b"], True),
        ({"limit": "2", "after_id": "b"}, ["claude-of-ours", "d"], True),
        ({"limit": "2", "after_id": "d"}, ["anthropic/d"], False),
        ({"after_id": "anthropic/d"}, [], False),
        ({"limit": "2", "before_id": "anthropic/d"}, ["claude-of-ours", "d"], True),
        ({"limit": "9", "before_id": "d"}, ["a", "b", "claude-of-ours"], False),
    ],
)
def test_pages_go_both_ways(query: dict[str, str], found: list[str], has_more: bool) -> None:
    got = page(**query)
    assert (ids(got), got["has_more"]) == (found, has_more)
    assert (got["first_id"], got["last_id"]) == ((found[0], found[-1]) if found else (None, None))


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "1001"}, {"limit": "-1"}, {"limit": "x"}, {"after_id": "c"}, {"before_id": ""}]
)
def test_a_page_that_is_not_there_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Refusal) as caught:
        page(**query)
    assert (caught.value.status, caught.value.param) == (400, next(iter(query)))


def test_one_model_by_any_of_its_names() -> None:
    assert model_info(MENU, CALLER, "claude-of-ours")["id"] == "b"
    with pytest.raises(ModelUnknown):
        model_info(MENU, CALLER, "claude-sonnet")
