"""The block state machine of Anthropic's streams: what a stream does against it, in words."""

import json
from typing import Any

DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
}
STOP_REASONS = {"end_turn", "max_tokens", "stop_sequence", "tool_use"}


def events(stream: bytes) -> list[tuple[str | None, dict[str, Any]]]:
    """Each frame's name and data; pings and comments left out."""
    found = []
    for frame in stream.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line and not line.startswith(":"))
        if "data" in lines and lines.get("event") != "ping":
            found.append((lines.get("event"), json.loads(lines["data"])))
    return found


def faults(stream: bytes) -> list[str]:
    """What Anthropic's own streams never do; empty for one of theirs."""
    found: list[str] = []
    opened: dict[int, str] = {}
    open_now: set[int] = set()
    seen = events(stream)
    for name, event in seen:
        kind, index = event["type"], event.get("index", -1)
        if name != kind:
            found.append(f"{kind} is named {name}")
        if kind == "content_block_start":
            block = event["content_block"]
            found += [f"block {index} begins while {sorted(open_now)} are open"] if open_now else []
            found += [] if index == len(opened) else [f"block {index} is the {len(opened)}th"]
            found += ["a tool_use begins without input"] if block["type"] == "tool_use" and "input" not in block else []
            opened[index] = block["type"]
            open_now.add(index)
        elif kind == "content_block_delta":
            found += [] if index in open_now else [f"a delta of block {index}, which is not open"]
            if event["delta"]["type"] not in DELTAS[opened.get(index, "text")]:
                found.append(f"a {event['delta']['type']} in a block of {opened[index]}")
        elif kind == "content_block_stop":
            found += [] if index in open_now else [f"block {index} ends, and is not open"]
            open_now.discard(index)
        elif kind == "message_delta":
            found += _ending_faults(event, open_now)
    order = [event["type"] for _, event in seen if event["type"].startswith("message_")]
    return found + ([] if order == ["message_start", "message_delta", "message_stop"] else [f"the message goes {order}"])


def _ending_faults(event: dict[str, Any], open_now: set[int]) -> list[str]:
    delta = event["delta"]
    found = [f"the message ends while {sorted(open_now)} are open"] if open_now else []
    if delta["stop_reason"] not in STOP_REASONS:
        found.append(f"a stop_reason of {delta['stop_reason']}")
    if (delta["stop_reason"] == "stop_sequence") is not (delta["stop_sequence"] is not None):
        found.append(f"stop_reason {delta['stop_reason']} with stop_sequence {delta['stop_sequence']!r}")
    return found
