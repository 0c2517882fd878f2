"""Plays conversations against one router, and tells what the engines found in their caches."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx2

from tests.benchmarks.routing.talks import TURNS, Talk
from tests.engine.counted import gauge

# vLLM's own counts, in tokens.
ASKED, FOUND = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"


@dataclass(frozen=True, slots=True)
class Played:
    """Of one run: shares are of prompt tokens, times in seconds."""

    cached: float
    ttft_mean: float
    ttft_worst: float
    seconds: float
    spread: float  # the fuller engine's part of the prompt tokens


@dataclass(frozen=True, slots=True)
class Router:
    """Where a conversation's call goes: `url_of(conversation, call)`. `tokens` are keys, by conversation; none: none is asked."""

    name: str
    url_of: Callable[[int, int], str]
    tokens: Sequence[str] = ()


async def play(router: Router, talks: Sequence[Talk], engines: Sequence[str]) -> Played:
    """Raises RuntimeError when a call isn't answered whole."""
    before = [(gauge(url, ASKED), gauge(url, FOUND)) for url in engines]
    begun = time.monotonic()
    async with httpx2.AsyncClient(timeout=300) as client:
        firsts = await asyncio.gather(*(_talk(client, router, talk) for talk in talks))
    seconds = time.monotonic() - begun
    after = [(gauge(url, ASKED), gauge(url, FOUND)) for url in engines]
    asked = [late[0] - early[0] for early, late in zip(before, after, strict=True)]
    found = [late[1] - early[1] for early, late in zip(before, after, strict=True)]
    times = [first for each in firsts for first in each]
    return Played(sum(found) / sum(asked), sum(times) / len(times), max(times), seconds, max(asked) / sum(asked))


async def _talk(client: httpx2.AsyncClient, router: Router, talk: Talk) -> list[float]:
    headers = {"authorization": f"Bearer {router.tokens[talk.number % len(router.tokens)]}"} if router.tokens else {}
    firsts = []
    for turn in range(TURNS):
        await asyncio.sleep(talk.thinks[turn])
        url = router.url_of(talk.number, talk.number + turn)
        first, text = await _call(client, f"{url}/v1/chat/completions", talk, headers)
        firsts.append(first)
        talk.answered(text)
    return firsts


async def _call(client: httpx2.AsyncClient, url: str, talk: Talk, headers: dict[str, str]) -> tuple[float, str]:
    begun, first, text, is_whole = time.monotonic(), 0.0, "", False
    async with client.stream("POST", url, json=talk.ask(), headers=headers) as answer:
        if answer.status_code != 200:
            raise RuntimeError(f"{url}: {answer.status_code} {(await answer.aread())[:300]!r}")
        async for line in answer.aiter_lines():
            if not line.startswith("data: "):
                continue
            if line == "data: [DONE]":
                is_whole = True
                continue
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                said = choice["delta"].get("content") or ""
                first = first or (time.monotonic() - begun if said else 0.0)
                text += said
    if not is_whole or not first:
        raise RuntimeError(f"{url}: the answer was cut")
    return first, text
