"""The spelling of keys: minted ones look valid, anything a letter off does not, and the digest needs the pepper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.keys import ALPHABET, KEY_LENGTH, digest, looks_valid, mint


def test_minted_keys_look_valid_and_differ() -> None:
    minted = {mint() for _ in range(100)}
    assert len(minted) == 100
    assert all(looks_valid(key) and len(key) == KEY_LENGTH == 53 and key.startswith("fare_live_") for key in minted)


@given(place=st.integers(0, KEY_LENGTH - 1), letter=st.sampled_from(ALPHABET + "_-é "))
def test_one_wrong_letter_is_seen(place: int, letter: str) -> None:
    key = mint()
    changed = key[:place] + letter + key[place + 1 :]
    assert looks_valid(changed) == (changed == key)


@pytest.mark.parametrize("junk", ["", "fare_live_", "sk-" + "a" * 50, "fare_live_" + "a" * 43, "x" * 10_000])
def test_junk_is_not_a_key(junk: str) -> None:
    assert not looks_valid(junk)


def test_a_letter_more_or_less_is_seen() -> None:
    key = mint()
    assert not looks_valid(key + "a")
    assert not looks_valid(key[:-1])


def test_a_digest_is_of_key_and_pepper() -> None:
    key = mint()
    assert len(digest("a" * 32, key)) == 32
    assert digest("a" * 32, key) == digest("a" * 32, key)
    assert len({digest("a" * 32, key), digest("b" * 32, key), digest("a" * 32, mint())}) == 3
