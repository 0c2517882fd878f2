"""What the variants are played on: a real vLLM of either policy, and a whole gateway before it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

import psutil
import redis

from billing.plans import QueueTerms
from tests.benchmarks.queue.target import Target
from tests.benchmarks.queue.trace import ACCOUNTS
from tests.benchmarks.queue.variants import ENGINE_PRIORITIES, LINE, Policy, Variant
from tests.engine.place import Place
from tests.engine.vllm import CHAT, CHAT_FLAGS, CONTEXT_TOKENS, Vllm, chat_engine, running
from tests.support.gateway import Town, town, wait_for
from tests.support.services import PostgresServer, ValkeyServer, running_postgres, running_valkey, scratch

# As many as the engine runs at once (`--max-num-seqs` of CHAT_FLAGS).
RUNS = 16
# vLLM names its processes.
WORKER_NAME = "VLLM::Worker"


@dataclass(frozen=True, slots=True)
class Stores:
    postgres: PostgresServer
    valkey: ValkeyServer

    @property
    def pids(self) -> list[int]:
        return [self.postgres.process.pid, self.valkey.process.pid]


@contextmanager
def stores() -> Iterator[Stores]:
    with running_postgres() as postgres, running_valkey() as valkey:
        yield Stores(postgres, valkey)


@contextmanager
def engine(place: Place, policy: Policy) -> Iterator[Vllm]:
    flags = list(CHAT_FLAGS)
    flags[flags.index("--scheduling-policy") + 1] = policy
    with scratch("vllm") as folder, running(replace(chat_engine(place, folder), flags=tuple(flags))) as started:
        _compute_on_a_core_of_its_own(started)
        yield started


@contextmanager
def target_of(variant: Variant, engine: Vllm, stores: Stores) -> Iterator[Target]:
    """A gateway is a new installation: nothing is known of what accounts did in another variant."""
    if variant.terms is None:
        yield alone(engine, tells_priorities=variant.tells_priorities)
        return
    with ExitStack() as stack:
        with redis.Redis.from_url(stores.valkey.url) as client:
            client.flushall()
        database_url = stack.enter_context(stores.postgres.database())
        folder = stack.enter_context(scratch("bench"))
        built = stack.enter_context(town(database_url, stores.valkey.url, folder, _fleet(engine, variant.policy)))
        keys = _keys(built, variant.terms, is_one_line=variant.is_one_line)
        worker, gateway = built.worker(), built.gateway()
        wait_for(lambda: "faregate_replica_cap{" in gateway.metrics())
        pids = {"engine": [_pid(engine)], "gateway": [gateway.process.pid], "stores": [worker.process.pid, *stores.pids]}
        yield Target(gateway.port, engine.port, pids, keys, gateway=gateway)


def _compute_on_a_core_of_its_own(engine: Vllm) -> None:
    """As a GPU does, beside which all else shares the host: vLLM's worker has the last core, everything else the others.

    Else each process that runs for a moment stops the computing thread: a tenth of the CPU time gone was a quarter of the tokens.
    """
    *others, last = range(os.cpu_count() or 1)  # our own affinity is what an engine before this one left
    mine = psutil.Process()
    its = psutil.Process(_pid(engine)).children(recursive=True)
    workers = [child for child in its if child.name().startswith(WORKER_NAME)]
    if not others or len(workers) != 1:
        raise SystemExit("faregate: two cores are needed, and one worker of vLLM")
    for process in (mine, *mine.children(recursive=True)):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess, ProcessLookupError):
            for thread in process.threads():
                os.sched_setaffinity(thread.id, {last} if process in workers else others)


def alone(engine: Vllm, *, tells_priorities: bool = False) -> Target:
    return Target(engine.port, engine.port, {"engine": [_pid(engine)]}, priorities=ENGINE_PRIORITIES if tells_priorities else {})


def _keys(built: Town, terms: Mapping[str, QueueTerms], *, is_one_line: bool) -> dict[str, list[str]]:
    for name, queue in terms.items():
        built.plan(f"bench-{name}", service_class=name, quota_per_day=None, queue=queue)
    if is_one_line:
        one = [built.key("bench-pro").token]
        return {name: one for name in terms}  # noqa: C420 - nobody adds to it
    return {name: [built.key(f"bench-{name}").token for _ in range(ACCOUNTS[name])] for name in terms}


def _fleet(engine: Vllm, policy: Policy) -> str:
    heeds = "true" if policy == "priority" else "false"
    entry = f'[[replica]]\nid = "vllm"\nmodel = "{CHAT}"\nengine = "vllm"\nurl = "{engine.url}"\nslots = {RUNS + LINE}\n'
    return f"{entry}line = {LINE}\npriority = {heeds}\ncontext = {CONTEXT_TOKENS}\n"


def _pid(engine: Vllm) -> int:
    """Of our own child that serves on the engine's port; the engine before it may still be a zombie."""
    alive = (child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE)
    return int(next(child.pid for child in alive if str(engine.port) in child.cmdline()))
