"""A compressed body is decoded within bounds; a bomb, a cut and what is glued to its end are refused."""

import asyncio
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.body import read_body
from gateway.api.encodings import RATIO_MAX, STEP_IN_BYTES, STEP_OUT_BYTES, coding_of, decoded
from gateway.errors import Refusal

LIMIT = 32 * 1024 * 1024
JSON = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


CODINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("zstd", zstd.compress),
]
each_coding = pytest.mark.parametrize(("coding", "pack"), CODINGS, ids=["gzip", "deflate", "deflate without its head", "zstd"])


@contextmanager
def turns() -> Iterator[list[None]]:
    """Grows by one each time that another task has its turn."""
    taken: list[None] = []

    async def other() -> None:
        while True:
            taken.append(None)
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    yield taken
    running.cancel()


async def refused(body: bytes, coding: str, limit: int = LIMIT) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await decoded(body, coding, limit)
    return caught.value


@pytest.mark.parametrize(
    ("given", "coding"),
    [
        (None, ""),
        (b"", ""),
        (b"identity", ""),
        (b"GZIP", "gzip"),
        (b" x-gzip ", "gzip"),
        (b"deflate", "deflate"),
        (b"zstd", "zstd"),
    ],
)
def test_a_coding_is_known_in_every_spelling(given: bytes | None, coding: str) -> None:
    assert coding_of(given) == coding


@pytest.mark.parametrize("given", [b"br", b"gzip, zstd", b"zstd, identity", b"gzip,gzip", b"aes128gcm", b"x" * 9000])
def test_another_coding_and_several_are_415_with_those_that_are_taken(given: bytes) -> None:
    with pytest.raises(Refusal, match="gzip, deflate, zstd") as caught:
        coding_of(given)
    assert (caught.value.status, caught.value.code) == (415, "unsupported_content_encoding")
    assert len(caught.value.message) < 200


async def test_another_coding_is_refused_before_the_body_is_read() -> None:
    async def receive() -> object:
        pytest.fail("the body was asked for")

    with pytest.raises(Refusal):
        await read_body(receive, {b"content-encoding": b"br"}, LIMIT)


@each_coding
async def test_codex_sends_zstd_and_the_body_is_read_as_if_it_were_plain(coding: str, pack: Callable[[bytes], bytes]) -> None:
    """zyycn/codex-proxy-rs#66: 400 invalid JSON on long sessions."""
    parts = [pack(JSON)[:10], pack(JSON)[10:]]

    async def receive() -> object:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    assert await read_body(receive, {b"content-encoding": coding.encode()}, LIMIT) == JSON


@given(st.binary(max_size=4 * STEP_OUT_BYTES), st.sampled_from(CODINGS))
def test_any_body_comes_back_whole(body: bytes, coding: tuple[str, Callable[[bytes], bytes]]) -> None:
    assert asyncio.run(decoded(coding[1](body), coding[0], LIMIT)) == body


@each_coding
async def test_a_body_of_many_steps_comes_back_whole(coding: str, pack: Callable[[bytes], bytes]) -> None:
    body = os.urandom(300_000) + b"a b c " * 100_000 + os.urandom(300_000)
    assert await decoded(pack(body), coding, LIMIT) == body


@each_coding
async def test_a_body_over_the_limit_is_413_by_its_decoded_size(coding: str, pack: Callable[[bytes], bytes]) -> None:
    body = os.urandom(1000) * 3
    assert await decoded(pack(body), coding, 3000) == body
    refusal = await refused(pack(body), coding, 2999)
    assert (refusal.status, refusal.code) == (413, "request_too_large")
    assert "2999 bytes" in refusal.message


@each_coding
async def test_a_bomb_is_not_decoded_on(coding: str, pack: Callable[[bytes], bytes]) -> None:
    """64 MiB of one letter: given up when the slice that was fed has swelled to a hundred of them."""
    bomb = pack(b"a" * 2**26)
    with turns() as taken:
        refusal = await refused(bomb, coding, 2**29)
    assert (refusal.status, refusal.code) == (400, "compression_ratio_exceeded")
    assert len(taken) <= RATIO_MAX * STEP_IN_BYTES // STEP_OUT_BYTES + 2


@each_coding
async def test_text_that_repeats_itself_is_no_bomb_while_it_is_small(coding: str, pack: Callable[[bytes], bytes]) -> None:
    body = b'{"a":"' + b"x" * 1_000_000 + b'"}'
    assert await decoded(pack(body), coding, LIMIT) == body


@each_coding
@pytest.mark.parametrize("cut", [0, 1, 5, -1])
async def test_a_body_that_was_cut_is_refused(coding: str, pack: Callable[[bytes], bytes], cut: int) -> None:
    refusal = await refused(pack(JSON)[:cut], coding)
    assert (refusal.status, refusal.code) == (400, "invalid_content_encoding")


@each_coding
@pytest.mark.parametrize("tail", ["x", "a second frame", "far behind"])
async def test_what_is_glued_to_the_end_is_refused(coding: str, pack: Callable[[bytes], bytes], tail: str) -> None:
    """Two readers could take the one or the other for the body."""
    glued = {"x": b"x", "a second frame": pack(b'{"model": "other"}'), "far behind": b"\0" * 200_000}[tail]
    refusal = await refused(pack(JSON) + glued, coding)
    assert (refusal.status, refusal.code) == (400, "invalid_content_encoding")


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("body", [JSON, b"\x1f\x8b\x08" + b"\xff" * 40, b"\x28\xb5\x2f\xfd" + b"\xff" * 40])
async def test_what_is_not_the_coding_that_it_says_is_400(coding: str, body: bytes) -> None:
    assert (await refused(body, coding)).status == 400


async def test_a_zstd_frame_that_asks_for_a_large_window_is_refused() -> None:
    """RFC 9659: 8 MiB; the frame would have us keep 128 MiB for it."""
    options: dict[int, int] = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.content_size_flag: 0}
    packer = zstd.ZstdCompressor(options=options)
    assert (await refused(packer.compress(b"abc") + packer.flush(), "zstd")).status == 400


async def test_others_have_their_turn_while_a_body_is_decoded() -> None:
    body = os.urandom(2**22)
    with turns() as taken:
        assert await decoded(gzip.compress(body, 1), "gzip", LIMIT) == body
    assert len(taken) >= 2**22 // STEP_OUT_BYTES
