"""Passwords: hashed and compared off the event loop, one at a time, with a bounded line."""

import asyncio
import threading
import unicodedata
from collections.abc import Iterator
from typing import Literal

import pytest
from argon2 import PasswordHasher

from tarazu.service.passwords import (
    LENGTH_MAX,
    LENGTH_MIN,
    OF_LINE_MAX,
    RAW_LENGTH_MAX,
    Passwords,
    PasswordsBusyError,
    Place,
    Room,
    may_be_password,
)
from tests.support.patience import PATIENCE_S
from tests.support.people import CHEAP

ADA = Place(Room.KNOWN_HOLDERS, "acc_ada")
TURNS_LEAST = 50
"""Turns of an event loop that is not kept from turning, while a core works on a password for a tenth of a second."""


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    """Make it with the settings that are in force."""
    passwords = Passwords()
    yield passwords
    passwords.close()


@pytest.fixture
def cheap() -> Iterator[Passwords]:
    """Make it with settings that take no time."""
    passwords = Passwords(CHEAP)
    yield passwords
    passwords.close()


class Held(PasswordHasher):
    """Hashes when it is let go on, and counts how many do so at once."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.go_on = threading.Event()
        self.at_once: list[int] = []
        self._working = 0

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        """Wait, then hash."""
        self._working += 1
        self.at_once.append(self._working)
        assert self.go_on.wait(PATIENCE_S)
        hash_ = super().hash(password, salt=salt)
        self._working -= 1
        return hash_


def test_a_password_matches_its_own_hash_alone(passwords: Passwords) -> None:
    """The hash is argon2id, with a salt of its own, and nothing of the password is in it."""

    async def run() -> None:
        hash_ = await passwords.hash("correct horse", ADA)
        assert hash_.startswith("$argon2id$")
        assert await passwords.matches("correct horse", hash_, ADA)
        assert not await passwords.matches("correct horsf", hash_, ADA)

    asyncio.run(run())


def test_nobody_has_no_password(cheap: Passwords) -> None:
    """Without a hash to compare with, no password is right."""
    assert not asyncio.run(cheap.matches("correct horse", None, ADA))


def test_a_password_of_nobody_costs_a_hash_too() -> None:
    """So that the time tells nobody who is there."""
    held = Held()
    passwords = Passwords(held)
    held.go_on.set()
    assert not asyncio.run(passwords.matches("correct horse", None, ADA))
    assert held.at_once == [1]
    passwords.close()


def test_the_same_word_typed_on_another_keyboard_matches(cheap: Passwords) -> None:
    """One writes é as one character, another as two."""
    composed, decomposed = (unicodedata.normalize(form, "café olé olé") for form in ("NFC", "NFD"))

    async def run() -> None:
        assert composed != decomposed
        assert await cheap.matches(decomposed, await cheap.hash(composed, ADA), ADA)

    asyncio.run(run())


@pytest.mark.parametrize("long", ["a" + "\u0344" * 5_400 + "\u0327" * 5_400, "a" * (RAW_LENGTH_MAX + 1)])
def test_what_is_too_long_to_be_one_is_not_made_into_one(
    cheap: Passwords, monkeypatch: pytest.MonkeyPatch, long: str
) -> None:
    """Unicode's form of a text takes the square of its length; a guess that is too long costs a hash like any other."""
    longest = []

    def normalized(form: Literal["NFKC"], text: str) -> str:
        longest.append(len(text))
        return unicodedata.normalize(form, text)

    monkeypatch.setattr("tarazu.service.passwords.normalize", normalized)

    async def run() -> None:
        hash_ = await cheap.hash("", ADA)
        assert not may_be_password(long)
        assert not await cheap.matches(long, hash_, ADA)

    asyncio.run(run())
    assert max(longest) <= RAW_LENGTH_MAX


def test_the_longest_password_may_be_typed_in_its_parts(cheap: Passwords) -> None:
    """As many characters as any keyboard writes for LENGTH_MAX of them."""
    parts = unicodedata.normalize("NFD", "\u1f82" * LENGTH_MAX)
    assert len(parts) == RAW_LENGTH_MAX
    assert may_be_password(parts)
    assert asyncio.run(cheap.matches(parts, asyncio.run(cheap.hash("\u1f82" * LENGTH_MAX, ADA)), ADA))


def test_the_event_loop_turns_while_a_password_is_hashed(passwords: Passwords) -> None:
    """Other requests are served meanwhile."""

    async def run() -> None:
        hashing = asyncio.ensure_future(passwords.hash("correct horse", ADA))
        turns = 0
        while not hashing.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= TURNS_LEAST

    asyncio.run(run())


def test_one_is_hashed_at_a_time_and_one_more_than_may_wait_is_refused_at_once() -> None:
    """The others are served, also those behind one whose caller has left; then there is room again."""
    held = Held()
    passwords = Passwords(held)

    async def run() -> None:
        waiting = [asyncio.ensure_future(passwords.hash("correct horse", ADA)) for _ in range(1 + OF_LINE_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(PasswordsBusyError):
            await passwords.hash("correct horse", ADA)
        with pytest.raises(PasswordsBusyError):
            await passwords.matches("correct horse", None, ADA)
        waiting.pop().cancel()
        held.go_on.set()
        await asyncio.gather(*waiting)
        assert set(held.at_once) == {1}
        await passwords.hash("correct horse", ADA)

    asyncio.run(run())
    passwords.close()


def test_nothing_begins_after_the_end(cheap: Passwords) -> None:
    """Whoever asks then is told to come back."""
    cheap.close()
    with pytest.raises(PasswordsBusyError, match="stopping"):
        asyncio.run(cheap.hash("correct horse", ADA))


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        ("x" * (LENGTH_MIN - 1), False),
        ("x" * LENGTH_MIN, True),
        ("x" * LENGTH_MAX, True),
        ("x" * (LENGTH_MAX + 1), False),
        ("گذرواژهٔ من", True),
        (" " * LENGTH_MIN, True),
        ("x" * LENGTH_MIN + "\ud83d", False),
    ],
)
def test_a_new_password_has_bounds_of_length_alone(text: str, may_be: bool) -> None:  # noqa: FBT001 - a case
    """Characters of any script may be in it; half a character is no text."""
    assert may_be_password(text) is may_be
