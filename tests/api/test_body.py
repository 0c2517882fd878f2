"""A body is read within bounds, parsed once, and refused with words that say what to change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.body import ClientGone, parse_object, read_body
from gateway.errors import Refusal

LIMIT = 1000


def receiving(*messages: Any) -> Any:
    waiting = list(messages)

    async def receive() -> Any:
        return waiting.pop(0)

    return receive


def part(body: bytes, *, more: bool = False) -> Any:
    return {"type": "http.request", "body": body, "more_body": more}


async def refused(*messages: Any, headers: dict[bytes, bytes] | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await read_body(receiving(*messages), headers or {}, LIMIT)
    return caught.value


async def test_a_body_in_parts_is_put_together() -> None:
    assert await read_body(receiving(part(b"ab", more=True), part(b"cd")), {}, LIMIT) == b"abcd"


async def test_a_declared_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    refusal = await refused(headers={b"content-length": b"1001"})
    assert (refusal.status, refusal.code) == (413, "request_too_large")
    assert "1000 bytes" in refusal.message


async def test_an_undeclared_body_is_refused_as_soon_as_it_is_over_the_limit() -> None:
    assert (await refused(part(b"x" * 600, more=True), part(b"x" * 600, more=True))).status == 413
    assert (await refused(part(b"x" * 1001))).status == 413


async def test_a_client_that_leaves_while_it_sends() -> None:
    with pytest.raises(ClientGone):
        await read_body(receiving(part(b"{", more=True), {"type": "http.disconnect"}), {}, LIMIT)
    with pytest.raises(ClientGone):
        await read_body(receiving({"type": "http.disconnect"}), {}, LIMIT)


@pytest.mark.parametrize("kind", [b"text/plain", b"multipart/form-data; boundary=x", b"application/x-www-form-urlencoded"])
async def test_another_content_type_is_refused_by_name(kind: bytes) -> None:
    refusal = await refused(part(b"{}"), headers={b"content-type": kind})
    assert refusal.status == 415
    assert kind.split(b";")[0].decode() in refusal.message


@pytest.mark.parametrize("kind", [b"application/json", b"Application/JSON; charset=utf-8", b"application/problem+json"])
async def test_json_of_any_spelling_is_taken(kind: bytes) -> None:
    assert await read_body(receiving(part(b"{}")), {b"content-type": kind}, LIMIT) == b"{}"


@pytest.mark.parametrize(
    ("raw", "code", "words"),
    [
        (b"", "invalid_json", "empty"),
        (b"   ", "invalid_json", "empty"),
        (b"[1]", "invalid_json", "an array"),
        (b'"x"', "invalid_json", "a string"),
        (b"null", "invalid_json", "null"),
        (b"12", "invalid_json", "a number"),
        (b'{"a": 1,}', "invalid_json", "line 1, column"),
        (b'{"a": NaN}', "invalid_json", "not valid JSON"),
        (b'{"a": "\xff"}', "invalid_utf8", "byte 7"),
        (b'{"a":' + b"[" * 2000, "invalid_json", "depth"),
        (b'{"a":[' + b"[]," * 300_000 + b"0]}", "request_too_complex", "commas and brackets"),
        (b'{"a": 1, "b": 2, "a": 3}', "duplicate_key", "'a' appears twice"),
        (b'{"x": [{"b": 1, "b": 1}]}', "duplicate_key", "'b' appears twice"),
        # An escaped quotation mark must not hide that a key was dropped.
        (b'{"a": "\\u0022\\u0022", "a": ""}', "duplicate_key", "'a' appears twice"),
    ],
)
def test_what_is_not_a_json_object_is_refused_precisely(raw: bytes, code: str, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_object(raw)
    assert caught.value.status == 400
    assert caught.value.code == code
    assert words in caught.value.message


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), _VALUES, max_size=5), st.booleans())
def test_any_object_without_repeated_keys_is_taken(value: dict[str, Any], ascii_only: bool) -> None:
    import json

    assert parse_object(json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")) == value


@given(st.text(), _VALUES, _VALUES)
def test_any_repeated_key_is_found(key: str, first: Any, second: Any) -> None:
    import json

    name = json.dumps(key)
    raw = f"{{{name}: {json.dumps(first)}, {name}: {json.dumps(second)}}}".encode()
    with pytest.raises(Refusal, match="appears twice"):
        parse_object(raw)
