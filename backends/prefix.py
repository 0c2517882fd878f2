"""A prompt as a chain of hashes: two prompts have as many blocks in common as they begin alike."""

from typing import NamedTuple
from zlib import crc32

# Blocks of 64 tokens, about: small enough that a system prompt of two is seen. Far in, where a few tokens more or less are
# nothing, larger ones: a prompt is 248 blocks at most.
FINE_BYTES, FINE_BLOCKS = 256, 128
COARSE_BYTES = 4096
_FINE_END = FINE_BYTES * FINE_BLOCKS
# Some 128,000 tokens: who has as much in common goes to the same replica, whatever comes then.
READ_MAX_BYTES = 512 * 1024


class Prompt(NamedTuple):
    """What an engine's tokens begin with. `chain`: of each whole block, the hash of all up to its end, this process's own.

    `size` is in bytes. `mark` is the same in every gateway for prompts with the same first block; 0: there is none.
    """

    chain: tuple[int, ...] = ()
    size: int = 0
    mark: int = 0


NO_PROMPT = Prompt()


def read_prompt(text: bytes, seed: str = "") -> Prompt:
    """`seed`: what two prompts must have in common, besides their beginnings, to find each other's work in an engine's cache.

    Python's own hash of bytes is keyed, 64 bits wide, and takes half a millisecond a megabyte: nobody who picks his text picks
    its hash, and a chance meeting costs one prefill.
    """
    size = len(text)
    if size < FINE_BYTES:
        return NO_PROMPT
    link, chain = hash(seed), []
    for begin in range(0, min(size, _FINE_END) - FINE_BYTES + 1, FINE_BYTES):
        link = hash((link, text[begin : begin + FINE_BYTES]))
        chain.append(link)
    if size <= _FINE_END:
        return Prompt(tuple(chain), size, _mark(text, seed))
    for begin in range(_FINE_END, min(size, READ_MAX_BYTES) - COARSE_BYTES + 1, COARSE_BYTES):
        link = hash((link, text[begin : begin + COARSE_BYTES]))
        chain.append(link)
    return Prompt(tuple(chain), size, _mark(text, seed))


def _mark(text: bytes, seed: str) -> int:
    return crc32(text[:FINE_BYTES], crc32(seed.encode())) or 1


def bytes_of(blocks: int) -> int:
    """How much of a prompt its first blocks are."""
    return blocks * FINE_BYTES if blocks <= FINE_BLOCKS else _FINE_END + (blocks - FINE_BLOCKS) * COARSE_BYTES


def blocks_in(size: int) -> int:
    """How many whole blocks so many bytes of a prompt are."""
    return size // FINE_BYTES if size <= _FINE_END else FINE_BLOCKS + (size - _FINE_END) // COARSE_BYTES
