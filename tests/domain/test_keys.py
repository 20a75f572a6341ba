"""API keys: what is minted can be parsed, and nothing else can (decisions, Keys)."""

import re
import sys
from hashlib import sha256

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tarazu.domain.keys import ADMIN_TOKEN, ALPHABET, API_KEY, ENTROPY_BYTES, KEY_LENGTH, base62, mint, parse
from tests.support.values import key_text

entropies = st.binary(min_size=ENTROPY_BYTES, max_size=ENTROPY_BYTES)


@given(entropies)
def test_a_minted_key_parses_to_its_own_id_and_digest(entropy: bytes) -> None:
    """What is handed out is what will be recognised."""
    minted = mint(entropy)
    parsed = parse(minted.text)
    assert parsed is not None
    assert (parsed.id, parsed.digest) == (minted.id, minted.digest)


@given(entropies)
def test_a_key_has_the_shape_of_the_decisions(entropy: bytes) -> None:
    """`trz_`, 12 characters of id, 32 of secret, 6 of checksum, all base62; the id is `key_` and those 12."""
    minted = mint(entropy)
    shape = re.fullmatch(r"trz_([0-9A-Za-z]{12})([0-9A-Za-z]{32})([0-9A-Za-z]{6})", minted.text)
    assert shape is not None
    assert minted.id == "key_" + shape[1]
    assert minted.digest == sha256(shape[2].encode()).digest()


@given(entropies)
def test_an_admin_token_is_a_key_of_another_kind(entropy: bytes) -> None:
    """The same with `tra_`, and `tok_` before its id. Neither passes for the other, not even with its prefix."""
    token, key = mint(entropy, ADMIN_TOKEN), mint(entropy)
    parsed = parse(token.text, ADMIN_TOKEN)
    assert parsed is not None
    assert (parsed.id, parsed.digest) == (token.id, token.digest)
    assert (token.text[:4], token.id[:4], token.id[4:]) == ("tra_", "tok_", token.text[4:16])
    assert parse(token.text) is parse(key.text, ADMIN_TOKEN) is None
    assert parse(API_KEY.prefix + token.text[4:]) is parse(ADMIN_TOKEN.prefix + key.text[4:], ADMIN_TOKEN) is None


@given(entropies, entropies)
def test_different_randomness_gives_different_keys(one: bytes, other: bytes) -> None:
    """Neither secret nor id is shared by two keys minted apart."""
    assume(one != other and int.from_bytes(one, "big") % 62**44 != int.from_bytes(other, "big") % 62**44)
    assert mint(one).text != mint(other).text


def test_minting_refuses_too_little_randomness() -> None:
    """A short read of the random source makes no weak key."""
    with pytest.raises(ValueError, match="48 random bytes"):
        mint(b"x" * (ENTROPY_BYTES - 1))


@given(entropies, st.integers(0, KEY_LENGTH - 1), st.characters(codec="ascii"))
def test_the_checksum_catches_every_change_of_one_character(entropy: bytes, place: int, character: str) -> None:
    """One mistyped character, wherever it is, and the key is refused without a look-up."""
    text = mint(entropy).text
    assume(text[place] != character)
    assert parse(text[:place] + character + text[place + 1 :]) is None


def test_the_checksum_catches_each_single_change_of_one_key() -> None:
    """As above, but leaving none of the 54 x 62 changes out."""
    text = key_text()
    changed = [
        text[:place] + character + text[place + 1 :]
        for place in range(KEY_LENGTH)
        for character in ALPHABET
        if text[place] != character
    ]
    assert [each for each in changed if parse(each) is not None] == []


@given(entropies, st.integers(0, KEY_LENGTH - 2))
def test_the_checksum_catches_neighbours_that_changed_places(entropy: bytes, place: int) -> None:
    """Two characters typed in the wrong order are caught too."""
    text = mint(entropy).text
    assume(text[place] != text[place + 1])
    assert parse(text[:place] + text[place + 1] + text[place] + text[place + 2 :]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "trz_",
        key_text()[:-1],
        key_text() + "0",
        " " + key_text(),
        key_text() + " ",
        key_text() + "\n",
        key_text().upper(),
        key_text().replace("trz_", "TRZ_"),
        key_text().replace("trz_", "sk-x"),
        key_text()[:20] + "-" + key_text()[21:],
        key_text()[:20] + "\N{ARABIC-INDIC DIGIT ONE}" + key_text()[21:],
        key_text()[:20] + "\N{LATIN SMALL LETTER E WITH ACUTE}" + key_text()[21:],
    ],
)
def test_a_key_of_another_shape_is_refused(text: str) -> None:
    """Length, prefix and alphabet are exact: no trimming, no other digits, no other case."""
    assert parse(text) is None


@given(st.text())
def test_parsing_never_raises(text: str) -> None:
    """Whatever a header holds, the answer is None: a random text never has a good checksum."""
    assert parse(text) is None


def test_what_is_no_key_is_not_kept() -> None:
    """Anybody may send a text of any length, as often as they like: parsing holds on to none of them."""
    text = API_KEY.prefix + "a" * 10_000
    held = sys.getrefcount(text)
    assert parse(text) is None
    assert sys.getrefcount(text) == held


def test_a_key_matches_its_own_digest_only() -> None:
    """A right id with a wrong secret is no key."""
    presented = parse(key_text(1))
    assert presented is not None
    assert presented.matches(_digest(1))
    assert not presented.matches(_digest(2))


def _digest(number: int) -> bytes:
    """Digest the secret of a key by the decisions' words, not by the code's."""
    return sha256(key_text(number)[16:48].encode()).digest()


def test_the_secret_is_not_in_what_a_log_would_show() -> None:
    """Neither a minted nor a presented key prints its text."""
    minted = mint(b"s" * ENTROPY_BYTES)
    secret = minted.text[16:48]
    assert secret not in repr(minted)
    assert secret not in repr(parse(minted.text))


def test_base62_counts_in_digits_capitals_small_letters() -> None:
    """The alphabet's order is fixed: checksums of keys that are out there depend on it."""
    assert [base62(number, 2) for number in (0, 9, 10, 35, 36, 61, 62, 62 * 62 - 1)] == [
        "00",
        "09",
        "0A",
        "0Z",
        "0a",
        "0z",
        "10",
        "zz",
    ]


def test_a_key_from_an_earlier_release_stays_valid() -> None:
    """The format is frozen: this key was minted by version 0.1.0."""
    text = "trz_iUPCkeK8fsOOHCGbYdCUyWx6xd2ivh2DOxR816N56NAd0DoWa8"
    assert mint(bytes(range(48))).text == text
    assert parse(text) is not None
