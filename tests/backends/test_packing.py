"""Which models share a machine: each once first, then replicas to fail over to; what does not fit is said."""

import pytest

from backends.gpus import find_gpu
from backends.packing import SEQUENCES_MIN, Wanted, choose, pack
from backends.sizing import Ask
from models.catalogue import Catalogue
from models.shapes import Shapes

CATALOGUE = Catalogue.load()
SHAPES = Shapes.load(CATALOGUE)
ASK = Ask()


def wanted(*names: str) -> dict[str, Wanted]:
    shapes = {name: SHAPES.of(CATALOGUE.resolve(name)) for name in names}
    return {name: Wanted(shape, shape.precisions) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("name", "gpu", "gpus", "precision", "tensor_parallel"),
    [
        ("llama-3.3-70b-instruct", "H100", 8, "fp8", 2),
        ("llama-3.3-70b-instruct", "A100", 8, "bf16", 4),  # no FP8 there
        ("llama-3.3-70b-instruct", "H100", 1, "fp8", 1),  # tight, and all there is
        ("deepseek-r1", "H200", 8, "fp8", 8),
        ("deepseek-r1", "B200", 8, "fp8", 8),
        ("gpt-oss-120b", "H100", 8, "mxfp4", 1),
        ("qwen3-8b", "L4", 1, "fp8", 1),
    ],
)
def test_one_model_takes_the_fewest_gpus_with_room(name: str, gpu: str, gpus: int, precision: str, tensor_parallel: int) -> None:
    found = choose(wanted(name)[name], find_gpu(gpu), gpus, 8192, ASK)
    assert found is not None
    assert (found.precision, found.tensor_parallel) == (precision, tensor_parallel)
    assert found.cache.concurrency(8192) >= (1 if gpus == 1 else SEQUENCES_MIN)


def test_what_fits_in_no_way_is_left_out() -> None:
    for name, gpu, gpus in (("deepseek-r1", "H100", 8), ("gpt-oss-20b", "L40S", 8), ("llama-3.3-70b-instruct", "L4", 1)):
        assert choose(wanted(name)[name], find_gpu(gpu), gpus, 8192, ASK) is None
        packed = pack(wanted(name), find_gpu(gpu), gpus, 8192, ASK)
        assert (dict(packed.placed), packed.left_out, packed.idle_gpus) == ({}, [name], gpus)


def test_each_model_comes_first_and_then_the_second_replicas() -> None:
    names = ("qwen3-235b-a22b-instruct-2507", "gpt-oss-120b", "qwen3-8b")
    packed = pack(wanted(*names), find_gpu("H200"), 8, 8192, ASK)
    assert {name: (one.replicas, one.gpus) for name, one in packed.placed.items()} == dict(
        zip(names, ((2, 4), (2, 2), (2, 2)), strict=True)
    )
    assert (packed.left_out, packed.idle_gpus) == ([], 0)


@pytest.mark.parametrize("gpus", range(1, 9))
def test_no_gpu_is_given_twice(gpus: int) -> None:
    packed = pack(wanted("llama-3.3-70b-instruct", "qwen3-32b", "qwen3-8b", "deepseek-r1"), find_gpu("H100"), gpus, 8192, ASK)
    assert sum(one.gpus for one in packed.placed.values()) + packed.idle_gpus == gpus
    assert packed.placed.keys() | set(packed.left_out) == {"llama-3.3-70b-instruct", "qwen3-32b", "qwen3-8b", "deepseek-r1"}
    assert packed.placed.keys().isdisjoint(packed.left_out)
