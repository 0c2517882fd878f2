"""Two prompts have as many blocks in common as they begin alike."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.prefix import COARSE_BYTES, FINE_BLOCKS, FINE_BYTES, NO_PROMPT, READ_MAX_BYTES, blocks_in, bytes_of, read_prompt

FINE_END = FINE_BYTES * FINE_BLOCKS
LONG = os.urandom(FINE_END + 5 * COARSE_BYTES)


def common(one: bytes, other: bytes) -> int:
    pairs = zip(read_prompt(one).chain, read_prompt(other).chain, strict=False)
    shorter = blocks_in(min(len(one), len(other)))
    return next((index for index, (left, right) in enumerate(pairs) if left != right), shorter)


@given(st.integers(0, len(LONG)), st.integers(0, len(LONG)))
def test_all_that_is_alike_is_seen_and_no_more(begins: int, ends: int) -> None:
    shared = LONG[:begins]
    assert common(shared + b"x" * 5000, shared + b"y" * ends) == blocks_in(begins)


def test_one_byte_changes_all_that_follows_and_nothing_before() -> None:
    at = 10 * FINE_BYTES + 3
    changed = LONG[:at] + bytes([LONG[at] ^ 1]) + LONG[at + 1 :]
    before, after = read_prompt(LONG).chain, read_prompt(changed).chain
    assert before[:10] == after[:10]
    assert not set(before[10:]) & set(after)


def test_the_same_words_of_another_account_are_other_blocks() -> None:
    mine, theirs = read_prompt(LONG, "mine"), read_prompt(LONG, "theirs")
    assert not set(mine.chain) & set(theirs.chain)
    assert mine.mark != theirs.mark


@pytest.mark.parametrize("size", [0, 1, FINE_BYTES - 1])
def test_what_is_shorter_than_a_block_is_nothing(size: int) -> None:
    assert read_prompt(b"x" * size) == NO_PROMPT


def test_blocks_and_bytes_count_the_same() -> None:
    for blocks in (0, 1, FINE_BLOCKS - 1, FINE_BLOCKS, FINE_BLOCKS + 1, FINE_BLOCKS + 40):
        assert blocks_in(bytes_of(blocks)) == blocks
        assert len(read_prompt(b"z" * bytes_of(blocks)).chain) == blocks


def test_what_comes_after_half_a_megabyte_is_not_read() -> None:
    one, other = (read_prompt(b"z" * READ_MAX_BYTES + end * COARSE_BYTES) for end in (b"x", b"y"))
    assert (one.chain, one.size) == (other.chain, READ_MAX_BYTES + COARSE_BYTES)
    assert len(one.chain) == blocks_in(READ_MAX_BYTES) == 248


def test_another_process_has_other_hashes_and_the_same_mark() -> None:
    """So nobody finds out what collides, and two gateways still agree on a prompt's home."""
    program = "from backends.prefix import read_prompt; p = read_prompt(b'q' * 600, 's'); print(p.chain[0], p.mark)"
    told = [
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split() for _ in "ab"
    ]
    assert told[0][0] != told[1][0]
    assert told[0][1] == told[1][1] == str(read_prompt(b"q" * 600, "s").mark)
