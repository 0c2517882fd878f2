"""A kept answer is opened by its own account, key and idempotency key alone, and by none but this installation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.seal import Recorded, Scope, Seal, Unreadable

SEAL = Seal("a pepper of thirty-two characters")
SCOPE = Scope("account", "key", b"once")
ANSWER = Recorded(200, [(b"content-type", b"text/event-stream"), (b"x-faregate-fare", b"1")], b'data: {"a":"b"}\n\n' * 50)


@given(st.binary(max_size=5000), st.lists(st.tuples(st.sampled_from([b"a", b"x-b"]), st.binary(max_size=20)), max_size=4))
def test_an_answer_comes_back_as_it_was(body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    recorded = Recorded(200, headers, body)
    assert SEAL.open(SCOPE, SEAL.close(SCOPE, recorded)) == recorded


@pytest.mark.parametrize(
    "other", [Scope("other", "key", b"once"), Scope("account", "other", b"once"), Scope("account", "key", b"twice")]
)
def test_nobody_else_opens_it(other: Scope) -> None:
    sealed = SEAL.close(SCOPE, ANSWER)
    with pytest.raises(Unreadable):
        SEAL.open(other, sealed)
    assert SEAL.name(other) != SEAL.name(SCOPE)


def test_another_pepper_opens_nothing_and_finds_nothing() -> None:
    other = Seal("another pepper of as many letters")
    with pytest.raises(Unreadable):
        other.open(SCOPE, SEAL.close(SCOPE, ANSWER))
    assert other.name(SCOPE) != SEAL.name(SCOPE)
    assert other.fingerprint("/v1/chat/completions", b"{}") != SEAL.fingerprint("/v1/chat/completions", b"{}")


@pytest.mark.parametrize("damaged", [b"", b"short", bytes(range(100))])
def test_what_is_damaged_or_missing_is_unreadable(damaged: bytes) -> None:
    with pytest.raises(Unreadable):
        SEAL.open(SCOPE, damaged)


def test_one_bit_is_enough() -> None:
    sealed = bytearray(SEAL.close(SCOPE, ANSWER))
    sealed[-1] ^= 1
    with pytest.raises(Unreadable):
        SEAL.open(SCOPE, bytes(sealed))


def test_the_same_answer_is_never_sealed_the_same() -> None:
    assert SEAL.close(SCOPE, ANSWER) != SEAL.close(SCOPE, ANSWER)


def test_a_fingerprint_is_of_path_and_body() -> None:
    one = SEAL.fingerprint("/v1/chat/completions", b"{}")
    assert one == SEAL.fingerprint("/v1/chat/completions", b"{}")
    assert one != SEAL.fingerprint("/v1/completions", b"{}")
    assert one != SEAL.fingerprint("/v1/chat/completions", b"{ }")
