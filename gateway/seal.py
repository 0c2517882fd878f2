"""What is kept of a call with an idempotency key, unreadable to whoever reads Valkey: names, fingerprints, sealed answers."""

import hashlib
import hmac
import secrets
import sys
from typing import NamedTuple

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NONCE_BYTES = 12
# Answers are text that repeats itself: a stream is a tenth of its size afterwards, in a millisecond a megabyte.
COMPRESSION_LEVEL = 1


class Scope(NamedTuple):
    """Whose idempotency key it is: nobody else's finds or opens it."""

    account: str
    key: str
    idempotency_key: bytes


class Recorded(NamedTuple):
    """An answer as it left."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Unreadable(Exception):
    """It was sealed with another pepper, for another scope, or is damaged."""


class Seal:
    """Every scope has a cipher key of its own, drawn from the pepper that API keys are hashed with (HKDF, RFC 5869)."""

    def __init__(self, pepper: str) -> None:
        self._root = HKDF(SHA256(), 32, None, b"faregate idempotency root").derive(pepper.encode())

    def name(self, scope: Scope) -> str:
        return hmac.digest(self._root, b"name\0" + _bytes(scope), hashlib.sha256).hex()[:32]

    def fingerprint(self, path: str, body: bytes) -> str:
        """Of what was asked: a plain hash would tell who guesses a prompt that he is right."""
        found = hashlib.blake2b(path.encode() + b"\0", key=self._root, digest_size=16)
        found.update(body)
        return found.hexdigest()

    def close(self, scope: Scope, recorded: Recorded) -> bytes:
        head = orjson.dumps([recorded.status, [[name.decode(), value.decode("latin-1")] for name, value in recorded.headers]])
        packed = zstd.compress(head + b"\n" + recorded.body, COMPRESSION_LEVEL)
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._cipher(scope).encrypt(nonce, packed, _bytes(scope))

    def open(self, scope: Scope, sealed: bytes) -> Recorded:
        """Raises: Unreadable."""
        try:
            packed = self._cipher(scope).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _bytes(scope))
        except (InvalidTag, ValueError):
            raise Unreadable from None
        head, _, body = zstd.decompress(packed).partition(b"\n")
        status, headers = orjson.loads(head)
        return Recorded(status, [(name.encode(), value.encode("latin-1")) for name, value in headers], body)

    def _cipher(self, scope: Scope) -> AESGCM:
        return AESGCM(HKDF(SHA256(), 32, None, b"faregate idempotency answer\0" + _bytes(scope)).derive(self._root))


def _bytes(scope: Scope) -> bytes:
    """Account and key are UUIDs, so the parts can't run into each other."""
    return b"/".join((scope.account.encode(), scope.key.encode(), scope.idempotency_key))
