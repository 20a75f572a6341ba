"""The body as it comes in: its type, encoding and size. Rows 8 and 9 of the order of checks."""

import gzip
import zlib

import pytest

from tarazu.api.body import PIECES_MAX
from tests.support.backend import ScriptedBackend
from tests.support.effects import assert_took_only_a_place
from tests.support.envelopes import assert_domain_error, assert_own_error
from tests.support.rows import rows
from tests.support.service import CHAT, Answer, Customer, RunningService
from tests.support.wire import Wire, chat_head, chunk

pytestmark = pytest.mark.usefixtures("backend")

BODY = b'{"prompt": "Hello"}'
BODY_BYTES_MAX = 1_048_576
LONGEST_BODY = BODY.ljust(BODY_BYTES_MAX)
FAR_BEYOND_BYTES = 64 * BODY_BYTES_MAX
"""More than all buffers between client and service hold."""


def send(service: RunningService, customer: Customer, body: bytes, *headers: tuple[str, str]) -> Answer:
    """POST a body with exactly these headers and the customer's key."""
    return service.request("POST", CHAT, body, [("Authorization", customer.bearer), *headers])


@rows("decisions.order_of_checks.8", "spec.authentication.rule_2", "spec.endpoints.1")
@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json; charset="utf-8"',
        "application/json ; Charset=Utf-8",
        "application/json; version=1",
        'application/json; profile="https://example.com/;charset=latin-1"; charset=utf-8',
        "application/json;",
        "  application/json  ",
    ],
)
def test_a_type_that_is_json(service: RunningService, content_type: str) -> None:
    """application/json in any case, with any parameters, is taken; a charset has to be utf-8."""
    assert send(service, service.customer(), BODY, ("Content-Type", content_type)).status == 200


@rows("decisions.order_of_checks.8", "spec.authentication.rule_2", "spec.endpoints.1")
@pytest.mark.parametrize(
    "content_types",
    [
        (),
        ("",),
        ("text/plain",),
        ("text/json",),
        ("json",),
        ("application",),
        ("application/",),
        ("application/jsonp",),
        ("application/json5",),
        ("application/x-ndjson",),
        ("application/problem+json",),
        ("application/octet-stream",),
        ("application/x-www-form-urlencoded",),
        ("multipart/form-data; boundary=application/json",),
        ("text/plain; type=application/json",),
        ("application/json, text/plain",),
        ("application/json application/json",),
        ("*/*",),
        ("application/json; charset=latin-1",),
        ("application/json; charset=utf-16",),
        ("application/json; charset=utf-8x",),
        ("application/json; charset=\xff",),
        ("application/json; charset*=utf-8''latin-1",),
        ("\xff\xfe",),
        (";",),
        ("application/json", "application/json"),
        ("application/json", "text/plain"),
    ],
    ids=ascii,
)
def test_a_type_that_is_not_json(
    service: RunningService, backend: ScriptedBackend, content_types: tuple[str, ...]
) -> None:
    """No type, another, several, or another charset: 415."""
    customer = service.customer()
    answer = send(service, customer, BODY, *(("Content-Type", each) for each in content_types))
    assert_own_error(answer, 415)
    assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.order_of_checks.8")
@pytest.mark.parametrize(
    ("encodings", "body"),
    [
        (("gzip",), gzip.compress(BODY)),
        (("GZIP",), gzip.compress(BODY)),
        (("deflate",), zlib.compress(BODY)),
        (("br",), b"\x0b\x09\x80" + BODY),
        (("zstd",), b"\x28\xb5\x2f\xfd"),
        (("gzip",), BODY),
        (("aws-chunked",), BODY),
        (("nonsense",), BODY),
        (("identity, gzip",), gzip.compress(BODY)),
        (("identity", "gzip"), gzip.compress(BODY)),
        (("gzip",), gzip.compress(b" " * FAR_BEYOND_BYTES, compresslevel=1)),
    ],
    ids=[f"encoding-{number}" for number in range(11)],
)
def test_an_encoded_body(
    service: RunningService, backend: ScriptedBackend, encodings: tuple[str, ...], body: bytes
) -> None:
    """A Content-Encoding other than identity is 415, whether or not the body is encoded so: nothing is unpacked."""
    customer = service.customer()
    headers = [("Content-Type", "application/json"), *(("Content-Encoding", each) for each in encodings)]
    answer = send(service, customer, body, *headers)
    assert_own_error(answer, 415)
    assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.order_of_checks.8")
@pytest.mark.parametrize("encoding", ["identity", "Identity"])
def test_an_encoding_that_is_none(service: RunningService, encoding: str) -> None:
    """Identity is no encoding."""
    headers = [("Content-Type", "application/json"), ("Content-Encoding", encoding)]
    assert send(service, service.customer(), BODY, *headers).status == 200


@rows("decisions.order_of_checks.10")
def test_an_encoded_body_that_does_not_say_so(service: RunningService) -> None:
    """It is no JSON."""
    assert_own_error(service.post(service.customer(), gzip.compress(BODY)), 400)


