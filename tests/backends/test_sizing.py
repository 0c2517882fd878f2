"""Sizing against what others have published and what vLLM printed."""

import pytest

from backends.gpus import GPUS, GpuUnknown, find_gpu
from backends.sizing import GIB, Ask, KvCache, divides, fit, fits, weight_bytes
from models.catalogue import Catalogue
from models.shapes import Shape, Shapes

CATALOGUE = Catalogue.load()
SHAPES = Shapes.load(CATALOGUE)
KIB, MILLION_TOKENS = 1024, 2**20


def shape(name: str) -> Shape:
    return SHAPES.of(CATALOGUE.resolve(name))


def test_vllm_on_a_cpu_printed_what_this_works_out() -> None:
    """1 GiB, blocks of 128 tokens: 46,592 tokens, 11.38x at 4,096."""
    cache = KvCache(GIB, shape("smollm2").kv_bytes_per_token, block_tokens=128)
    assert cache.blocks == 364
    assert cache.tokens(4096) == 46_592
    assert round(cache.concurrency(4096), 2) == 11.38


def test_llama_70b_in_fp8_on_two_h100s() -> None:
    """The worked example of the vLLM formulas: 32.9 GiB of weights a GPU, 73.3 usable, about 4 for the rest, 36.4 for the KV."""
    found = fit(shape("llama-3.3-70b-instruct"), find_gpu("H100"), "fp8", 2)
    assert found.weight_bytes / GIB == pytest.approx(32.9, rel=0.02)
    assert found.usable_bytes / GIB == pytest.approx(73.3, rel=0.02)
    assert found.activation_bytes / GIB == pytest.approx(4.0, rel=0.02)
    assert found.cache.budget_bytes / GIB == pytest.approx(36.4, rel=0.02)
    assert found.cache.token_bytes == 160 * KIB
    assert found.cache.tokens(131_072) == pytest.approx(238_000, rel=0.02)
    assert found.cache.concurrency(131_072) == pytest.approx(1.82, rel=0.02)
    assert found.cache.concurrency(8192) == pytest.approx(29, rel=0.02)


def test_a_cache_in_fp8_holds_twice_as_much() -> None:
    model, gpu = shape("llama-3.3-70b-instruct"), find_gpu("H100")
    in_bf16, in_fp8 = (fit(model, gpu, "fp8", 2, Ask(kv=kv)) for kv in ("bf16", "fp8"))
    assert in_fp8.cache.tokens(8192) == pytest.approx(2 * in_bf16.cache.tokens(8192), rel=0.001)


@pytest.mark.parametrize(
    ("name", "kib_per_token"),
    [("llama-3.3-70b-instruct", 320), ("qwen3-8b", 144), ("qwen3-32b", 256), ("qwen3-235b-a22b-instruct-2507", 188),
     ("gpt-oss-120b", 36), ("qwen3.5-27b", 64), ("gemma-4-31b-it", 80)],
)  # fmt: skip
def test_grouped_heads_take_what_is_published(name: str, kib_per_token: int) -> None:
    assert shape(name).kv_bytes_per_token == kib_per_token * KIB


@pytest.mark.parametrize(("name", "gib"), [("deepseek-v4-pro", 9.62), ("deepseek-v4-flash", 6.7), ("deepseek-v3.2", 83.9)])
def test_a_million_tokens_of_compressed_attention(name: str, gib: float) -> None:
    """The figures of vLLM's announcement of DeepSeek V4."""
    assert shape(name).kv_bytes_per_token * MILLION_TOKENS / GIB == pytest.approx(gib, rel=0.02)


def test_the_packed_latent_is_656_bytes_a_layer() -> None:
    assert shape("deepseek-r1").kv_bytes_per_token_fp8 == 656 * 61
    assert shape("deepseek-r1").kv_bytes_per_token == 1152 * 61


