"""A shard: where its keys are, and what this gateway knows of it and owes it."""

from binascii import crc32
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.limits.hold import Hold
    from gateway.limits.outbox import Ending

SHARDS = 64


def shard_of(account: str, shards: int = SHARDS) -> int:
    """Which shard an account's keys, holds and events are in; fixed for an installation."""
    return crc32(account.encode()) % shards


class Shard:
    """Key names under one hash tag, the epoch this gateway believes in, its open holds and the events it keeps."""

    __slots__ = ("epoch", "events", "holds", "kept", "leased_until", "leases", "nonce", "number", "open", "tag", "used_at", "wm")

    def __init__(self, number: int, gateway: str) -> None:
        self.number = number
        self.tag = tag = f"{{s{number:02d}}}"
        self.epoch, self.leases, self.wm, self.events = f"{tag}:epoch", f"{tag}:leases", f"{tag}:wm", f"{tag}:ev"
        self.holds = self.holds_of(gateway)
        self.nonce = ""
        self.leased_until = 0.0  # loop time
        self.used_at = float("-inf")  # loop time of the last call
        self.open: dict[str, Hold] = {}
        self.kept: dict[str, Ending] = {}

    def holds_of(self, gateway: str) -> str:
        return f"{self.tag}:holds:{gateway}"

    def call(self, request_id: str, account: str, key: str) -> tuple[str, str, str]:
        """One call's tombstone, its account's counters and its key's."""
        return f"{self.tag}:x:{request_id}", f"{self.tag}:a:{account}", f"{self.tag}:k:{key}"

    def tombstone(self, request_id: str) -> str:
        return f"{self.tag}:x:{request_id}"

    def once(self, account: str, name: str) -> str:
        """The entry of an idempotency key."""
        return f"{self.tag}:i:{account}:{name}"

    def answers(self, account: str) -> str:
        """Which answers of the account are kept, by when they go."""
        return f"{self.tag}:ia:{account}"

    def account(self, account: str) -> str:
        return f"{self.tag}:a:{account}"

    def key(self, key: str) -> str:
        return f"{self.tag}:k:{key}"