# Row 9: the size.


@rows("decisions.order_of_checks.9")
def test_the_longest_body(service: RunningService, backend: ScriptedBackend) -> None:
    """A body of exactly 1 MiB is read and served, one of a byte more is 413."""
    customer = service.customer()
    answer = service.post(customer, LONGEST_BODY + b" ")
    assert assert_domain_error(answer, 413, "input_too_large") == {}
    assert_took_only_a_place(service, backend, customer, answer)
    assert service.post(customer, LONGEST_BODY).status == 200


@rows("decisions.order_of_checks.9")
def test_a_body_in_crumbs_is_refused(service: RunningService) -> None:
    """Each piece costs much more than its bytes: of one byte each there may be some thousand, and no endless number."""
    with Wire(service.port) as wire:
        wire.send(chat_head(service.customer(), "Transfer-Encoding: chunked"))
        for byte in BODY.ljust(PIECES_MAX - 10):
            wire.send(chunk(bytes([byte])))
        wire.send(chunk(b""))
        assert wire.answer().status == 200
    with Wire(service.port) as wire:
        wire.send(chat_head(service.customer(), "Transfer-Encoding: chunked"))
        wire.send(chunk(b" ") * 16 * PIECES_MAX)
        assert_own_error(wire.answer(), 400)


@rows("decisions.order_of_checks.9")
@pytest.mark.parametrize("piece_bytes", [BODY_BYTES_MAX, 65_536, 1_000])
def test_the_longest_chunked_body(service: RunningService, piece_bytes: int) -> None:
    """A chunked body of exactly 1 MiB is served, however it is cut: only its own bytes count."""
    pieces = [LONGEST_BODY[start : start + piece_bytes] for start in range(0, BODY_BYTES_MAX, piece_bytes)]
    with Wire(service.port) as wire:
        wire.send(chat_head(service.customer(), "Transfer-Encoding: chunked"))
        wire.send(b"".join(map(chunk, pieces)) + chunk(b""))
        assert wire.answer().status == 200


@rows("decisions.order_of_checks.9")
def test_a_chunked_body_is_read_no_further(service: RunningService, backend: ScriptedBackend) -> None:
    """One byte above 1 MiB the answer comes, though the body has not ended."""
    customer = service.customer()
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, "Transfer-Encoding: chunked"))
        wire.send(chunk(LONGEST_BODY) + chunk(b" "))
        answer = wire.answer()
    assert_domain_error(answer, 413, "input_too_large")
    assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.order_of_checks.9")
def test_a_chunked_body_without_end_is_cut_off(service: RunningService) -> None:
    """Whoever sends on is answered and disconnected; the service does not swallow what comes."""
    with Wire(service.port) as wire:
        wire.send(chat_head(service.customer(), "Transfer-Encoding: chunked"))
        assert wire.send_until_cut_off(chunk(b" " * 65_536), FAR_BEYOND_BYTES) < FAR_BEYOND_BYTES
    assert service.chat(service.customer()).status == 200


@rows("decisions.order_of_checks.9")
@pytest.mark.parametrize("length", [BODY_BYTES_MAX + 1, 10**9, 2**63 - 1])
def test_a_body_that_announces_its_length(service: RunningService, backend: ScriptedBackend, length: int) -> None:
    """A Content-Length above 1 MiB is answered before a byte of the body has come."""
    customer = service.customer()
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {length}"))
        answer = wire.answer()
    assert_domain_error(answer, 413, "input_too_large")
    assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.order_of_checks.9")
def test_a_client_that_asks_before_it_sends(service: RunningService) -> None:
    """With `Expect: 100-continue` a body that is too long is never asked for; a good one is."""
    with Wire(service.port) as wire:
        wire.send(chat_head(service.customer(), "Expect: 100-continue", f"Content-Length: {BODY_BYTES_MAX + 1}"))
        assert wire.socket.recv(1_024).startswith(b"HTTP/1.1 413 ")
    with Wire(service.port) as wire:
        wire.send(chat_head(service.customer(), "Expect: 100-continue", f"Content-Length: {len(BODY)}"))
        assert wire.socket.recv(1_024) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.send(BODY)
        assert wire.answer().status == 200


@rows("decisions.order_of_checks.8", "decisions.order_of_checks.9")
@pytest.mark.parametrize("key", ["good", "none"])
def test_an_unread_body_is_not_taken_for_the_next_request(service: RunningService, key: str) -> None:
    """After a refusal that has not looked at the body, a connection that stays open goes on behind the body."""
    inner = b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n"
    head = chat_head(service.customer(), "Content-Encoding: gzip", f"Content-Length: {len(inner)}")
    if key == "none":
        head = head.replace(b"Authorization:", b"X-Other:")
    with Wire(service.port) as wire:
        wire.send(head + inner)
        first = wire.answer()
        assert first.status == (415 if key == "good" else 401)
        if first.headers.get("connection") != "close":
            wire.send(b"GET /nothing HTTP/1.1\r\nHost: test\r\n\r\n")
            assert wire.answer().status == 404
