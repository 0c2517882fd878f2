"""A path that clients are known to build by mistake is brought to the one that is served; every other stays as it came."""

import pytest

from gateway.api.endpoints import PAID
from gateway.api.paths import mended
from tests.security.attacker import cpu_seconds

CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("written", "served"),
    [
        # openai-python and -node pass a base URL's slashes through; bricks-cloud/BricksLLM#45 has the doubled version.
        ("//v1/chat/completions", CHAT),
        ("/v1//chat/completions/", CHAT),
        ("/v1/v1/chat/completions", CHAT),
        ("/v1/v1/v1//chat/completions", CHAT),
        ("/chat/completions", CHAT),
        ("/chat/completions/", CHAT),
        # continuedev/continue#919, #3620, #3759: autocomplete.
        ("/completions", "/v1/completions"),
        # open-webui#3676: the provider's model list.
        ("/models", "/v1/models"),
        ("/v1/models/", "/v1/models"),
        ("/v1/v1/models", "/v1/models"),
        ("/key", "/v1/key"),
        ("//healthz", "/healthz"),
        ("/readyz/", "/readyz"),
        ("/models/smollm2", "/v1/models/smollm2"),
        ("/v1/models/meta%2Fllama", "/v1/models/meta/llama"),
        ("/v1/models/meta/llama", "/v1/models/meta/llama"),
    ],
)
def test_what_clients_build_is_served(written: str, served: str) -> None:
    assert mended(written) == served


@pytest.mark.parametrize("path", [*PAID, "/v1/models", "/v1/key", "/healthz", "/readyz"])
def test_each_served_path_is_found_without_its_version_doubled_and_with_slashes(path: str) -> None:
    """Continue's `new URL("rerank", base)` drops the version."""
    assert mended(path) == path
    assert mended(path + "/") == path
    assert mended("/" + path) == path
    if path.startswith("/v1/"):
        assert mended(path.removeprefix("/v1")) == path
        assert mended("/v1" + path) == path


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "*",
        "/v1",
        "/v1/images/generations",
        "/v1/../v1/chat/completions",
        "/v1/./chat/completions",
        "/v1/%2e%2e/v1/chat/completions",
        "/v1/chat%2Fcompletions",
        "/v1%2Fchat/completions",
        "/%76%31/chat/completions",
        "/v1/chat/completions%00",
        "/v1/chat/completions%20",
        "/v1/models/../key",
        "/v1/models/%2e%2e/key",
        "/v1/models/..%2fkey",
        "/v1/models/a%00b",
        "/v1/models/%0d%0aset-cookie:a",
        "/v1/healthz",
        "/V1/Chat/Completions",
        "/openai/v1/chat/completions",
        "/v1\\chat\\completions",
    ],
)
def test_what_could_be_read_as_two_paths_stays_as_it_came(target: str) -> None:
    assert mended(target) == target
    assert target not in PAID


def test_a_version_twenty_thousand_times_over_holds_nobody_up() -> None:
    """It took a second of everybody's time, and nobody needs a key to ask for it."""
    assert cpu_seconds(lambda: mended("/v1" * 20_000)) < 0.1
