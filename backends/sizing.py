"""How much of a GPU's memory a model takes, and what is left for how many tokens: the arithmetic, without any I/O.

The formulas are vLLM 0.33.0's (`gpu_worker.determine_available_memory`, `kv_cache_utils`); what no formula gives is an
assumption, named as one below.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from backends.gpus import Gpu

GIB = 2**30
KvDtype = Literal["bf16", "fp8"]
# vLLM's defaults: the share of the memory that it takes, and the tokens of a block of the KV cache.
UTILIZATION_PERCENT = 92
BLOCK_TOKENS = 16
# Bytes of a parameter, in thousandths. FP8 and INT8 carry 1 to 3% of scales; of 4 bits, with theirs and the layers that stay in
# 16 bits, 0.5 to 0.56 bytes are made.
BYTES_PER_THOUSAND = {"bf16": 2000, "fp8": 1010, "int8": 1010, "int4": 560, "mxfp4": 560, "nvfp4": 560}
# Assumed until it is measured: what CUDA, its graphs and NCCL keep on each GPU, and how many copies of the hidden states of one
# batch are alive at the peak. Together 4 GiB for Llama 3.3 70B, which is what plans for it reckon with.
GRAPHS_BYTES = 3 * GIB // 2
ALIVE_COPIES = 20
HIDDEN_BYTES = 2
TENSOR_PARALLEL = (1, 2, 4, 8)


class Architecture(Protocol):
    """What is asked of a model."""

    @property
    def parameters(self) -> int | None: ...
    @property
    def hidden(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def kv_heads(self) -> int: ...
    @property
    def kv_bytes_per_token(self) -> int: ...
    @property
    def kv_bytes_per_token_fp8(self) -> int: ...
    @property
    def kv_bytes_per_sequence(self) -> int: ...


@dataclass(frozen=True, slots=True)
class KvCache:
    """What one GPU keeps for attention. `sequence_bytes` is what a sequence takes whatever its length."""

    budget_bytes: int
    token_bytes: int
    sequence_bytes: int = 0
    block_tokens: int = BLOCK_TOKENS

    @property
    def blocks(self) -> int:
        return max(0, self.budget_bytes) // (self.token_bytes * self.block_tokens)

    def concurrency(self, tokens: int) -> float:
        """How many sequences of so many tokens it holds at once, prompt and output together: vLLM's figure."""
        block_bytes = self.token_bytes * self.block_tokens
        needed = -(-tokens // self.block_tokens) * block_bytes + self.sequence_bytes
        return self.blocks * block_bytes / needed

    def tokens(self, longest: int) -> int:
        """What vLLM prints as the size of the cache, for a longest sequence of so many tokens."""
        return int(self.concurrency(longest) * longest)


@dataclass(frozen=True, slots=True)
class Fit:
    """One way to serve a model: a replica on `tensor_parallel` GPUs. All bytes are of each GPU; `cache.budget_bytes` may be
    negative: then it does not fit."""

    precision: str
    tensor_parallel: int
    usable_bytes: int
    weight_bytes: int
    draft_bytes: int
    activation_bytes: int
    cache: KvCache
    sequences_max: int

    def at_once(self, tokens: int) -> int:
        """How many calls of so many tokens a replica works on: what the cache holds, and no more than a step takes."""
        return min(int(self.cache.concurrency(tokens)), self.sequences_max)

    def holds(self, tokens: int) -> bool:
        """One sequence of so many tokens, at least."""
        return self.cache.concurrency(tokens) >= 1


@dataclass(frozen=True, slots=True)
class Ask:
    """How a replica is to be served. `draft_parameters` are those of a draft model beside it, kept in BF16 on each GPU."""

    kv: KvDtype = "bf16"
    draft_parameters: int = 0
    utilization_percent: int = UTILIZATION_PERCENT


def fit(model: Architecture, gpu: Gpu, precision: str, tensor_parallel: int, ask: Ask = Ask()) -> Fit:
    """The memory of each of `tensor_parallel` GPUs, shared out."""
    usable = gpu.memory_bytes * ask.utilization_percent // 100
    weights = weight_bytes(model.parameters or 0, precision) // tensor_parallel
    draft = weight_bytes(ask.draft_parameters, "bf16")
    activations = GRAPHS_BYTES + ALIVE_COPIES * gpu.batch_tokens * model.hidden * HIDDEN_BYTES
    # Heads are shared out; beyond their number they are copied. A latent is one head: each GPU has all of it.
    share = min(tensor_parallel, model.kv_heads)
    per_token = model.kv_bytes_per_token if ask.kv == "bf16" else model.kv_bytes_per_token_fp8
    cache = KvCache(usable - weights - draft - activations, -(-per_token // share), -(-model.kv_bytes_per_sequence // share))
    return Fit(precision, tensor_parallel, usable, weights, draft, activations, cache, gpu.sequences_max)


def fits(model: Architecture, gpu: Gpu, precisions: tuple[str, ...], gpus: int, ask: Ask = Ask()) -> list[Fit]:
    """Every way that the GPUs compute in and the heads can be shared out to, on one machine; those that are too large too.

    A BF16 model is made FP8 when it is started, where the GPU has that and nobody has published it so.
    """
    offered = (*precisions, "fp8") if "bf16" in precisions and "fp8" not in precisions else precisions
    able = [precision for precision in offered if precision in gpu.precisions]
    sizes = [size for size in TENSOR_PARALLEL if size <= min(gpus, gpu.in_node) and divides(model, size)]
    return [fit(model, gpu, precision, size, ask) for precision in able for size in sizes]


def divides(model: Architecture, tensor_parallel: int) -> bool:
    """vLLM's rule: the heads are shared out evenly, and those of the cache are shared out or copied evenly."""
    kv_heads = model.kv_heads
    return model.heads % tensor_parallel == 0 and (kv_heads % tensor_parallel == 0 or tensor_parallel % kv_heads == 0)


def weight_bytes(parameters: int, precision: str) -> int:
    """All experts of a mixture are resident."""
    return parameters * BYTES_PER_THOUSAND[precision] // 1000
