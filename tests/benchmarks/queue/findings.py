"""A whole run, as it is kept in JSON and read again for the page and the pictures."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from tests.benchmarks.queue.figures import Figures
from tests.benchmarks.queue.play import Capacity


@dataclass(frozen=True, slots=True)
class Setting:
    seed: int
    arrival_seconds: float
    drain_seconds: float
    runs: int
    line: int
    output_tokens: int
    targets_ms: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Findings:
    """`capacity` is by the engine's policy; rates are multiples of the first's. `compared` and `curve` are by variant's name."""

    at: str
    machine: str
    versions: Mapping[str, str]
    setting: Setting
    capacity: Mapping[str, Capacity]
    titles: Mapping[str, str]
    loads: Mapping[str, float]
    compared: Mapping[str, Figures]
    curve: Mapping[str, Figures]

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TypeAdapter(Findings).dump_json(self, indent=1) + b"\n")

    @classmethod
    def load(cls, path: Path) -> "Findings":
        return TypeAdapter(cls).validate_json(path.read_bytes())
