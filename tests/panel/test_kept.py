"""What a browser keeps between a form and its answer: for one page, of one session, and never a password."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tarazu.panel import kept as kept_module
from tarazu.panel.kept import COOKIE_CHARACTERS_MAX, NEVER_KEPT, OPEN_KINDS, Kept, Kind, seal, to_keep, unseal
from tarazu.panel.refusals import Refused

TEXTS = st.text(max_size=20)
KEPT = st.builds(
    Kept,
    id=TEXTS,
    kind=st.sampled_from(Kind),
    fields=st.lists(st.tuples(TEXTS, TEXTS), max_size=5).map(tuple),
    refused=st.none() | st.builds(Refused, status=st.just(422), text=TEXTS, values=st.dictionaries(TEXTS, TEXTS)),
)
TEMPLATES = Path(kept_module.__file__).parent / "templates"
SECRET_FIELD = re.compile(r'field\("(\w+)".*(?:type="password"|autocomplete="one-time-code")')


@given(KEPT, TEXTS, TEXTS)
def test_what_is_kept_is_there_for_its_page_and_session(kept: Kept, path: str, secret: str) -> None:
    """As it was, to the last character."""
    sealed = seal(kept, path, secret)
    assert sealed is not None
    assert len(sealed) <= COOKIE_CHARACTERS_MAX
    assert unseal(sealed, path, secret) == kept


@given(KEPT, TEXTS, TEXTS, TEXTS)
def test_nothing_is_there_for_another_page(kept: Kept, path: str, other: str, secret: str) -> None:
    """Whatever it is."""
    sealed = seal(kept, path, secret)
    assert sealed is not None
    assert path == other or unseal(sealed, other, secret) == Kept()


@given(KEPT, TEXTS, TEXTS)
def test_another_session_has_what_tells_nothing(kept: Kept, secret: str, other: str) -> None:
    """A notice, and a form that nobody could take; no refused form, and nothing that is shown once."""
    sealed = seal(kept, "/page", secret)
    assert sealed is not None
    expected = kept if secret == other or kept.kind in OPEN_KINDS else Kept()
    assert unseal(sealed, "/page", other) == expected


@given(KEPT, st.data())
def test_what_was_changed_is_nothing(kept: Kept, data: st.DataObject) -> None:
    """By one character, or cut off, or written by somebody who does not have the session."""
    sealed = seal(kept, "/page", "secret")
    assert sealed is not None
    place = data.draw(st.integers(0, len(sealed) - 1))
    assert unseal(sealed[:place], "/page", "secret") == Kept()
    other = data.draw(st.sampled_from("abcXYZ019-_=").filter(lambda letter: letter != sealed[place]))
    changed = sealed[:place] + other + sealed[place + 1 :]
    assert unseal(changed, "/page", "secret") in (Kept(), kept)  # the last bits of base64 mean nothing
    if kept.kind not in OPEN_KINDS:
        forged = seal(kept, "/page", "")
        assert forged is not None
        assert unseal(forged, "/page", "secret") == Kept()


@given(st.text())
def test_anything_else_is_nothing(text: str) -> None:
    """Whatever somebody has written into the cookie."""
    assert unseal(text, "/page", "secret") == Kept()


def test_what_is_too_large_is_not_kept() -> None:
    """Neither what a cookie cannot hold, nor what would become large when it is read."""
    for text in ("".join(map(chr, range(0x4E00, 0x4E00 + 2_000))), "x" * 100_000):
        assert seal(Kept(fields=(("prompt", text),)), "/page", "") is None


def test_no_password_and_no_code_is_kept() -> None:
    """The templates are looked through for the fields in which people write them."""
    found = {name for page in TEMPLATES.rglob("*.html") for name in SECRET_FIELD.findall(page.read_text())}
    assert {"password", "old", "new", "code", "confirm_password", "confirm_code"} <= found
    assert found <= NEVER_KEPT
    assert to_keep((("name", "a"), *((name, "secret") for name in sorted(NEVER_KEPT)))) == (("name", "a"),)
