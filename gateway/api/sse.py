"""Server-sent events as bytes: where frames end, and what is in one."""

import re

_FRAME_END = re.compile(rb"\r?\n\r?\n")
# A frame larger than this is not something an engine sends; a limit keeps a broken one from filling our memory.
FRAME_LIMIT_BYTES = 8 * 1024 * 1024


class StreamBroke(Exception):
    """The engine's answer can't be carried on: an error frame, no finish, or not what was asked for at all."""


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


def payload(frame: bytes) -> bytes | None:
    """The data of a frame; None for a comment or an empty one."""
    lines = [line[5:].strip() for line in frame.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None
