"""The line's scripts on a cluster of three masters: a pool's keys are all on one, and no script reaches for another's."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from redis.cluster import RedisCluster
from redis.crc import key_slot
from redis.exceptions import ResponseError

from backends.slots import pool_keys, script_named, try_keys
from gateway.local.ports import LOOPBACK, free_port
from gateway.local.valkey import Valkey
from tests.backends.queue.lockstep import POOL, Lockstep
from tests.simulation.queue_run import GATEWAYS, play
from tests.support.gateway import wait_for
from tests.support.services import ValkeyServer, scratch

SLOTS = 16384
MASTERS = 3


@dataclass(frozen=True)
class Master(Valkey):
    """A server that is one of a cluster; its bus has a port of its own."""

    bus_port: int = 0

    def _settings(self) -> str:
        return super()._settings() + f"cluster-enabled yes\ncluster-port {self.bus_port}\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Master]]:
    with scratch("cluster") as folder, ExitStack() as stack:
        masters = [_started(stack, folder / str(number)) for number in range(MASTERS)]
        clients = [stack.enter_context(redis.Redis.from_url(master.url(), decode_responses=True)) for master in masters]
        for number, client in enumerate(clients):
            first, last = number * SLOTS // MASTERS, (number + 1) * SLOTS // MASTERS - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "MEET", LOOPBACK, masters[0].port, masters[0].bus_port)
        wait_for(lambda: all("cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO")) for client in clients), 20)
        yield masters


def _started(stack: ExitStack, folder: Path) -> Master:
    master = Master(folder, free_port(), bus_port=free_port())
    server = ValkeyServer(master)
    stack.callback(server.stop)
    return master


def test_a_pools_keys_are_on_one_master_and_a_client_of_the_cluster_finds_it(cluster: list[Master]) -> None:
    with RedisCluster.from_url(cluster[0].url(), decode_responses=True) as client:
        for pool in ("smol", "llama-3.3-70b", "own/account-7"):
            keys = pool_keys(pool, GATEWAYS)
            assert len({key_slot(key.encode()) for key in keys}) == 1
            lease = [0, "g0", 5000]
            waiting, living, lost = client.eval(script_named("lease").text, len(try_keys(pool)), *try_keys(pool), *lease)
            assert (waiting, living, lost) == (0, ["g0"], [])


def test_a_simulated_pool_is_ordered_on_its_master_as_by_the_model(cluster: list[Master]) -> None:
    owner = cluster[key_slot(pool_keys(POOL, ())[0].encode()) * MASTERS // SLOTS]
    with redis.Redis.from_url(owner.url(), decode_responses=True) as client:
        world = play(104, 40, lambda model: Lockstep(client, model, GATEWAYS))
    assert sum(call.how == "served" for call in world.calls) > 5


def test_a_script_that_reached_for_another_masters_key_would_be_refused(cluster: list[Master]) -> None:
    """What the suite above would have met."""
    with redis.Redis.from_url(cluster[0].url()) as client:
        elsewhere = next(f"k{n}" for n in range(100) if key_slot(f"k{n}".encode()) >= SLOTS // MASTERS)
        own = next(f"k{n}" for n in range(100) if key_slot(f"k{n}".encode()) < SLOTS // MASTERS)
        with pytest.raises(ResponseError):
            client.eval("return redis.call('GET', ARGV[1])", 1, own, elsewhere)
