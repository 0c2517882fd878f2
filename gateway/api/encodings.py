"""A request's body out of its content coding: gzip, deflate or zstd, in slices, refused as soon as it swells."""

import asyncio
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from gateway.errors import Refusal

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# A text may well be repetitive, but no request is a hundred times larger than what was sent of it, once it is larger than this.
RATIO_MAX = 100
RATIO_COUNTS_FROM_BYTES = 1024 * 1024
# One step takes and makes so much at most: about a millisecond, then the loop has its turn.
STEP_IN_BYTES = 64 * 1024
STEP_OUT_BYTES = 256 * 1024
# RFC 9659: a zstd window in HTTP is at most 8 MiB. A frame may ask for gigabytes.
ZSTD_WINDOW_LOG = 23
_ALIASES = {"x-gzip": "gzip", "identity": ""}


class _Decoder(Protocol):
    """As the standard library's decompressors are since bz2: what was fed and not used up, it keeps."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Inflate:
    """zlib's decompressor hands back what it did not use; this one keeps it."""

    def __init__(self, first: bytes, *, gzip: bool) -> None:
        bits = zlib.MAX_WBITS if _has_zlib_head(first) else -zlib.MAX_WBITS
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 16 if gzip else bits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _has_zlib_head(first: bytes) -> bool:
    """RFC 1950. Some clients mean the bare RFC 1951 stream by "deflate", as browsers have to know."""
    return len(first) >= 2 and first[0] & 0x0F == 8 and (first[0] << 8 | first[1]) % 31 == 0


_DECODERS: Mapping[str, Callable[[bytes], _Decoder]] = {
    "gzip": lambda first: _Inflate(first, gzip=True),
    "deflate": lambda first: _Inflate(first, gzip=False),
    "zstd": lambda _: zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}),
}
TAKEN = ", ".join(_DECODERS)


def coding_of(given: bytes | None) -> str:
    """The one coding of a body, "" when it has none. Raises: Refusal (415), before anything is read."""
    if given is None:
        return ""
    named = given.decode("latin-1").strip().lower()
    named = _ALIASES.get(named, named)
    if named and named not in _DECODERS:
        what = "Several content codings on top of each other are" if "," in named else f"Content-Encoding {named[:40]!r} is"
        raise Refusal(
            415, f"{what} not taken; send the JSON body plain, or with one of {TAKEN}.", code="unsupported_content_encoding"
        )
    return named


async def decoded(body: bytes, coding: str, limit_bytes: int) -> bytes:
    """The body without its coding, which is not "". Raises: Refusal (413 over the limit; 400 for a bomb, a cut, or a tail)."""
    pieces, size, taken = [], 0, 0
    decoder = _DECODERS[coding](body[:2])
    try:
        for fed in _slices(body):
            taken += len(fed)
            for piece in _steps(decoder, fed):
                pieces.append(piece)
                size += len(piece)
                _check_size(size, taken, limit_bytes)
                await asyncio.sleep(0)
            if decoder.eof:
                break
    except (zlib.error, zstd.ZstdError, EOFError):
        raise _broken(coding, "can't be decoded") from None
    if not decoder.eof:
        raise _broken(coding, "ends too early")
    if decoder.unused_data or taken < len(body):
        raise _broken(coding, "goes on after its end")
    return b"".join(pieces)


def _slices(body: bytes) -> Iterator[bytes]:
    return (body[start : start + STEP_IN_BYTES] for start in range(0, len(body), STEP_IN_BYTES))


def _steps(decoder: _Decoder, data: bytes) -> Iterator[bytes]:
    yield decoder.decompress(data, STEP_OUT_BYTES)
    while not (decoder.eof or decoder.needs_input):
        yield decoder.decompress(b"", STEP_OUT_BYTES)


def _check_size(size: int, taken: int, limit_bytes: int) -> None:
    if size > limit_bytes:
        raise Refusal(
            413,
            f"The request body, decoded, is over the limit of {limit_bytes} bytes; send less in one request.",
            code="request_too_large",
        )
    if size > RATIO_COUNTS_FROM_BYTES and size > RATIO_MAX * taken:
        raise Refusal(
            400,
            f"The request body swells to more than {RATIO_MAX} times of what was sent; send it plain.",
            code="compression_ratio_exceeded",
        )


def _broken(coding: str, how: str) -> Refusal:
    return Refusal(400, f"The request body is said to be {coding}, but it {how}.", code="invalid_content_encoding")
