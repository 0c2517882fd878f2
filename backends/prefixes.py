"""Which beginnings of prompts each replica has in its cache, as far as this gateway's own calls tell."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from backends.prefix import COARSE_BYTES, FINE_BLOCKS, FINE_BYTES, Prompt, blocks_in, bytes_of

# A block is an entry of an ordered dictionary, with two numbers: 201 bytes were measured.
ENTRY_BYTES = 208
# Of each replica. 10,082 blocks are 2.5 MB of prompts of up to 32 KB, some 640,000 tokens, or more of longer ones.
MEMORY_BYTES = 2 * 1024 * 1024
BLOCKS_MAX = MEMORY_BYTES // ENTRY_BYTES
# A cache is never taken for smaller: one long prompt.
CAPACITY_MIN_BYTES = 32 * 1024
# An engine that counts less than half of what was expected has lost what is as old. Below so much it tells nothing: engines
# round down to whole blocks, of up to 128 tokens.
SURPRISE_BYTES = 2048
# What a cache holds is believed a quarter smaller after each such loss, and larger by an eighth of what is written into it.
SHRINK, GROW = 0.75, 0.125


@dataclass(slots=True)
class Sent:
    """One call on its way to a replica: what was known of its prompt there before, in blocks, and since when."""

    replica: str
    prompt: Prompt
    known: int
    touched: int


@dataclass(slots=True)
class _Cache:
    """Least recently used first; of one prompt its end before its beginning, as engines evict it. So the known blocks of a chain
    are always its first. An entry is when it was last used (`clock`, in blocks written), times two, and 1 if it is a coarse one.
    """

    entries: OrderedDict[int, int] = field(default_factory=OrderedDict)
    held: int = 0  # bytes of prompts
    capacity: float = float("inf")
    clock: int = 0
    counts: bool = False  # whether the engine has ever said how much it found


class Prefixes:
    """One gateway's memory. A replica that is not in it has nothing in its cache that we know of."""

    def __init__(self, blocks_max: int = BLOCKS_MAX) -> None:
        self._caches: dict[str, _Cache] = {}
        self._blocks_max = blocks_max
        self.surprises = 0

    def known(self, replica_ids: Iterable[str], prompt: Prompt) -> dict[str, int]:
        """Of a prompt, the bytes that each replica has; only of those that have any."""
        chain = prompt.chain
        if not chain:
            return {}
        first, found = chain[0], {}
        for replica_id in replica_ids:
            cache = self._caches.get(replica_id)
            if cache is not None and first in cache.entries:
                found[replica_id] = bytes_of(_known_blocks(cache.entries, chain))
        return found

    def sent(self, replica_id: str, prompt: Prompt) -> Sent:
        """It is on its way, and what comes next may follow it: engines let requests share blocks that are being computed."""
        cache = self._caches.get(replica_id)
        if cache is None:
            cache = self._caches[replica_id] = _Cache()
        chain, entries = prompt.chain, cache.entries
        known = _known_blocks(entries, chain)
        touched = entries[chain[known - 1]] >> 1 if known else 0
        cache.clock += 1
        for index in range(len(chain) - 1, -1, -1):
            is_coarse = index >= FINE_BLOCKS
            entries[chain[index]] = cache.clock << 1 | is_coarse
            entries.move_to_end(chain[index])
        written = bytes_of(len(chain)) - bytes_of(known)
        cache.held += written
        cache.capacity += written * GROW
        self._keep_within(cache)
        return Sent(replica_id, prompt, known, touched)

    def failed(self, sent: Sent) -> None:
        """It did not come as far as to an output: its prompt was never computed, or nobody knows."""
        cache = self._caches.get(sent.replica)
        if cache is None:
            return
        for index in range(sent.known, len(sent.prompt.chain)):
            entry = cache.entries.pop(sent.prompt.chain[index], None)
            if entry is not None:
                cache.held -= _bytes(entry)

    def answered(self, sent: Sent, prompt_tokens: int | None, cached_tokens: int | None) -> None:
        """By the engine's own counts. One that leaves out a count of nothing is known by its other counts."""
        cache = self._caches.get(sent.replica)
        if cache is None:
            return
        cache.counts = cache.counts or bool(cached_tokens)
        expected = bytes_of(sent.known)
        if not cache.counts or not prompt_tokens or expected < SURPRISE_BYTES:
            return
        found = sent.prompt.size * (cached_tokens or 0) // prompt_tokens
        if found < expected // 2 and blocks_in(found) < sent.known:
            self.surprises += 1
            _lose(cache, sent.touched)

    def forget(self, replica_id: str) -> None:
        """Its engine is another process now, or gone."""
        self._caches.pop(replica_id, None)

    def blocks(self) -> int:
        return sum(len(cache.entries) for cache in self._caches.values())

    def _keep_within(self, cache: _Cache) -> None:
        entries = cache.entries
        while len(entries) > self._blocks_max or cache.held > cache.capacity:
            cache.held -= _bytes(entries.popitem(last=False)[1])


def _known_blocks(entries: OrderedDict[int, int], chain: tuple[int, ...]) -> int:
    """How many of its first blocks; they are known without a gap, so the last one is searched for by halves."""
    low, high = 0, len(chain)
    while low < high:
        middle = (low + high) // 2
        if chain[middle] in entries:
            low = middle + 1
        else:
            high = middle
    return low


def _lose(cache: _Cache, touched: int) -> None:
    """What was used last when that was, or before, is gone too: an engine evicts by age, or was started anew."""
    believed, entries = min(cache.capacity, cache.held), cache.entries
    while entries:
        link, entry = next(iter(entries.items()))
        if entry >> 1 > touched:
            break
        cache.held -= _bytes(entry)
        del entries[link]
    cache.capacity = max(CAPACITY_MIN_BYTES, cache.held, believed * SHRINK)


def _bytes(entry: int) -> int:
    return COARSE_BYTES if entry & 1 else FINE_BYTES