@pytest.mark.parametrize(
    ("name", "precision", "gigabytes"),
    [("llama-3.3-70b-instruct", "bf16", 170), ("llama-3.3-70b-instruct", "fp8", 84), ("deepseek-r1", "fp8", 805),
     ("glm-5", "fp8", 893), ("qwen3-235b-a22b-instruct-2507", "bf16", 564), ("qwen3-32b", "bf16", 77)],
)  # fmt: skip
def test_weights_are_what_the_recipes_reckon_with(name: str, precision: str, gigabytes: int) -> None:
    """They ask for 1.2 times the weights."""
    assert weight_bytes(shape(name).parameters or 0, precision) * 1.2 / 10**9 == pytest.approx(gigabytes, rel=0.025)


def test_heads_that_are_fewer_than_the_gpus_are_copied_and_a_latent_always_is() -> None:
    h200 = find_gpu("H200")
    few = shape("qwen3-235b-a22b-instruct-2507")
    assert fit(few, h200, "fp8", 8).cache.token_bytes == fit(few, h200, "fp8", 4).cache.token_bytes == few.kv_bytes_per_token // 4
    assert fit(shape("deepseek-r1"), h200, "fp8", 8).cache.token_bytes == shape("deepseek-r1").kv_bytes_per_token


def test_parallel_sizes_divide_the_heads() -> None:
    odd = Shape(layers=40, hidden=5120, heads=40, kv_heads=10, head_dim=128, precisions=("bf16",), source="litgpt")
    assert [size for size in (1, 2, 4, 5, 8, 10) if divides(odd, size)] == [1, 2, 5, 10]
    assert [size for size in (1, 2, 4, 8) if divides(shape("smollm2"), size)] == [1]


def test_a_gpu_computes_in_its_own_precisions() -> None:
    model = shape("llama-3.3-70b-instruct")
    by_gpu = {gpu.name: {one.precision for one in fits(model, gpu, model.precisions, 8)} for gpu in GPUS}
    assert by_gpu["A100"] == {"bf16"}
    assert by_gpu["L40S"] == by_gpu["H100"] == by_gpu["H200"] == {"bf16", "fp8"}
    assert by_gpu["B200"] == {"bf16", "fp8", "nvfp4"}


def test_deepseek_r1_fits_eight_h200s_and_no_fewer() -> None:
    model = shape("deepseek-r1")
    found = {one.tensor_parallel: one for one in fits(model, find_gpu("H200"), model.precisions, 8)}
    assert [size for size, one in found.items() if one.holds(8192)] == [8]
    assert found[4].cache.budget_bytes < 0
    assert found[4].cache.tokens(8192) == 0
    assert found[8].cache.concurrency(163_840) > 1


def test_a_draft_is_on_every_gpu_and_windows_cost_each_sequence() -> None:
    model, gpu = shape("llama-3.1-8b-instruct"), find_gpu("L40S")
    alone, drafted = fit(model, gpu, "fp8", 2), fit(model, gpu, "fp8", 2, Ask(draft_parameters=10**9))
    assert alone.cache.budget_bytes - drafted.cache.budget_bytes == drafted.draft_bytes == 2 * 10**9
    gemma = fit(shape("gemma-4-31b-it"), find_gpu("H100"), "fp8", 1).cache
    assert gemma.concurrency(1024) < gemma.concurrency(512) < 2 * gemma.concurrency(1024), (
        "800 MiB a sequence, whatever its length"
    )


def test_a_step_takes_no_more_calls_than_vllm_lets_it() -> None:
    small = fit(shape("qwen3-0.6b"), find_gpu("L4"), "bf16", 1)
    assert small.cache.concurrency(256) > 256
    assert (small.at_once(256), small.at_once(8192)) == (256, int(small.cache.concurrency(8192)))


def test_a_gpu_that_is_none_is_refused_with_those_that_are() -> None:
    assert find_gpu("h200").name == "H200"
    with pytest.raises(GpuUnknown, match=r"'V100'.*H200"):
        find_gpu("V100")
