"""The libraries' snippets in front of llama.cpp with the small model, as `make up` has it: a real engine's stream, said aloud."""

from collections.abc import Iterator

import pytest

from gateway.local.llamacpp import LlamaCpp
from gateway.local.ports import free_port
from tests.conformance.clients.libraries import LIBRARIES, Library
from tests.conformance.clients.programs import Machine
from tests.journeys.conftest import MODEL
from tests.support.gateway import BuildTown, Town, wait_for
from tests.support.services import scratch
from tests.support.stream import settled

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def local(build_town: BuildTown) -> Iterator[Town]:
    with scratch("llamacpp") as folder:
        engine = LlamaCpp(folder, free_port())
        process = engine.start()
        fleet = f'[[replica]]\nid = "local"\nmodel = "{MODEL}"\nengine = "llamacpp"\nurl = "{engine.url}"\nslots = 4\n'
        try:
            with build_town(fleet) as built:
                built.standing = built.gateway()
                yield built
        finally:
            engine.stop(process)


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_the_snippet_prints_what_a_real_model_says(library: Library, machine: Machine, local: Town) -> None:
    customer = local.key()
    done = library.run_at(machine, local.gateway().url, customer.token)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) > 3
    wait_for(lambda: settled(local.redis_url, customer))
    (event,) = settled(local.redis_url, customer)
    assert event.verdict == "posted"
    assert event.event["completion_tokens"] > 3
    assert not event.event["tokens_estimated"]
