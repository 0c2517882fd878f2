"""Whose prefix cache a call uses: each account has a salt of its own, told to engines that part their cache by one."""

import hashlib
from types import MappingProxyType
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from backends.fleet import Replica

# What the field is called. vLLM puts it into the hash of a prompt's first block, and each block's hash has the one before it in
# it; it takes at most 128 characters, without @, / and \ (0.32.0). SGLang's own `cache_salt` is of chats and completions alone.
SALT_FIELDS = MappingProxyType({"vllm": "cache_salt", "sglang": "extra_key"})


class Salts:
    """Drawn from the pepper that keys are hashed with: the same on all gateways and after a restart, and nobody's guess. Else
    the time to a first token would tell one customer what another one has sent."""

    def __init__(self, pepper: str, *, shared: bool) -> None:
        """`shared`: the operator wants one cache for all, so none is told."""
        self._root = None if shared else HKDF(SHA256(), 32, None, b"faregate prefix cache").derive(pepper.encode())

    def put_in(self, body: dict[str, Any], replica: Replica, account: str) -> None:
        field = SALT_FIELDS.get(replica.engine.name)
        if field is not None and self._root is not None:
            body[field] = hashlib.blake2b(account.encode(), key=self._root, digest_size=16).hexdigest()

    def seed(self, replica: Replica, account: str) -> str:
        """What two prompts must have in common to share a cache there, besides their beginnings."""
        return account if self._root is not None and replica.engine.name in SALT_FIELDS else ""
