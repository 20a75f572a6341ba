"""Read what a form sends, within bounds of size and time."""

import asyncio
from http import HTTPStatus
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from tarazu.api.body import is_in_crumbs
from tarazu.api.content_type import FORM, is_declared_as
from tarazu.domain.numbers import read_number
from tarazu.service.provisioning_errors import ProvisioningError

FORM_BYTES_MAX = 64 * 1024
LARGE_FORM_BYTES_MAX = 1024 * 1024
"""Of a form that carries a conversation."""
BUFFERED_BYTES_MAX = 32 * 1024 * 1024
"""For all forms that the pages of one site in one process are taking in at once."""
OPEN_FORM_BYTES_MAX = 16 * 1024
"""Of a form by who is not signed in."""
OPEN_BUFFERED_BYTES_MAX = 4 * 1024 * 1024
"""For all of these together."""
FORM_TIMEOUT_S = 10.0
FIELDS_MAX = 1_000
NUL = "\0"


class Form(Struct, frozen=True):
    """The fields as they came, in their order."""

    fields: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str:
        """Tell the first value of a field; empty where there is none."""
        return next((value for field, value in self.fields if field == name), "")

    def texts(self, name: str) -> tuple[str, ...]:
        """List all values of a field."""
        return tuple(value for field, value in self.fields if field == name)

    def whole_number(self, what: str, name: str) -> int | None:
        """Read a whole number, or None where the field is empty.

        Raises:
            ProvisioningError: it is no number.
        """
        text = self.text(name).strip()
        number = read_number(text)
        if text and number is None:
            raise ProvisioningError("The {what} must be a whole number.", member=name, what=what)
        return number


class FormReader:
    """Reads forms for the pages of one site, and counts what those hold together that are not there yet.

    Who is not signed in has less room, and shares it with others who are not.
    """

    def __init__(self, *, timeout_s: float = FORM_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._buffered_bytes = {True: 0, False: 0}
        """By whether they are open to who is not signed in."""

    def __repr__(self) -> str:
        return f"<FormReader holding {sum(self._buffered_bytes.values())} bytes>"

    async def read(self, request: Request, bytes_max: int = FORM_BYTES_MAX, *, is_open: bool = False) -> Form:
        """Read the body of a request, never further than its bounds.

        Raises:
            HTTPException: it is no form (400), too large (413), did not come in time (408), or too many come (503).
        """
        declared = request.headers.getlist("content-type")
        if len(declared) != 1 or not is_declared_as(FORM, declared[0].encode("latin-1")):
            raise HTTPException(HTTPStatus.BAD_REQUEST)
        try:
            async with asyncio.timeout(self._timeout_s):
                return parse(await self._read(request, bytes_max, is_open=is_open))
        except TimeoutError:
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT) from None
        except ClientDisconnect:
            raise HTTPException(HTTPStatus.BAD_REQUEST) from None

    async def _read(self, request: Request, bytes_max: int, *, is_open: bool) -> bytes:
        bytes_max = min(bytes_max, OPEN_FORM_BYTES_MAX) if is_open else bytes_max
        buffered_max = OPEN_BUFFERED_BYTES_MAX if is_open else BUFFERED_BYTES_MAX
        declared = request.headers.get("content-length")
        chunks: list[bytes] = []
        size = held = 0
        try:
            async for chunk in request.stream():
                chunks.append(chunk)
                size += len(chunk)
                if size > bytes_max:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                if is_in_crumbs(len(chunks), size):
                    raise HTTPException(HTTPStatus.BAD_REQUEST)
                if str(size) == declared:  # it is there, and needs no room
                    break
                held += len(chunk)
                self._buffered_bytes[is_open] += len(chunk)
                if self._buffered_bytes[is_open] > buffered_max:
                    raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE)
        finally:
            self._buffered_bytes[is_open] -= held
        return b"".join(chunks)


def parse(body: bytes) -> Form:
    """Take the fields out of a body.

    Raises:
        HTTPException: it is no UTF-8, has too many fields, or a NUL, which no text of the books may hold.
    """
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:  # UnicodeDecodeError is one
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
    if any(NUL in text for field in fields for text in field):
        raise HTTPException(HTTPStatus.BAD_REQUEST)
    # Browsers write each line break of a text as two characters (HTML, form submission); who wrote it meant one.
    return Form(tuple((name, value.replace("\r\n", "\n")) for name, value in fields))
