"""The kinds of GPUs that a plan can be made for: their memory, and the precisions that they compute in."""

from dataclasses import dataclass

MIB = 2**20


class GpuUnknown(Exception):
    """No such kind of GPU is known here."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """`memory_bytes` is all that nvidia-smi shows. `batch_tokens` and `sequences_max` are what vLLM 0.33.0 works on in one step
    and at once, where nothing else is said; `in_node` is how many one machine usually has."""

    name: str
    memory_bytes: int
    precisions: frozenset[str]
    batch_tokens: int = 2048
    sequences_max: int = 256
    in_node: int = 8


_SINCE_AMPERE = frozenset({"bf16", "int8", "int4"})
# FP8 in hardware came with Ada and Hopper. gpt-oss's MXFP4 runs on Hopper by vLLM's recipes; NVFP4 needs Blackwell.
_SINCE_ADA = _SINCE_AMPERE | {"fp8"}
_SINCE_HOPPER = _SINCE_ADA | {"mxfp4"}
_SINCE_BLACKWELL = _SINCE_HOPPER | {"nvfp4"}
# The memory as nvidia-smi prints it, in MiB.
GPUS = (
    Gpu("A100", 81_920 * MIB, _SINCE_AMPERE),
    Gpu("L4", 23_034 * MIB, _SINCE_ADA),
    Gpu("L40S", 46_068 * MIB, _SINCE_ADA),
    Gpu("RTX4090", 24_564 * MIB, _SINCE_ADA),
    Gpu("H100", 81_559 * MIB, _SINCE_HOPPER, 8192, 1024),
    Gpu("H200", 143_771 * MIB, _SINCE_HOPPER, 8192, 1024),
    Gpu("B200", 183_359 * MIB, _SINCE_BLACKWELL, 16_384, 1024),
)


def find_gpu(name: str) -> Gpu:
    """In any letters. Raises: GpuUnknown."""
    for gpu in GPUS:
        if gpu.name.lower() == name.lower().replace(" ", ""):
            return gpu
    raise GpuUnknown(f"The GPU {name[:40]!r} is not known here; those are: {', '.join(gpu.name for gpu in GPUS)}.")
