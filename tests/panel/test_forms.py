"""What a form may hold."""

import asyncio
from contextlib import suppress
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from tarazu.api.body import BYTES_OF_PIECE_LEAST, PIECES_MAX
from tarazu.panel.forms import (
    BUFFERED_BYTES_MAX,
    FIELDS_MAX,
    OPEN_BUFFERED_BYTES_MAX,
    OPEN_FORM_BYTES_MAX,
    Form,
    FormReader,
    parse,
)
from tarazu.service.provisioning_errors import ProvisioningError

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20))
def test_fields_come_as_they_were_written(fields: list[tuple[str, str]]) -> None:
    """In their order, also empty ones, in any script; a line break, which browsers send as two characters, is one."""
    meant = [(name, value.replace("\r\n", "\n")) for name, value in fields]
    sent = [(name, value.replace("\n", "\r\n")) for name, value in meant]
    assert parse(urlencode(sent).encode()) == Form(tuple(meant))


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


def request(*messages: Message, declared: int | None = None) -> Request:
    """Make a request with a form whose body comes in these messages, and then no more."""
    coming = iter(messages)

    async def receive() -> Message:
        for message in coming:
            return message
        await asyncio.get_running_loop().create_future()  # never done
        raise AssertionError

    headers = [(b"content-type", b"application/x-www-form-urlencoded")]
    if declared is not None:
        headers.append((b"content-length", str(declared).encode()))
    return Request({"type": "http", "headers": headers}, receive)


def part(body: bytes, *, more: bool = True) -> Message:
    """Make one part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


def read(*messages: Message) -> Form | int:
    """Read a form, or tell the status with which it is refused; the reader must hold nothing afterwards."""
    reader = FormReader(timeout_s=0.05)
    try:
        return asyncio.run(reader.read(request(*messages), BUFFERED_BYTES_MAX))
    except HTTPException as refused:
        return refused.status_code
    finally:
        assert repr(reader) == "<FormReader holding 0 bytes>"


def test_a_form_may_come_in_parts_but_must_come_to_an_end() -> None:
    """One that is half-sent for too long is refused, as is one that breaks off."""
    assert read(part(b"a="), part(b"1", more=False)) == Form((("a", "1"),))
    assert read(part(b"a=")) == 408
    assert read(part(b"a="), {"type": "http.disconnect"}) == 400


def test_a_form_may_not_come_in_crumbs() -> None:
    """Each piece costs much more than its bytes."""
    assert read(*[part(b"a")] * (PIECES_MAX + 5), part(b"", more=False)) == 400
    assert read(*[part(b"a" * BYTES_OF_PIECE_LEAST)] * (PIECES_MAX + 5), part(b"", more=False)) != 400


def test_a_process_holds_only_so_much_of_all_forms() -> None:
    """Beyond it the service is busy; what one is too large for is said of that one."""
    large = b"x" * (BUFFERED_BYTES_MAX // 2)
    reader = FormReader(timeout_s=0.05)

    async def both() -> list[Form | BaseException]:
        slow, other = request(part(large), part(b"x")), request(part(large, more=False))
        return await asyncio.gather(
            *(reader.read(each, BUFFERED_BYTES_MAX) for each in (slow, other)), return_exceptions=True
        )

    outcomes = asyncio.run(both())
    assert [outcome.status_code for outcome in outcomes if isinstance(outcome, HTTPException)] == [408, 503]
    assert read(part(large), part(large), part(b"x", more=False)) == 413


def test_forms_of_strangers_are_small_and_fill_their_own_room_alone() -> None:
    """When it is full of half-sent ones, those that are there whole are read all the same, and so are others'."""
    reader = FormReader()
    half = part(b"a=" + b"x" * (OPEN_FORM_BYTES_MAX - 2))

    async def crowd() -> None:
        tasks = [
            asyncio.create_task(reader.read(request(half, declared=OPEN_FORM_BYTES_MAX + 1), is_open=True))
            for _ in range(OPEN_BUFFERED_BYTES_MAX // OPEN_FORM_BYTES_MAX)
        ]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in tasks)
        with pytest.raises(HTTPException) as refused:
            await reader.read(request(part(b"a="), declared=3), is_open=True)
        assert refused.value.status_code == 503
        assert await reader.read(request(part(b"a=1"), declared=3), is_open=True) == Form((("a", "1"),))
        assert await reader.read(request(part(b"a="), part(b"1", more=False))) == Form((("a", "1"),))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(crowd())
    assert repr(reader) == "<FormReader holding 0 bytes>"
    large = request(part(b"x" * (OPEN_FORM_BYTES_MAX + 1), more=False))
    with pytest.raises(HTTPException) as refused:
        asyncio.run(reader.read(large, is_open=True))
    assert refused.value.status_code == 413
