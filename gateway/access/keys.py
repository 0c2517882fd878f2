"""API keys: `fare_live_`, 37 random base62 characters, and a 6-character checksum that turns typos and junk away."""

import hashlib
import hmac
import secrets
import string
import zlib

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
PREFIX = "fare_live_"
RANDOM_LENGTH = 37  # 220 bits
CHECKSUM_LENGTH = 6  # 62^6 > 2^32: room for a CRC32
KEY_LENGTH = len(PREFIX) + RANDOM_LENGTH + CHECKSUM_LENGTH

# Enough to recognise a key in a list, and of no use to a thief.
SHOWN_PREFIX_LENGTH = len(PREFIX) + 4
SHOWN_END_LENGTH = 4

_LETTERS = frozenset(ALPHABET)


def mint() -> str:
    """A new key. It is shown to its owner once and kept nowhere; only `digest` of it is."""
    body = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + _checksum(body)


def looks_valid(token: str) -> bool:
    """Cheap, and says nothing about whether the key exists: right length, letters and checksum."""
    if len(token) != KEY_LENGTH or not token.startswith(PREFIX):
        return False
    body, checksum = token[:-CHECKSUM_LENGTH], token[-CHECKSUM_LENGTH:]
    return _LETTERS.issuperset(token[len(PREFIX) :]) and checksum == _checksum(body)


def digest(pepper: str, token: str) -> bytes:
    """HMAC-SHA256 of the key: what is stored and looked up, worthless without the pepper."""
    return hmac.digest(pepper.encode(), token.encode(), hashlib.sha256)


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    letters = ""
    for _ in range(CHECKSUM_LENGTH):
        number, place = divmod(number, len(ALPHABET))
        letters = ALPHABET[place] + letters
    return letters
