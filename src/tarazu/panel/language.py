"""Which language a page is in: the person's choice, else what the browser asks for. Pure."""

import re
from enum import StrEnum

LANGUAGE_COOKIE = "lang"
ACCEPTED_MAX = 32
"""Languages of an Accept-Language header that are looked at."""

_WEIGHT = re.compile(r"0?\.[0-9]{1,3}|[01](?:\.0{0,3})?", re.ASCII)
"""From 0 to 1, in the digits that HTTP gives it."""


class Language(StrEnum):
    """The languages that pages are in."""

    ENGLISH = "en"
    PERSIAN = "fa"

    @property
    def direction(self) -> str:
        """The way its lines run, as HTML says it."""
        return "rtl" if self is Language.PERSIAN else "ltr"

    @property
    def own_name(self) -> str:
        """What its speakers call it."""
        return "فارسی" if self is Language.PERSIAN else "English"


def known(code: str | None) -> Language | None:
    """Find the language of a code; None when pages are not in it."""
    return next((language for language in Language if language.value == code), None)


def choose(*, saved: str | None, cookie: str | None, accept_language: str) -> Language:
    """Choose by what the person has saved, else by this browser's cookie, else by what the browser prefers."""
    return known(saved) or known(cookie) or preferred(accept_language) or Language.ENGLISH


def preferred(accept_language: str) -> Language | None:
    """Find the language that an Accept-Language header likes best; None when it likes none of ours."""
    weighted = [_weighted(part) for part in accept_language.split(",", ACCEPTED_MAX)[:ACCEPTED_MAX]]
    liked = [(weight, code) for weight, code in weighted if weight > 0 and known(code) is not None]
    best = max(liked, key=lambda pair: pair[0], default=(0.0, ""))  # of equals the first
    return known(best[1])


def _weighted(part: str) -> tuple[float, str]:
    """Take apart one choice, as in `fa-IR;q=0.8`: its weight, and its code without the region."""
    tag, _, weight = part.partition(";")
    code = tag.strip().lower().partition("-")[0]
    name, _, value = weight.partition("=")
    if name.strip() != "q":
        return 1.0, code
    return (float(value) if _WEIGHT.fullmatch(value.strip()) else 0.0), code
