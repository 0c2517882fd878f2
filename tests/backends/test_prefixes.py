"""What a gateway believes of each replica's prefix cache: learnt from calls, bounded, given up when the engine says otherwise."""

import os
import random
import tracemalloc

from backends.prefix import FINE_BYTES, Prompt, bytes_of, read_prompt
from backends.prefixes import BLOCKS_MAX, CAPACITY_MIN_BYTES, MEMORY_BYTES, Prefixes

TOKENS = 1000


def prompt(*parts: bytes) -> Prompt:
    return read_prompt(b"".join(parts))


def words(blocks: int) -> bytes:
    return os.urandom(blocks * FINE_BYTES)


SYSTEM = words(20)


def test_what_was_sent_is_known_as_far_as_the_next_one_begins_alike() -> None:
    prefixes = Prefixes()
    prefixes.sent("a", prompt(SYSTEM, words(10)))
    assert prefixes.known(["a", "b"], prompt(SYSTEM, words(5))) == {"a": len(SYSTEM)}
    assert prefixes.known(["a", "b"], prompt(words(1), SYSTEM)) == {}
    assert prefixes.known(["a", "b"], prompt(b"short")) == {}


def test_a_call_that_failed_before_its_output_taught_nothing() -> None:
    prefixes = Prefixes()
    prefixes.sent("a", prompt(SYSTEM))
    longer = prompt(SYSTEM, words(10))
    sent = prefixes.sent("a", longer)
    prefixes.failed(sent)
    assert prefixes.known(["a"], longer) == {"a": len(SYSTEM)}
    assert prefixes.blocks() == 20


def test_an_engine_that_went_down_has_nothing() -> None:
    prefixes = Prefixes()
    on_its_way = prefixes.sent("a", prompt(SYSTEM))
    prefixes.forget("a")
    assert prefixes.known(["a"], prompt(SYSTEM)) == {}
    prefixes.answered(on_its_way, TOKENS, 0)
    prefixes.failed(on_its_way)
    assert prefixes.blocks() == 0


def test_the_least_used_goes_first_and_the_ends_of_prompts_before_their_beginnings() -> None:
    prefixes = Prefixes(blocks_max=100)
    first, second = prompt(SYSTEM, words(30)), prompt(words(50))
    prefixes.sent("a", first)
    prefixes.sent("a", second)
    prefixes.sent("a", prompt(SYSTEM))  # its beginning is used again
    prefixes.sent("a", prompt(words(20)))
    assert prefixes.blocks() == 100
    assert prefixes.known(["a"], first)["a"] == bytes_of(30)  # its last 20 blocks made room
    assert prefixes.known(["a"], second)["a"] == bytes_of(50)


def test_memory_stays_in_bounds() -> None:
    prefixes, dice = Prefixes(), random.Random(1)
    tracemalloc.start()
    try:
        for _ in range(BLOCKS_MAX // 100):
            prefixes.sent("a", prompt(dice.randbytes(120 * FINE_BYTES)))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert prefixes.blocks() == BLOCKS_MAX
    assert MEMORY_BYTES / 2 < used < MEMORY_BYTES * 1.1


def test_an_engine_that_counts_little_has_lost_what_is_as_old() -> None:
    prefixes = Prefixes()
    old, older, young = prompt(words(40)), prompt(words(40)), prompt(words(40))
    for each in (older, old, young):
        prefixes.answered(prefixes.sent("a", each), TOKENS, 0)
    prefixes.answered(prefixes.sent("a", young), TOKENS, 950)  # as expected
    assert prefixes.surprises == 0
    prefixes.answered(prefixes.sent("a", old), TOKENS, 0)
    assert prefixes.surprises == 1
    assert prefixes.known(["a"], older) == {}
    assert prefixes.known(["a"], old) == {"a": 40 * FINE_BYTES}  # it has just been computed
    assert prefixes.known(["a"], young) == {"a": 40 * FINE_BYTES}


def test_an_engine_that_never_counts_is_believed() -> None:
    """Nothing cached and nothing counted look the same: vLLM without --enable-prompt-tokens-details, llama.cpp's older builds."""
    prefixes = Prefixes()
    for _ in range(3):
        prefixes.answered(prefixes.sent("a", prompt(SYSTEM)), TOKENS, None)
    assert (prefixes.surprises, prefixes.known(["a"], prompt(SYSTEM))) == (0, {"a": len(SYSTEM)})


def test_a_small_cache_is_found_out() -> None:
    """An engine that holds 500 blocks, of which this gateway could remember 10,000: what it says of itself is soon as true."""
    prefixes, cache, dice = Prefixes(), dict[bytes, None](), random.Random(3)
    texts = [[dice.randbytes(FINE_BYTES) for _ in range(30)] for _ in range(40)]
    wrong = []
    for _ in range(600):
        text = dice.choice(texts)
        asked = prompt(*text)
        believed = prefixes.known(["a"], asked).get("a", 0) // FINE_BYTES
        found = next((index for index, block in enumerate(text) if block not in cache), len(text))
        for block in reversed(text):
            cache.pop(block, None)
            cache[block] = None
        while len(cache) > 500:
            del cache[next(iter(cache))]
        prefixes.answered(prefixes.sent("a", asked), TOKENS, found * TOKENS // len(text))
        wrong.append(abs(believed - found) / len(text))
    assert sum(wrong[:100]) / 100 < 0.4
    assert sum(wrong[200:]) / 400 < 0.12
    assert prefixes.blocks() * FINE_BYTES > CAPACITY_MIN_BYTES
