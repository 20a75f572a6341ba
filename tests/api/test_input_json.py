"""The JSON of the body, and its member `stream`. Rows 10 and 11 of the order of checks."""

import json
from typing import Any

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.effects import assert_took_only_a_place
from tests.support.envelopes import assert_domain_error, assert_own_error
from tests.support.rows import rows
from tests.support.service import CHAT, RunningService

pytestmark = pytest.mark.usefixtures("backend")

BODY = b'{"prompt": "Hello"}'


def received_prompt(backend: ScriptedBackend) -> str:
    """Read what the backend got as the last message."""
    content: str = backend.received[-1].body["messages"][-1]["content"]
    return content


@rows("decisions.order_of_checks.10", "decisions.input.4")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \n",
        b"{",
        b'{"prompt": "Hello"',
        b'{"prompt": "Hello}',
        b'{"prompt": "Hello",}',
        b'{"prompt": "Hello"} {}',
        b'{"prompt": "Hello"}x',
        b'{"prompt": "Hello"}\0',
        b"{prompt: 'Hello'}",
        b'{"prompt": Hello}',
        b'{"prompt": "Hello"} // comment',
        b"prompt=Hello",
        b"null",
        b"true",
        b"5",
        b'"Hello"',
        b"[]",
        b'[{"prompt": "Hello"}]',
        b'{"prompt": NaN}',
        b'{"prompt": "Hello", "x": NaN}',
        b'{"prompt": "Hello", "x": Infinity}',
        b'{"prompt": "Hello", "x": [-Infinity]}',
        b'{"prompt": "Hello", "temperature": NaN}',
        b'{"prompt": "Hello", "x": 01}',
        b'{"prompt": "Hello", "x": .5}',
        b'{"prompt": "Hello", "x": +1}',
        b'{"prompt": "Hello", "x": 0x10}',
        b'{"prompt": "Hello", "x": True}',
        b'{"prompt": "a\nb"}',
        b'{"prompt": "a\0b"}',
        b'{"prompt": "a\x1fb"}',
        b'{"prompt": "\\x41"}',
        b'{"prompt": "\\u12"}',
        b'{"prompt": "Hello", 5: 1}',
    ],
    ids=ascii,
)
def test_a_body_that_is_no_json_object(service: RunningService, backend: ScriptedBackend, body: bytes) -> None:
    """Empty, broken, another type, NaN and Infinity, raw control characters: 400."""
    customer = service.customer()
    answer = service.post(customer, body)
    assert_own_error(answer, 400)
    assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.order_of_checks.10")
def test_no_body_at_all(service: RunningService) -> None:
    """A POST without a body is answered like an empty one."""
    customer = service.customer()
    headers = {"Authorization": customer.bearer, "Content-Type": "application/json"}
    assert_own_error(service.request("POST", CHAT, headers=headers), 400)


@rows("decisions.order_of_checks.10")
@pytest.mark.parametrize(
    "body",
    [
        b'{"prompt": "\xff"}',
        b'{"prompt": "caf\xe9"}',
        b'{"prompt": "\xc0\xaf"}',
        b'{"prompt": "\xe2\x82"}',
        b'{"prompt": "\xf4\x90\x80\x80"}',
        b'{"prompt": "\xed\xa0\xbd\xed\xb8\x80"}',
        b'{"prompt": "Hello", "\xff": 1}',
        b'{"prompt": "Hello", "x": "\xff"}',
        b"\xef\xbb\xbf" + BODY,
        BODY.decode().encode("utf-16"),
        BODY.decode().encode("utf-16-le"),
        BODY.decode().encode("utf-32"),
        b"\x80" * 100,
    ],
    ids=ascii,
)
def test_a_body_that_is_not_utf_8(service: RunningService, backend: ScriptedBackend, body: bytes) -> None:
    """Other encodings, broken UTF-8, a byte-order mark: 400, wherever in the body."""
    customer = service.customer()
    answer = service.post(customer, body)
    assert_own_error(answer, 400)
    assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.order_of_checks.10")
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_048_576,
        b'{"prompt": "Hello", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"prompt": "Hello", "x": ' + b'{"x": ' * 50_000 + b"1" + b"}" * 50_000 + b"}",
        b'{"messages": ' + b'[{"content": ' * 50_000,
    ],
    ids=["arrays-open", "arrays", "objects", "both-open"],
)
def test_a_body_that_is_nested_too_deeply(service: RunningService, backend: ScriptedBackend, body: bytes) -> None:
    """It is 400, and the service goes on."""
    customer = service.customer()
    answer = service.post(customer, body)
    assert_own_error(answer, 400)
    assert_took_only_a_place(service, backend, customer, answer)
    assert service.post(customer, BODY).status == 200


@rows("decisions.order_of_checks.10")
def test_a_body_that_is_nested(service: RunningService) -> None:
    """Nesting as it occurs is fine, and so is white space around the object."""
    nested: Any = "x"
    for _ in range(50):
        nested = {"x": [nested]}
    assert service.post(service.customer(), {"prompt": "Hello", "tools": nested}).status == 200
    assert service.post(service.customer(), b"\r\n\t " + BODY + b" \n").status == 200


