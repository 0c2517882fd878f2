"""Server-sent events as bytes: where frames end, and what is in one."""

import re
from collections.abc import Callable, Iterable

# Further blank lines belong to the frame before them.
_FRAME_END = re.compile(rb"(?:\r?\n){2,}")
# The longest thing that ends a frame.
_END_BYTES = 4
# A frame larger than this is not something an engine sends; a limit keeps a broken one from filling our memory.
FRAME_LIMIT_BYTES = 16 * 1024 * 1024


class StreamBroke(Exception):
    """The engine's answer can't be carried on: an error frame, no finish, or not what was asked for at all.

    `before` is what the client would have got of the frames that came before it in the same read.
    """

    before = b""


class Frames:
    """Whole frames out of what arrives. What a read leaves over is searched once: a large frame in many small reads would
    otherwise take the square of its size."""

    __slots__ = ("_tail",)

    def __init__(self) -> None:
        self._tail = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Every frame that is whole by now. Raises: StreamBroke when one is over the limit."""
        tail = self._tail
        if not tail:
            if data.endswith(b"\n\n"):
                return data
            whole, rest = whole_frames(data)
        else:
            edge = bytes(tail[1 - _END_BYTES :])  # an end may have begun there
            ended, rest = whole_frames(edge + data)
            if ended:
                whole = bytes(tail) + ended[len(edge) :]
                tail.clear()
            else:
                whole, rest = b"", data
        tail += rest
        if len(tail) > FRAME_LIMIT_BYTES:
            raise StreamBroke(f"the engine sent a frame of over {FRAME_LIMIT_BYTES} bytes")
        return whole

    @property
    def rest(self) -> bytes:
        """What has not ended yet."""
        return bytes(self._tail)


def whole_frames(data: bytes) -> tuple[bytes, bytes]:
    """Data up to the last frame's end, and the rest."""
    end = data.rfind(b"\n\n")
    cut = end + 2 if end >= 0 else 0
    crlf = data.rfind(b"\r\n\r\n")
    if crlf >= 0:
        cut = max(cut, crlf + 4)
    return (data, b"") if cut == len(data) else (data[:cut], data[cut:])


def split(whole: bytes) -> list[bytes]:
    frames, start = [], 0
    for end in _FRAME_END.finditer(whole):
        frames.append(whole[start : end.end()])
        start = end.end()
    return frames


def each(frames: Iterable[bytes], look: Callable[[bytes], bytes]) -> bytes:
    """What the client gets of all frames. Raises: StreamBroke, with what it gets of those before the one that broke."""
    got = []
    try:
        for frame in frames:
            got.append(look(frame))  # noqa: PERF401 - those before the one that breaks are needed
    except StreamBroke as broke:
        broke.before = b"".join(got)
        raise
    return b"".join(got)


def payload(frame: bytes) -> bytes | None:
    """The data of a frame; None for a comment or an empty one."""
    lines = [line[5:].strip() for line in frame.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None
