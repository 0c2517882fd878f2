"""Each account's prompts find its own prefix cache in an engine, and nobody else's."""

import re

import orjson
import pytest

from backends.dedicated import Way
from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica
from gateway.api.call import read_call
from gateway.api.edits import engine_body
from gateway.api.endpoints import ENDPOINTS
from gateway.api.order import Order
from gateway.api.salts import SALT_FIELDS, Salts
from gateway.limits.policy import Numbers
from models.catalogue import Catalogue

PEPPER = "pepper"
BODIES: dict[str, dict[str, object]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "completions": {"prompt": "hi"},
    "responses": {"input": "hi"},
    "messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    "embeddings": {"input": "hi"},
    "rerank": {"query": "hi", "documents": ["hi"]},
    "score": {"text_1": "hi", "text_2": "hi"},
}


def sent(kind: str, account: str, salts: Salts, endpoint: str = "chat") -> dict[str, object]:
    replica = Replica.at("http://127.0.0.1:1", name="r", model="m", engine=ENGINE_KINDS[kind], slots=1)
    model = Catalogue.load().resolve("smollm2-135m-instruct")
    order = Order(model, [Way("m", [replica])], 1, None, None, account=account, key="k", service_class="pro", numbers=Numbers())
    # What a client says of it is taken out.
    body = {"model": "m", **BODIES[endpoint], "cache_salt": "mine", "extra_key": "mine"}
    [found] = [each for each in ENDPOINTS if each.name == endpoint]
    read: dict[str, object] = orjson.loads(engine_body(read_call(found, body, 0), order, replica, salts))
    return read


@pytest.mark.parametrize("endpoint", BODIES)
def test_an_account_has_a_salt_of_its_own_at_every_endpoint(endpoint: str) -> None:
    salts = Salts(PEPPER, shared=False)
    mine, theirs = (sent("vllm", account, salts, endpoint) for account in ("mine", "theirs"))
    assert mine["cache_salt"] != theirs["cache_salt"]
    assert re.fullmatch("[0-9a-f]{32}", str(mine["cache_salt"]))
    assert "extra_key" not in mine


def test_it_is_the_same_on_every_gateway_and_not_to_be_guessed() -> None:
    salt = sent("vllm", "a", Salts(PEPPER, shared=False))["cache_salt"]
    assert salt == sent("vllm", "a", Salts(PEPPER, shared=False))["cache_salt"]
    assert salt != sent("vllm", "a", Salts("another", shared=False))["cache_salt"]


def test_each_kind_by_the_name_that_it_knows() -> None:
    salts = Salts(PEPPER, shared=False)
    found = {kind: {"cache_salt", "extra_key"} & sent(kind, "a", salts).keys() for kind in ENGINE_KINDS}
    assert found == {kind: {SALT_FIELDS[kind]} if kind in SALT_FIELDS else set() for kind in ENGINE_KINDS}


def test_an_operator_may_share_one_cache_between_all() -> None:
    for kind in SALT_FIELDS:
        assert {"cache_salt", "extra_key"}.isdisjoint(sent(kind, "a", Salts(PEPPER, shared=True)))
