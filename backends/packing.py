"""Which model goes on how many of a machine's GPUs, and in which precision: pools of their own, and replicas to fail over to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backends.gpus import Gpu
from backends.sizing import Architecture, Ask, Fit, fits

# A replica that works on fewer at once is idle between tokens: the weights are read for each step, whoever it is for.
SEQUENCES_MIN = 8
# FP8 answers as BF16 does in 500,000 evaluations (arXiv 2411.02355) from half the memory; of 4 bits the same can't be said.
PREFERRED = ("fp8", "bf16", "mxfp4", "int8", "nvfp4", "int4")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model and the precisions that it is there in."""

    model: Architecture
    precisions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """`replicas` of `fit`, each on GPUs of its own."""

    fit: Fit
    replicas: int

    @property
    def gpus(self) -> int:
        return self.replicas * self.fit.tensor_parallel


@dataclass(frozen=True, slots=True)
class Packed:
    """By model. `left_out` are those that no GPUs were left for, or that are too large for one machine."""

    placed: Mapping[str, Placed]
    left_out: Sequence[str]
    idle_gpus: int


def choose(wanted: Wanted, gpu: Gpu, gpus: int, tokens: int, ask: Ask) -> Fit | None:
    """The fewest GPUs that hold enough sequences of so many tokens, in the most preferred precision that fits at all; in their
    want, the most room that there is. None: it fits in no way."""
    holding = [one for one in fits(wanted.model, gpu, wanted.precisions, gpus, ask) if one.holds(tokens)]
    if not holding:
        return None
    best = min(PREFERRED.index(one.precision) for one in holding)
    able = sorted((one for one in holding if one.precision == PREFERRED[best]), key=lambda one: one.tensor_parallel)
    return next((one for one in able if one.at_once(tokens) >= SEQUENCES_MIN), able[-1])


def pack(models: Mapping[str, Wanted], gpu: Gpu, gpus: int, tokens: int, ask: Ask) -> Packed:
    """Each model once, in the order given; then a second replica for each, a third, as long as GPUs are left."""
    left, placed, left_out = gpus, dict[str, Placed](), list[str]()
    for name, wanted in models.items():
        found = choose(wanted, gpu, left, tokens, ask) if left else None
        if found is None:
            left_out.append(name)
        else:
            placed[name] = Placed(found, 1)
            left -= found.tensor_parallel
    while growing := [name for name in placed if placed[name].fit.tensor_parallel <= left]:
        name = min(growing, key=lambda each: placed[each].replicas)
        placed[name] = Placed(placed[name].fit, placed[name].replicas + 1)
        left -= placed[name].fit.tensor_parallel
    return Packed(placed, left_out, left)
