"""Whatever shape an engine's error has, a client is told in one envelope: whose fault it is, and in whose words."""

import orjson
import pytest

from gateway.api.faults import EngineFailed, EngineOverloaded, EngineRefused, raise_status
from gateway.api.refusals import refusal_of
from gateway.errors import Refusal

# Today's vLLM, its older releases, FastAPI under it, llama.cpp, TGI, an engine's own page, a proxy's page, nothing.
SHAPES = [
    (b'{"error":{"message":"why","type":"BadRequestError","param":null,"code":400}}', "why"),
    (b'{"object":"error","message":"why","type":"BadRequestError","param":null,"code":400}', "why"),
    (b'{"detail":"why"}', "why"),
    (b'{"detail":[{"loc":["body","n"],"msg":"why"}]}', "why"),
    (b'{"error":{"code":400,"message":"why","type":"invalid_request_error"}}', "why"),
    (b'{"error":"why","error_type":"validation"}', "why"),
    (b'{"message":"why"}', "why"),
    (b'["why"]', "why"),
    (b"why", "why"),
    (b"<html><body>why</body></html>", "why"),
    (b"", "refused the request"),
    (b"\xff\xfe", "\ufffd"),
]


def told(status: int, body: bytes) -> Refusal:
    try:
        raise_status(status, body)
    except (EngineFailed, EngineOverloaded, EngineRefused) as error:
        return refusal_of(error, 0)
    raise AssertionError("not an error")


@pytest.mark.parametrize(("body", "words"), SHAPES)
@pytest.mark.parametrize("status", [400, 405, 413, 415, 422])
def test_an_engines_no_is_a_400_in_one_envelope_and_in_its_words(status: int, body: bytes, words: str) -> None:
    """nvcf#1690, speech-swift#273: in another shape its words are lost, and SDKs say "Error code: 400" alone."""
    refusal = told(status, body)
    error = orjson.loads(refusal.body())["error"]
    assert refusal.status == 400
    assert error.keys() == {"message", "type", "param", "code"}
    assert words in error["message"]


def test_the_field_that_an_engine_names_is_told() -> None:
    body = b'{"error":{"message":"minimum is not supported","param":"response_format","code":400}}'
    assert told(400, body).param == "response_format"


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 2048 tokens. However, you requested 4096 tokens (2000 in the messages, 2096).",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_too_much_for_the_context_has_openais_code_whatever_the_engine_calls_it(words: str) -> None:
    """ogx#4534: an old envelope, and clients that shorten by themselves did not know why."""
    assert told(400, orjson.dumps({"object": "error", "message": words})).code == "context_length_exceeded"


@pytest.mark.parametrize(
    ("status", "answer"),
    [(401, 502), (403, 502), (404, 502), (302, 502), (500, 502), (501, 502), (504, 502), (429, 503), (503, 503)],
)
def test_what_is_our_fault_or_the_engines_is_never_the_clients(status: int, answer: int) -> None:
    """An engine's 401 passed on would send its reader to look at a key that is right."""
    refusal = told(status, b'{"error":{"message":"the prompt was: secret"}}')
    assert refusal.status == answer
    assert "secret" not in refusal.message
