"""Who is called: an engine itself or a gateway before it, and how a call says whose it is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.benchmarks.queue.trace import Arrival
from tests.engine.vllm import CHAT
from tests.support.gateway import Running

OUTPUT_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Target:
    """`keys` are the accounts' by class, none for an engine; `priorities` what an engine is told of a class, by whoever calls it.

    `pids` are those whose CPU is counted, by name.
    """

    port: int
    engine_port: int
    pids: Mapping[str, Sequence[int]]
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    gateway: Running | None = None

    def request(self, arrival: Arrival, number: int) -> bytes:
        """`number` (six digits, as many tokens) begins the prompt, so that no other call has its prefix cached."""
        asked: dict[str, object] = {
            "model": CHAT,
            "messages": [{"role": "user", "content": f"{number:06d} {arrival.words}"}],
            "max_tokens": OUTPUT_TOKENS, "ignore_eos": True, "temperature": 0,
            "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip
        if self.priorities:
            asked["priority"] = self.priorities[arrival.class_]
        head = "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        if self.keys:
            keys = self.keys[arrival.class_]
            head += f"authorization: Bearer {keys[arrival.account % len(keys)]}\r\n"
        body = json.dumps(asked).encode()
        return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
