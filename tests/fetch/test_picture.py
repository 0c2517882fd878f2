"""An image is what its first bytes say, and its size is known before anybody decodes it."""

import contextlib
import struct
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fetch.picture import NotAnImage, picture


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(9)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def jpeg(width: int, height: int, before: bytes = b"\xff\xe0\x00\x04ab\xff\xff\xe1\x00\x02\xff\x01") -> bytes:
    return b"\xff\xd8" + before + b"\xff\xc2\x00\x0b\x08" + struct.pack(">HH", height, width) + bytes(4)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\x00\x00\x00\x00WEBP" + kind + struct.pack("<I", len(body)) + body


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height))


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(5))


def extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


MAKERS = [(png, "image/png"), (gif, "image/gif"), (jpeg, "image/jpeg"), (lossy, "image/webp"), (lossless, "image/webp"),
          (extended, "image/webp")]  # fmt: skip


@pytest.mark.parametrize(("make", "kind"), MAKERS)
def test_the_kind_and_the_limit_of_pixels(make: Callable[[int, int], bytes], kind: str) -> None:
    found = picture(make(640, 480))
    assert (found.media_type, found.data) == (kind, make(640, 480))
    with pytest.raises(NotAnImage, match="12000 x 13000; the limit"):
        picture(make(12_000, 13_000))


@pytest.mark.parametrize(
    "data",
    [png(0, 5), png(5, 0), gif(0, 1), jpeg(1, 0), png(1, 1)[:20], lossy(1, 1)[:25], webp(b"VP8 ", bytes(10)), jpeg(1, 1)[:20],
     b"\xff\xd8\xff" + bytes(30), webp(b"ALPH", bytes(10))],
)  # fmt: skip
def test_a_header_without_a_size_is_broken(data: bytes) -> None:
    with pytest.raises(NotAnImage, match="broken"):
        picture(data)


def test_a_jpeg_of_millions_of_segments_holds_nobody_up() -> None:
    started = time.process_time()
    for filling in (b"\xff\xe0\x00\x02" * 5_000_000, b"\xff" * 20_000_000, b"\xff\x01" * 10_000_000):
        with pytest.raises(NotAnImage, match="broken"):
            picture(jpeg(1, 1, filling))
    assert time.process_time() - started < 1


@given(st.sampled_from([make(640, 480) for make, _ in MAKERS]), st.binary(max_size=40), st.integers(0, 60))
def test_no_bytes_upset_it(good: bytes, noise: bytes, at: int) -> None:
    with contextlib.suppress(NotAnImage):
        picture(good[:at] + noise + good[at + len(noise) :])
