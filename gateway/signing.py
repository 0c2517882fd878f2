"""How a webhook of ours proves that it is ours: Standard Webhooks 1.0 (HMAC-SHA256 over its id, its time and its body)."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SALT_BYTES = 16


def signing_secret(pepper: str, account_id: UUID, salt: bytes) -> bytes:
    """Drawn from the pepper that keys are hashed with (HKDF, RFC 5869), so it is stored nowhere; another salt, another secret."""
    return HKDF(SHA256(), 32, salt, b"faregate webhook\0" + account_id.bytes).derive(pepper.encode())


def spelled(secret: bytes) -> str:
    """As libraries of Standard Webhooks take it."""
    return f"whsec_{base64.b64encode(secret).decode()}"


def signed(secret: bytes, message_id: str, at_seconds: int, body: bytes) -> Mapping[str, str]:
    """The headers that go with the body."""
    content = b".".join((message_id.encode(), str(at_seconds).encode(), body))
    signature = base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(at_seconds), "webhook-signature": f"v1,{signature}"}
