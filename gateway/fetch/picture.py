"""What an image is, by its first bytes and not by what a server says: its kind, and its size before anybody decodes it."""

from dataclasses import dataclass

# A few kilobytes of a compressed image can unfold to gigabytes in an engine; phones' largest pictures are about 50 million.
PIXELS_MAX = 64 * 1024 * 1024
# So many bytes tell the kind.
MAGIC_BYTES = 12
_PNG = b"\x89PNG\r\n\x1a\n"
# Start-of-frame markers of JPEG (ITU T.81, table B.1): C0 to CF but for DHT, JPG and DAC.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset((0x01, *range(0xD0, 0xD8)))
# Before its frame an image has some dozens; a made-up one could have millions, and everybody waits while they are walked.
_JPEG_SEGMENTS_MAX = 4096


class NotAnImage(Exception):
    """It is none that is taken here, or a broken or too large one; the words say which."""


@dataclass(frozen=True, slots=True)
class Picture:
    media_type: str
    data: bytes


def media_type(start: bytes) -> str:
    """From its first `MAGIC_BYTES`. Raises: NotAnImage."""
    if start.startswith(_PNG):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    raise NotAnImage("what came is not a PNG, JPEG, WebP or GIF image")


def picture(data: bytes) -> Picture:
    """Raises: NotAnImage."""
    kind = media_type(data[:MAGIC_BYTES])
    width, height = _SIZES[kind](data)
    if not width or not height:
        raise NotAnImage("the image's header is broken")
    if width * height > PIXELS_MAX:
        raise NotAnImage(f"the image is {width} x {height}; the limit is {PIXELS_MAX:,} pixels")
    return Picture(kind, data)


def _png(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        return 0, 0
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _gif(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _webp(data: bytes) -> tuple[int, int]:
    """The first chunk: lossy, lossless, or the extended header with its canvas (RFC 9649)."""
    kind, body = data[12:16], data[20:30]
    if len(body) < 10:
        return 0, 0
    if kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
    if kind == b"VP8L" and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    return 0, 0


def _jpeg(data: bytes) -> tuple[int, int]:
    """From segment to segment up to the first frame's header."""
    at = 2
    for _ in range(_JPEG_SEGMENTS_MAX):
        if at + 9 > len(data) or data[at] != 0xFF:
            break
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker in _JPEG_FRAMES:
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return 0, 0


_SIZES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
