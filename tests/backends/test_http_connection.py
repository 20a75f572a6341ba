"""The HTTP client's connections: how answers are read however they are cut, and when a connection is used again."""

import asyncio
import gzip
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.backends.http_client import HttpClient
from tarazu.backends.http_connection import HEAD_BYTES_MAX, HttpConnection, HttpError, HttpReply, TooLargeError
from tests.support.answering import AnsweringServer, answering

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
BODY = b'{"a": 1}'
BYTES_MAX = 1_000
WHOLE = HttpReply(429, b'{"text": "Paris."}', "7")
ANSWERS = {
    "length": b"HTTP/1.1 429 No\r\nRetry-After: 7\r\nx-empty:\r\ncontent-length: 18\r\n\r\n" + WHOLE.body,
    "chunked": b"HTTP/1.1 429 No\r\nretry-after: 7\r\ntransfer-encoding: chunked\r\n\r\n"
    b'8;a=b\r\n{"text":\r\na\r\n "Paris."}\r\n0\r\ntrailer: 1\r\n\r\n',
    "interim": b"HTTP/1.1 103 Hints\r\nretry-after: 9\r\n\r\n"
    b"HTTP/1.1 429 No\r\nretry-after: 7\r\ncontent-length: 18\r\n\r\n" + WHOLE.body,
    "gzip": b"HTTP/1.1 429 No\r\nretry-after: 7\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    % len(gzip.compress(WHOLE.body))
    + gzip.compress(WHOLE.body),
    "to the end": b"HTTP/1.0 429 No\r\nretry-after: 7\r\n\r\n" + WHOLE.body,
}


class Wire(asyncio.Transport):
    """A transport that sends nowhere."""

    def write(self, data: object) -> None:
        """Drop it."""

    def get_write_buffer_size(self) -> int:
        """Tell that all is sent."""
        return 0

    def abort(self) -> None:
        """Do nothing."""


async def _read(*parts: bytes, ends: bool = True) -> HttpReply:
    connection = HttpConnection()
    connection.connection_made(cast("asyncio.BaseTransport", Wire()))
    exchange = asyncio.ensure_future(connection.exchange(b"", bytes_max=BYTES_MAX, timeout_s=5))
    await asyncio.sleep(0)
    for part in parts:
        connection.data_received(part)
    if ends:
        connection.eof_received()
        connection.connection_lost(None)
    return await exchange


@pytest.mark.parametrize("kind", ANSWERS)
@given(data=st.data())
def test_however_an_answer_is_cut_it_is_the_same(kind: str, data: st.DataObject) -> None:
    """Reads may end anywhere."""
    answer = ANSWERS[kind]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(answer) - 1))))
    parts = [answer[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    assert asyncio.run(_read(*parts)) == WHOLE


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_that_ends_early_is_none(kind: str) -> None:
    """But for one whose end is that of its connection, and only once its body has begun."""
    answer = ANSWERS[kind]
    least = answer.rindex(b"\r\n\r\n") + 4 if kind == "to the end" else len(answer)
    for end in range(1, least):
        with pytest.raises(HttpError):
            asyncio.run(_read(answer[:end]))


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * HEAD_BYTES_MAX,
        b"HTTP/1.1 200 OK\r\n" + b"x: a\r\n" * HEAD_BYTES_MAX,
        b"HTTP/1.1 103 Hints\r\n\r\n" * HEAD_BYTES_MAX,
        b"HTTP/1.1 101 Other\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nok",
    ],
    ids=["garbage", "two-lengths", "length-and-chunks", "no-chunk", "header", "headers", "1xx", "101", "no-gzip"],
)
def test_what_is_no_answer_fails_without_the_end_of_the_connection(answer: bytes) -> None:
    """At once: a server that sends nonsense does not hold a request."""
    with pytest.raises(HttpError):
        asyncio.run(_read(answer, ends=False))


def test_a_body_that_grows_when_it_is_unzipped_is_bounded() -> None:
    """A small answer must not become a large one in memory."""
    body = gzip.compress(b"a" * (BYTES_MAX + 1))
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
    with pytest.raises(TooLargeError):
        asyncio.run(_read(head + body))


def _ask(*parts: bytes, closes: bool = False, pause_s: float = 0.05) -> AnsweringServer:
    """Ask a server twice, one after the other; `pause_s` lets what it does after its answer come in."""

    async def scenario() -> AnsweringServer:
        client = HttpClient({})
        async with answering(*parts, closes=closes) as server:
            try:
                for _ in range(2):
                    reply = await client.post_json(server.url, BODY, headers={}, timeout_s=5)
                    assert reply.body == b"ok"
                    await asyncio.sleep(pause_s)
            finally:
                client.close()
            return server

    return asyncio.run(scenario())


def test_a_connection_is_used_again() -> None:
    """Nobody waits for a new one."""
    server = _ask(OK)
    assert (len(server.heads), server.connections) == (2, 1)


@pytest.mark.parametrize(
    ("answer", "closes"),
    [(OK, True), (OK + b"HTTP", False), (OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), False)],
    ids=["closed-while-idle", "bytes-left-over", "will-close"],
)
def test_a_connection_that_is_not_clean_is_not_used_again(answer: bytes, *, closes: bool) -> None:
    """The next request gets one of its own, and its own answer."""
    assert _ask(answer, closes=closes).connections == 2


def test_an_idle_connection_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the server closes it under a request."""
    monkeypatch.setattr("tarazu.backends.http_route.IDLE_TIMEOUT_S", 0.01)
    assert _ask(OK, pause_s=0.2).connections == 2
