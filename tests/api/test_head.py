"""The head of a request, before anything reads it: row 0 of the order of checks, and paths with a second spelling."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from tarazu.api.content_type import CONTENT_TYPE_BYTES_MAX
from tarazu.api.head import HEAD_BYTES_MAX, HEADER_BYTES_MAX, PARAMETERS_MAX
from tests.support.books import sqlite_only
from tests.support.envelopes import assert_domain_error, assert_own_error, rate_limit_headers
from tests.support.routes import all_places
from tests.support.rows import rows
from tests.support.service import CHAT, MODELS, USAGE, Answer, RunningService
from tests.support.visitor import FORM, holder, operator
from tests.support.wire import Wire, chat_head

pytestmark = [sqlite_only, pytest.mark.usefixtures("backend")]

PATHS = ["/api/v1/usage", "/api/admin/v1/accounts", "/panel/sign-in", "/admin/", "/docs", "/health", "/", "/nothing"]
BODY = b'{"prompt": "Hello"}'
NO_ID = {"account_id": "acc_0", "key_id": "key_0", "model_id": "none", "token": "x" * 43, "name": "panel.css"}


def written(path: str, *lines: str, version: str = "1.1") -> bytes:
    """Write a GET of a path with these header lines and no others."""
    return "\r\n".join((f"GET {path} HTTP/{version}", *lines, "", "")).encode("latin-1")


def ask(service: RunningService, path: str, *lines: str, version: str = "1.1") -> Answer:
    """GET a path with these header lines and no others."""
    with Wire(service.port) as wire:
        wire.send(written(path, *lines, version=version))
        return wire.answer()


def status_far_beyond(service: RunningService, *lines: str) -> int | None:
    """GET a page; the answer comes, and the connection ends, before all is sent. None: the answer was lost in that."""
    head = written("/health", *lines)
    with Wire(service.port) as wire:
        wire.send_until_cut_off(head, len(head))
        with suppress(ConnectionError):
            return wire.answer().status
    return None


def header_of(size: int, name: str = "X-Long") -> str:
    """Write a header of so many bytes."""
    return f"{name}: ".ljust(size, "x")


def head_of(size: int) -> list[str]:
    """Write header lines that make a head of so many bytes with a GET of /health, none of them too long."""
    lines = ["Host: test", *(header_of(HEADER_BYTES_MAX) for _ in range(3))]
    so_far = len("\r\n".join(("GET /health HTTP/1.1", *lines, "", "")))
    return [*lines, header_of(size - so_far - len("\r\n"))]


@rows("decisions.order_of_checks.0", "decisions.heads_and_bodies.1")
@pytest.mark.parametrize("path", PATHS)
def test_a_header_has_a_bound(service: RunningService, path: str) -> None:
    """One of 8 KiB passes, one of a byte more is 431 whatever is asked for, and the connection is closed."""
    assert ask(service, path, "Host: test", header_of(HEADER_BYTES_MAX)).status != 431
    for name in ("X-Long", "Cookie", "Authorization", "Accept-Language"):
        answer = ask(service, path, "Host: test", header_of(HEADER_BYTES_MAX + 1, name))
        assert_own_error(answer, 431)
        assert answer.headers["connection"] == "close"


@rows("decisions.order_of_checks.0", "decisions.heads_and_bodies.1", "decisions.errors.1")
def test_a_head_has_a_bound(service: RunningService) -> None:
    """32 KiB pass, a byte more is 431; what is far beyond need not be read to its end, and the service goes on."""
    assert ask(service, "/health", *head_of(HEAD_BYTES_MAX)).status == 200
    assert_own_error(ask(service, "/health", *head_of(HEAD_BYTES_MAX + 1)), 431)
    assert_own_error(ask(service, "/" + "x" * HEAD_BYTES_MAX, "Host: test"), 431)
    assert_own_error(ask(service, "/?" + "x" * HEAD_BYTES_MAX, "Host: test"), 431)
    assert status_far_beyond(service, *head_of(HEAD_BYTES_MAX), *[header_of(HEADER_BYTES_MAX)] * 60) in {431, None}
    assert ask(service, "/health", "Host: test").status == 200


@rows("decisions.order_of_checks.0")
def test_the_head_is_looked_at_before_path_method_and_key(service: RunningService) -> None:
    """Row 0 comes first, and takes no place in the windows."""
    customer = service.customer()
    for method, path in (("GET", "/nothing"), ("PUT", CHAT), ("POST", CHAT), ("GET", USAGE)):
        for headers in ({}, {"Authorization": customer.bearer}):
            answer = service.request(method, path, headers={"X-Long": "x" * HEADER_BYTES_MAX, **headers})
            assert_own_error(answer, 431)
            assert rate_limit_headers(answer) == set()


@rows("decisions.order_of_checks.0", "decisions.heads_and_bodies.1")
@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("hosts", [[], ["Host:"], ["Host: a", "Host: a"], ["Host: a", "Host: b"], ["Host: a", "Host:"]])
@pytest.mark.parametrize("path", PATHS)
def test_there_is_exactly_one_host(service: RunningService, path: str, hosts: list[str], version: str) -> None:
    """None, an empty one or several: 400, and the text says so."""
    answer = ask(service, path, *hosts, version=version)
    assert "Host" in assert_own_error(answer, 400)
    assert answer.headers["connection"] == "close"
    assert ask(service, path, "Host: a", version=version).status != 400


@rows("decisions.heads_and_bodies.2")
@pytest.mark.parametrize(
    "line",
    [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity, chunked",
        f"Content-Length: {len(BODY)}, {len(BODY)}",
        f"Content-Length: {len(BODY):05000}",
    ],
)
def test_a_body_is_framed_in_the_usual_way(service: RunningService, line: str) -> None:
    """An encoding that nobody undoes, two lengths in one line, or a length of thousands of digits: 400."""
    with Wire(service.port) as wire:
        wire.send(chat_head(service.customer(), line) + BODY)
        assert wire.answer().status == 400
    assert service.get("/health").status == 200


@rows("decisions.heads_and_bodies.2")
@pytest.mark.parametrize("path", PATHS)
def test_a_query_has_a_bound(service: RunningService, path: str) -> None:
    """A hundred parameters pass, one more is 400, wherever."""
    answer = ask(service, f"{path}?{'&'.join(['a'] * (PARAMETERS_MAX + 1))}", "Host: a")
    assert "parameters" in assert_own_error(answer, 400)
    answer = ask(service, f"{path}?{'&'.join(['a'] * PARAMETERS_MAX)}", "Host: a")
    assert "parameters in the query" not in answer.body.decode()


@rows("decisions.heads_and_bodies.2", "decisions.order_of_checks.8")
def test_a_content_type_has_a_bound(service: RunningService) -> None:
    """One of 256 bytes is read, a longer one is 415."""
    customer = service.customer()
    longest = "application/json; a=".ljust(CONTENT_TYPE_BYTES_MAX, "x")
    assert service.post(customer, BODY, Content_Type=longest).status == 200
    assert_own_error(service.post(customer, BODY, Content_Type=longest + "x"), 415)


@rows("decisions.heads_and_bodies.2", "decisions.order_of_checks.1")
def test_no_path_has_a_second_spelling(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one letter, digit or slash of it encoded, a path is none: by any method, for anybody. So for every route."""
    customer, visitors = service.customer(), [holder(service).visitor, operator(service).visitor]
    token = service.provisioning.create_admin_token(name="all", scopes=["read"]).secret
    headers = [{}, {"Authorization": customer.bearer}, {"Authorization": f"Bearer {token}"}]
    headers += [{"Cookie": "; ".join(f"{name}={value}" for name, value in v.cookies.items())} for v in visitors]
    monkeypatch.chdir(tmp_path)
    places = all_places()
    assert len(places) >= 70
    for place in places:
        whole = re.sub(r"{(\w+)}", lambda name: NO_ID.get(name[1], "x"), place.path)
        fixed = place.path.partition("{")[0]
        at = {1, len(fixed) // 2, len(fixed) - 1, whole.rindex("/", 0, len(fixed))}
        for index in at.intersection(range(1, len(whole))):
            path = f"{whole[:index]}%{ord(whole[index]):02x}{whole[index + 1 :]}"
            for sent in headers:
                answer = service.request(place.method, path, headers=sent)
                assert answer.status == 404, (place.method, path, answer)


@rows("decisions.heads_and_bodies.2", "decisions.models.2")
def test_a_models_id_may_be_encoded(service: RunningService) -> None:
    """Any letter of it, and any slash."""
    customer = service.customer()
    for path in ("test/one", "test%2Fone", "%74est%2fon%65"):
        assert service.get(f"{MODELS}/{path}", customer).json["id"] == "test/one"
    visitor = holder(service).visitor
    assert "test/one" in visitor.get("/panel/models/test%2Fon%65").text


@rows("decisions.heads_and_bodies.3")
@pytest.mark.parametrize(
    ("method", "path", "lines"),
    [
        ("POST", "/nothing", []),
        ("POST", USAGE, []),
        ("POST", CHAT, []),
        ("POST", CHAT, ["Authorization: Bearer nonsense"]),
        ("POST", "/api/admin/v1/accounts", []),
        ("POST", "/panel/sign-in", []),
        ("POST", "/panel/sign-in", ["Origin: http://test", "Content-Type: text/plain"]),
        ("POST", "/admin/accounts/new", ["Origin: http://test", f"Content-Type: {FORM}"]),
        ("GET", "/docs", []),
    ],
)
@pytest.mark.parametrize("length", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_an_answer_before_the_bodys_end_is_the_last(
    service: RunningService, method: str, path: str, lines: list[str], length: str
) -> None:
    """It says `Connection: close`, and closes, while the rest is still to come; without a body it goes on."""
    with Wire(service.port) as wire:
        wire.send("\r\n".join((f"{method} {path} HTTP/1.1", "Host: test", *lines, length, "", "")).encode())
        answer = wire.read_to_end().lower()
    assert answer.startswith(b"http/1.1 ")
    assert b"\r\nconnection: close\r\n" in answer
    without = service.request(method, path, headers=[("Origin", f"http://127.0.0.1:{service.port}")])
    assert "connection" not in without.headers


@rows("decisions.heads_and_bodies.3")
def test_a_known_key_with_another_type_is_the_last_answer_too(service: RunningService) -> None:
    """415, 413: what has not been read stays unread. An answer after the body's end goes on."""
    customer = service.customer()
    assert service.post(customer, BODY, Content_Type="text/plain").headers["connection"] == "close"
    too_long = service.post(customer, BODY.ljust(1_048_577))
    assert_domain_error(too_long, 413, "input_too_large")
    assert too_long.headers["connection"] == "close"
    for body in (BODY, b"{", b"{}"):
        assert "connection" not in service.post(customer, body).headers
