"""An engine's metrics page, read as far as it matters, by substring search: parsing all of vLLM's takes over twenty times as long
(13 ms against 0.5 on a busy core), and would hold the loop every two seconds for each replica."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from backends.engines.kind import Gauges

# vLLM's page has about 70 KB, most of it buckets of histograms.
PAGE_LIMIT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What an engine says of itself at one moment. None: it does not say. `preemptions` and `steps` are counts that only grow."""

    running: int | None = None
    waiting: int | None = None
    kv_use: float | None = None
    preemptions: int | None = None
    steps: int | None = None


def read_report(page: bytes, gauges: Gauges) -> Report:
    """An engine of several ranks has one sample for each: their calls add up, the fullest KV cache counts."""

    def count(name: str | None) -> int | None:
        parts: dict[bytes, float] = {}
        for labels, value in _samples(page, name):
            part = _label(labels, gauges.apart)
            parts[part] = max(value, parts.get(part, 0.0))
        return int(sum(parts.values())) if parts else None

    return Report(
        running=count(gauges.running),
        waiting=count(gauges.waiting),
        kv_use=max((value for _, value in _samples(page, gauges.kv_use)), default=None),
        preemptions=count(gauges.preemptions),
        steps=count(gauges.steps),
    )


def _label(labels: bytes, name: str | None) -> bytes:
    if name is None:
        return b""
    found = re.search(rb"(?:^|,)\s*" + name.encode() + rb'="([^"]*)"', labels)
    return b"" if found is None else found[1]


def _samples(page: bytes, name: str | None) -> Iterator[tuple[bytes, float]]:
    """Of lines `name{labels} value` and `name value`, with or without a time behind, labels and value; what is no number is left
    out."""
    if name is None:
        return
    wanted, at = name.encode(), 0
    while (at := page.find(wanted, at)) >= 0:
        begins_a_line = at == 0 or page[at - 1 : at] == b"\n"
        at += len(wanted)
        if not begins_a_line or page[at : at + 1] not in (b"{", b" ", b"\t"):
            continue
        end = page.find(b"\n", at)
        line = page[at:] if end < 0 else page[at:end]
        closed = line.rfind(b"}")
        words = line[closed + 1 :].split()
        try:
            value = float(words[0])
        except (IndexError, ValueError):
            continue
        if 0 <= value < 2**53:  # neither NaN nor infinite
            yield line[1:closed] if closed > 0 else b"", value
