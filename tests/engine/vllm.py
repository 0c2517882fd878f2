"""A vLLM on loopback: started with its flags, waited for, and ended with all its processes, also when we are killed."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from gateway.local.ask import status_of
from gateway.local.ports import LOOPBACK, free_port
from gateway.local.process import DidNotStart, Process, clean_environment, last_lines, pause, reap, spawn
from tests.engine.place import FOLDER, Place

CHAT, VECTORS = "smollm2-135m-instruct", "all-minilm-l6-v2"
# A model of the catalogue that has eyes; tests/engine/vision.py makes what stands in for its weights.
SEEING = "gemma-4-e4b-it"
CONTEXT_TOKENS = 4096
# One for each of vLLM's flags that we sell or steer by. `deepseek_v3` reads thoughts only where a call asks for them.
CHAT_FLAGS = (
    "--max-model-len", str(CONTEXT_TOKENS), "--max-num-seqs", "16", "--dtype", "bfloat16",
    "--enable-prefix-caching", "--enable-prompt-tokens-details", "--scheduling-policy", "priority",
    "--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--chat-template", str(FOLDER / "chat_template.jinja"),
    "--reasoning-parser", "deepseek_v3", "--structured-outputs-config", '{"enable_in_reasoning": true}',
)  # fmt: skip
VECTOR_FLAGS = ("--runner", "pooling", "--dtype", "float32", "--max-num-seqs", "16")
SEEING_FLAGS = (
    "--max-model-len", "1024", "--max-num-seqs", "4", "--dtype", "bfloat16", "--limit-mm-per-prompt", '{"image": 4}',
    "--chat-template", str(FOLDER / "chat_template.jinja"), "--enable-prompt-tokens-details",
)  # fmt: skip
# Measured on 2 cores: 36 s, most of it imports, and 130 s where others had most of the cores; without --enforce-eager two minutes
# more, for compiling.
START_SECONDS = 400.0
# vLLM's own first signal lets streams end; there are none of worth.
GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Vllm:
    """One engine. `folder` takes its log and caches."""

    place: Place
    folder: Path
    model: str
    weights: Path
    flags: tuple[str, ...]
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.model}.log"

    def launch(self) -> Process:
        flags = ("--served-model-name", self.model, "--host", LOOPBACK, "--port", str(self.port), "--enforce-eager", *self.flags)
        command = [str(self.place.program), "serve", str(self.weights), *flags]
        return spawn(command, log=self.log, folder=self.folder, env=self._environment())

    def wait(self, process: Process) -> None:
        """Raises: DidNotStart."""
        deadline = time.monotonic() + START_SECONDS
        while status_of(self.port, "/health") != 200:
            reap(process)
            if not process.is_alive:
                raise DidNotStart(f"vLLM ended at once; its last lines:\n{last_lines(self.log)}")
            if time.monotonic() > deadline:
                raise DidNotStart(f"vLLM did not answer within {START_SECONDS:.0f} s; its last lines:\n{last_lines(self.log)}")
            pause(0.2)

    def stop(self, process: Process) -> bool:
        went = process.end(grace_seconds=GRACE_SECONDS)
        # Its worker outlives a core that died, as nobody's child.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return went

    def _environment(self) -> Mapping[str, str]:
        mine = {
            "HOME": str(self.folder), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
            # Bound to a core, two engines would share one and leave the others idle.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        return clean_environment() | mine


@contextmanager
def running(engine: Vllm) -> Iterator[Vllm]:
    """Raises: DidNotStart."""
    process = engine.launch()
    # When we are killed its standard input ends, and it ends the engine: gigabytes that nobody would look for.
    guard = subprocess.Popen(
        ["sh", "-c", 'read -r nothing; kill -KILL -- "-$0"', str(process.pid)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        engine.wait(process)
        yield engine
    finally:
        guard.kill()
        guard.communicate()
        engine.stop(process)


def chat_engine(place: Place, folder: Path) -> Vllm:
    return Vllm(place, folder, CHAT, place.chat_model, CHAT_FLAGS)


def vector_engine(place: Place, folder: Path) -> Vllm:
    return Vllm(place, folder, VECTORS, place.vector_model, VECTOR_FLAGS)


def seeing_engine(place: Place, folder: Path) -> Vllm:
    return Vllm(place, folder, SEEING, place.seeing_model, SEEING_FLAGS)
