"""What a form may hold."""

from contextlib import suppress
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from tarazu.panel.forms import FIELDS_MAX, Form, parse
from tarazu.service.provisioning_errors import ProvisioningError

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20))
def test_fields_come_as_they_were_written(fields: list[tuple[str, str]]) -> None:
    """In their order, also empty ones, in any script."""
    assert parse(urlencode(fields).encode()) == Form(tuple(fields))


@pytest.mark.parametrize("body", [b"a=%ff", b"a=\xd9\x81", b"a=%00", b"a%00=b", b"&".join([b"a=1"] * (FIELDS_MAX + 1))])
def test_what_no_browser_sends_is_refused(body: bytes) -> None:
    """No text, a NUL, or more fields than any page has."""
    with pytest.raises(HTTPException) as refused:
        parse(body)
    assert refused.value.status_code == 400


@given(st.binary(max_size=200))
def test_no_body_is_too_odd(body: bytes) -> None:
    """It is a form, or it is refused."""
    with suppress(HTTPException):
        assert isinstance(parse(body), Form)


def test_a_field_may_be_empty_many_or_a_number() -> None:
    """Each is read as the page needs it."""
    form = Form((("name", "shop"), ("models", "a"), ("models", "b"), ("days", " ۳۰ "), ("limit", "")))
    assert (form.text("name"), form.text("nothing")) == ("shop", "")
    assert form.texts("models") == ("a", "b")
    assert form.whole_number("number of days", "days") == 30
    assert form.whole_number("limit per minute", "limit") is None
    with pytest.raises(ProvisioningError, match="The name must be a whole number"):
        form.whole_number("name", "name")
