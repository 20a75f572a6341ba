"""Which passwords nobody may choose, since they are among the first that are tried. Pure.

The length is a matter of `service/passwords.py`; this is about what stands in a password that is long enough.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from unicodedata import category, decimal, normalize

SERVICE_NAMES = ("tarazu", "ترازو")
DIFFERENT_MIN = 4
"""With fewer different characters a password is refused: `aaaaaaaaab`."""
GROUP_LENGTH_MAX = 4
"""A password that is a group of so many characters, over and over, is refused: `abcabcabcabc`."""
RUN_SHARE = 0.7
"""So much of a password may not be one run of digits, letters or neighbouring keys: `1234567890x`."""
OWN_LENGTH_MIN = 4
"""A shorter name or part of an address may stand in a password."""
OWN_REST_MIN = 6
"""So many characters besides the own email, name or that of the service make a password of one's own."""

_ROWS = (
    "0123456789",
    "1234567890",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiop",
    "yxcvbnm",
    "azertyuiop",
    "qsdfghjklm",
    "wxcvbn",
    "qazwsxedcrfvtgbyhnujmikolp",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "1q2w3e4r5t6y7u8i9o0p",
    "ضصثقفغعهخحجچ",
    "شسیبلاتنمکگ",
    "ظطزرذدپو",
    "ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی",
)


class PasswordFault(StrEnum):
    """Why a password may not be chosen."""

    COMMON = "common"
    """It is one of the commonest."""
    OWN = "own"
    """It is the own email, name, or the name of the service, and little else."""
    REPEATED = "repeated"
    """It is one character, or a short group, over and over."""
    SAME = "same"
    """It is the one that it is to replace."""
    RUN = "run"
    """It is a run of digits, of letters, or of keys that lie beside each other."""


def password_fault(password: str, *, own: Iterable[str], is_common: Callable[[str], bool]) -> PasswordFault | None:
    """Tell why a password may not be chosen; None: it may. `own` are email and name of who chooses it."""
    plain = _plain(password)
    checks = (
        (PasswordFault.REPEATED, _is_repeated(plain)),
        (PasswordFault.RUN, _is_run(plain)),
        (PasswordFault.OWN, _is_own(plain, own)),
        (PasswordFault.COMMON, is_common(plain)),
    )
    return next((fault for fault, is_met in checks if is_met), None)


def _is_repeated(plain: str) -> bool:
    """Tell whether it is a few characters, or repeats a short group to its end, the last time perhaps cut off."""
    return len(set(plain)) < DIFFERENT_MIN or any(
        plain == (plain[:size] * len(plain))[: len(plain)] for size in range(1, GROUP_LENGTH_MAX + 1)
    )


def _is_run(plain: str) -> bool:
    """Tell whether the longest run in it is most of it; two runs one behind the other are one."""
    covered = 0
    start = 0
    while start < len(plain):
        length = max(_run_length(plain, start, row) for row in _RUNS)
        covered += length if length >= OWN_LENGTH_MIN else 0
        start += length if length >= OWN_LENGTH_MIN else 1
    return covered >= RUN_SHARE * len(plain)


def _run_length(plain: str, start: int, row: str) -> int:
    """Tell how many characters from `start` on follow each other in the row."""
    length = 1
    place = row.find(plain[start])
    while (
        place >= 0 and start + length < len(plain) and row[place + length : place + length + 1] == plain[start + length]
    ):
        length += 1
    return length


def _is_own(plain: str, own: Iterable[str]) -> bool:
    """Tell whether little is left where all that an attacker knows of a person is taken out."""
    known = [_plain(text) for text in (*own, *SERVICE_NAMES)]
    parts = {part for text in known for part in (text, _letters(text), *_words(text)) if len(part) >= OWN_LENGTH_MIN}
    rest = plain
    for part in sorted(parts, key=len, reverse=True):
        rest = rest.replace(part, "")
    return rest != plain and len(rest) < OWN_REST_MIN


def _words(text: str) -> list[str]:
    """Cut a name or an address at what is neither letter nor digit; the part before the @ is one too."""
    local = text.partition("@")[0]
    return [local, *"".join(each if each.isalnum() else " " for each in text).split()]


def _letters(text: str) -> str:
    """Leave out what is neither letter nor digit."""
    return "".join(filter(str.isalnum, text))


def _plain(text: str) -> str:
    """Write it in one form: small letters, digits of one script, without what nobody sees."""
    seen = (each for each in normalize("NFKC", text).casefold().strip() if category(each) != "Cf")
    return "".join(str(decimal(each, each)) for each in seen)


_RUNS = tuple(run for row in _ROWS for run in (row, row[::-1]))
