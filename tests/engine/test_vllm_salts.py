"""On a real vLLM: an account finds its own prompts in the engine's prefix cache, and nobody else's."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest

from tests.engine.vllm import CHAT, CONTEXT_TOKENS, Vllm
from tests.support.gateway import Customer, Town, town
from tests.support.services import PostgresServer, running_valkey

pytestmark = pytest.mark.engine

# On CPUs its blocks have 128 tokens, and the last one is always computed.
WORDS = 300
PATHS: dict[str, Callable[[str], dict[str, Any]]] = {
    "/v1/chat/completions": lambda text: {"messages": [{"role": "user", "content": text}], "max_tokens": 1},
    "/v1/completions": lambda text: {"prompt": text, "max_tokens": 1},
    "/v1/responses": lambda text: {"input": text, "max_output_tokens": 16},
    "/v1/messages": lambda text: {"messages": [{"role": "user", "content": text}], "max_tokens": 1},
}

Build = Callable[[str], Town]


@pytest.fixture(scope="module")
def build(vllm: Vllm, postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Build]:
    """Gateways of their own in front of one engine; the text given stands before the replica in the fleet file."""
    entry = f'[[replica]]\nid = "chat"\nmodel = "{CHAT}"\nengine = "vllm"\nurl = "{vllm.url}"\nslots = 16\n'
    with ExitStack() as stack:

        def built(before: str) -> Town:
            url = stack.enter_context(postgres_server.database())
            valkey = stack.enter_context(running_valkey())
            fleet = f"{before}{entry}context = {CONTEXT_TOKENS}\n"
            found = stack.enter_context(town(url, valkey.url, tmp_path_factory.mktemp("salts"), fleet))
            found.standing = found.gateway()
            return found

        yield built


@pytest.fixture(scope="module")
def apart(build: Build) -> Town:
    return build("")


@pytest.fixture(scope="module")
def shared(build: Build) -> Town:
    return build("share_prefixes = true\n")


def cached(built: Town, customer: Customer, path: str, text: str) -> int:
    """Prompt tokens that the engine found, by its own word to the client."""
    body = {"model": CHAT, **PATHS[path](text)}
    answer = httpx2.post(f"{built.gateway().url}{path}", json=body, headers=customer.headers, timeout=120)
    assert answer.status_code == 200, answer.text
    usage: dict[str, Any] = answer.json()["usage"]
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    return int(details.get("cached_tokens") or usage.get("cache_read_input_tokens") or 0)


def words(name: str) -> str:
    return " ".join(f"{name}{number}" for number in range(WORDS))


@pytest.mark.parametrize("path", PATHS)
def test_two_accounts_with_one_prompt(apart: Town, path: str) -> None:
    text = words(path[4])
    mine, theirs = apart.key(), apart.key()
    assert cached(apart, mine, path, text) == 0
    assert cached(apart, theirs, path, text) == 0
    assert cached(apart, mine, path, text) >= 256
    assert cached(apart, theirs, path, text) >= 256


def test_where_the_operator_shares_prefixes_what_one_sent_helps_the_other(shared: Town) -> None:
    text = words("shared")
    assert cached(shared, shared.key(), "/v1/chat/completions", text) == 0
    assert cached(shared, shared.key(), "/v1/chat/completions", text) >= 256