@rows("decisions.input.4", "decisions.order_of_checks.10")
@pytest.mark.parametrize("lone", ["\\ud83d", "\\ude00", "\\ude00\\ud83d", "\\ud83d\\ud83d", "\\ud83dx", "\\udfff"])
@pytest.mark.parametrize(
    "body",
    [
        '{"prompt": "LONE"}',
        '{"prompt": "a LONE b"}',
        '{"messages": [{"role": "user", "content": "LONE"}]}',
        '{"prompt": "Hello", "LONE": 1}',
        '{"prompt": "Hello", "x": ["LONE"]}',
        '{"prompt": "Hello", "model": "LONE"}',
        '{"prompt": "Hello", "stop": "LONE"}',
    ],
)
def test_a_lone_surrogate(service: RunningService, backend: ScriptedBackend, body: str, lone: str) -> None:
    """Half of a pair is no text: 400, wherever in the body."""
    customer = service.customer()
    answer = service.post(customer, body.replace("LONE", lone).encode())
    assert_own_error(answer, 400)
    assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.input.4")
def test_characters_that_pass_unchanged(service: RunningService, backend: ScriptedBackend) -> None:
    """Escaped control characters, NUL too, non-characters, format characters and pairs reach the backend unchanged."""
    controls = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
    others = "\ufeff\ufffe\uffff\ufffd\u200b\u200c\u200d\u202e\u2066\xad\U0001f600\U0010ffff"
    composed = "é e\N{COMBINING ACUTE ACCENT} ﬁ Å Å مي‌خواهم"
    text = f'a{controls}{others}{composed}"\\/b'
    for ensure_ascii in (True, False):
        body = json.dumps({"prompt": text}, ensure_ascii=ensure_ascii).encode()
        assert service.post(service.customer(), body).status == 200
        assert received_prompt(backend) == text


@rows("decisions.input.4")
@pytest.mark.parametrize(
    ("body", "content"),
    [
        ('{"prompt": "first", "prompt": "last"}', "last"),
        ('{"prompt": "first", "\\u0070rompt": "last"}', "last"),
        ('{"prompt": 5, "prompt": "last"}', "last"),
        ('{"messages": [{"role": "user", "content": "first"}], "messages": null, "prompt": "last"}', "last"),
        ('{"messages": [{"role": "tool", "role": "user", "content": "first", "content": "last"}]}', "last"),
        ('{"stream": true, "stream": false, "prompt": "last"}', "last"),
        ('{"model": "no/such", "model": "test/one", "prompt": "last"}', "last"),
        ('{"temperature": 9, "temperature": 1, "prompt": "last"}', "last"),
    ],
)
def test_of_duplicate_members_the_last_wins(
    service: RunningService, backend: ScriptedBackend, body: str, content: str
) -> None:
    """An earlier member of the same name is as if it were not there."""
    assert service.post(service.customer(), body.encode()).status == 200
    assert received_prompt(backend) == content


@rows("decisions.input.4")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"prompt": "first", "prompt": null}', 422),
        ('{"stream": false, "stream": true, "prompt": "x"}', 400),
        ('{"model": "test/one", "model": "no/such", "prompt": "x"}', 404),
        ('{"temperature": 1, "temperature": 9, "prompt": "x"}', 400),
    ],
)
def test_of_duplicate_members_the_last_is_judged(service: RunningService, body: str, status: int) -> None:
    """A good member does not help one that comes after it."""
    assert service.post(service.customer(), body.encode()).status == status


@rows("spec.chat_request_body.stream", "decisions.order_of_checks.11", "spec.codes.streaming_not_supported")
def test_a_stream_is_refused(service: RunningService, backend: ScriptedBackend) -> None:
    """`stream` true is 400 streaming_not_supported."""
    customer = service.customer()
    answer = service.chat(customer, stream=True)
    assert assert_domain_error(answer, 400, "streaming_not_supported") == {}
    assert_took_only_a_place(service, backend, customer, answer)


@rows("spec.chat_request_body.stream", "decisions.order_of_checks.11")
@pytest.mark.parametrize("members", [{}, {"stream": None}, {"stream": False}], ids=repr)
def test_no_stream_is_served(service: RunningService, backend: ScriptedBackend, members: dict[str, Any]) -> None:
    """Absent, null or false: one JSON body, and the backend is not asked to stream either."""
    answer = service.chat(service.customer(), **members)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert not backend.received[-1].body.get("stream")


@rows("decisions.order_of_checks.11")
@pytest.mark.parametrize("stream", ["true", "false", "", 0, 1, 0.0, [], [True], {}, {"enabled": False}], ids=repr)
def test_a_stream_of_another_type(service: RunningService, backend: ScriptedBackend, stream: Any) -> None:
    """Anything else is 400."""
    customer = service.customer()
    answer = service.chat(customer, stream=stream)
    assert_own_error(answer, 400)
    assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.heads_and_bodies.5", "decisions.input.5")
@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"9" * 5_000], ids=["large", "small", "long"])
def test_a_number_that_does_not_fit(service: RunningService, backend: ScriptedBackend, number: bytes) -> None:
    """In a member that nobody reads it is JSON like any other; as a setting it is out of bounds."""
    customer = service.customer()
    assert service.post(customer, b'{"prompt": "Hello", "x": [%s]}' % number).status == 200
    assert received_prompt(backend) == "Hello"
    assert "seed" in assert_own_error(service.post(customer, b'{"prompt": "Hello", "seed": %s}' % number), 400)
