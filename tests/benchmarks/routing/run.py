"""`make bench-routing`: two real vLLMs of one core each behind our gateway, its peers and none, by turns."""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from zlib import crc32

import uvloop

from tests.benchmarks.routing.peers import PEERS, is_installed, running
from tests.benchmarks.routing.play import Played, Router, play
from tests.benchmarks.routing.talks import CONVERSATIONS, talks
from tests.engine import vllm
from tests.engine.place import ROOT, Place
from tests.engine.vllm import CHAT, CONTEXT_TOKENS, Vllm, chat_engine
from tests.support.gateway import town, wait_for
from tests.support.services import PostgresServer, running_postgres, running_valkey, scratch

REPLICAS, SLOTS = 2, 16
# Peers look at a new worker before they send it anything.
SETTLE_SECONDS = 5.0


def main() -> None:
    options = _options()
    place = Place.of_this_machine()
    if not place.is_ready:
        raise SystemExit("faregate: vLLM is not installed here: `python -m tests.engine.install` does it")
    with ExitStack() as stack:
        engines = [_engine(stack, place) for _ in range(REPLICAS)]
        urls = [engine.url for engine in engines]
        routers = list(_routers(stack, engines, stack.enter_context(running_postgres())))
        time.sleep(SETTLE_SECONDS)
        found: dict[str, list[Played]] = {router.name: [] for router in routers}
        for run in range(options.runs):
            # Each round begins with another one: what the machine does besides meets all of them.
            for index in range(len(routers)):
                router = routers[(run + index) % len(routers)]
                said = talks(options.seed + run, run * len(routers) + index, options.conversations)
                played = uvloop.run(play(router, said, urls))
                found[router.name].append(played)
                print(f"  {router.name}: {played.cached:.3f} cached, {played.ttft_mean:.2f} s to a first token", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({name: [asdict(one) for one in runs] for name, runs in found.items()}, indent=1))
    _print(found)


def _engine(stack: ExitStack, place: Place) -> Vllm:
    return stack.enter_context(vllm.running(chat_engine(place, stack.enter_context(scratch("vllm")))))


def _routers(stack: ExitStack, engines: list[Vllm], postgres: PostgresServer) -> Iterator[Router]:
    urls = [engine.url for engine in engines]
    yield Router("round robin", lambda conversation, call: urls[call % REPLICAS])
    yield Router("sticky by conversation", lambda conversation, call: urls[crc32(b"%d" % conversation) % REPLICAS])
    for peer in PEERS:
        if is_installed(peer):
            yield _through(peer.name, stack.enter_context(running(peer, urls)))
    yield _ours(stack, engines, postgres, "Faregate, prefixes shared", is_shared=True)
    yield _ours(stack, engines, postgres, "Faregate, an account a conversation", is_shared=False)


def _through(name: str, url: str, tokens: tuple[str, ...] = ()) -> Router:
    return Router(name, lambda conversation, call: url, tokens)


def _ours(stack: ExitStack, engines: list[Vllm], postgres: PostgresServer, name: str, *, is_shared: bool) -> Router:
    """An installation of its own, which knows nothing of the others' calls."""
    fleet = "share_prefixes = true\n" if is_shared else ""
    for index, engine in enumerate(engines):
        fleet += f'[[replica]]\nid = "vllm-{index}"\nmodel = "{CHAT}"\nengine = "vllm"\nurl = "{engine.url}"\n'
        fleet += f"slots = {SLOTS}\ncontext = {CONTEXT_TOKENS}\n"
    database, valkey = stack.enter_context(postgres.database()), stack.enter_context(running_valkey())
    built = stack.enter_context(town(database, valkey.url, stack.enter_context(scratch("routing")), fleet))
    built.plan("bench", quota_per_day=None)
    tokens = tuple(built.key("bench").token for _ in range(1 if is_shared else CONVERSATIONS))
    gateway = built.gateway()
    wait_for(lambda: "faregate_replica_cap{" in gateway.metrics())
    return _through(name, gateway.url, tokens)


def _print(found: dict[str, list[Played]]) -> None:
    print(f"\n{'':36} {'cached':>7} {'min':>6} {'max':>6} {'TTFT mean':>10} {'worst':>6} {'fuller':>7}")
    for name, runs in found.items():
        cached = [one.cached for one in runs]
        print(
            f"{name:36} {median(cached):7.3f} {min(cached):6.3f} {max(cached):6.3f} {fmean(one.ttft_mean for one in runs):10.3f} "
            f"{max(one.ttft_worst for one in runs):6.2f} {fmean(one.spread for one in runs):7.2f}"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures routing on two real vLLMs.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    parser.add_argument("--json", type=Path, default=ROOT / ".benchmarks" / "routing.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
