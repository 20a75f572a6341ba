"""The log of a process: all that anything says is one JSON object a line, and quotes no value."""

import inspect
import json
import os
import pty
import re
import subprocess
import sys
from typing import Any

import psycopg._pipeline as psycopg_words
import pytest
from granian.server import common as granian_words

from tarazu.service.logs import TOLD_IN_OUR_WORDS

SECRET = "canary-7f3a"
BEGIN = f"""
import asyncio, logging, os, sys, threading, warnings
import structlog
from tarazu.service.configuration.schema import LogSettings
from tarazu.service.identifiers import current_request
from tarazu.service.logs import log_loop_error, logs_written

log = structlog.get_logger()
secret = "{SECRET}"


def fail():
    held = secret
    try:
        raise KeyError(held)
    except KeyError as error:
        raise ValueError("not to be told: " + held) from error

"""


def run(body: str, settings: str = "", *, stderr: int = subprocess.PIPE) -> str:
    """Run code in a process of its own, with its log on standard error; answer with that."""
    indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
    code = f"{BEGIN}with logs_written(LogSettings({settings})) as lines:\n    lines.start()\n{indented}\n"
    ran = subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=stderr, text=True, check=False)
    return ran.stderr or ""


def lines(text: str) -> list[dict[str, Any]]:
    """Read a log of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


OTHERS = {
    "a thread": (
        "thread = threading.Thread(target=fail, name='worker bee')\nthread.start()\nthread.join()",
        "unhandled",
    ),
    "the main thread": ("sys.excepthook(*(lambda e: (type(e), e, e.__traceback__))(caught()))", "unhandled"),
    "an event loop": (
        """
async def main():
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    loop.call_soon(fail)
    await asyncio.sleep(0.01)
asyncio.run(main())
""",
        "unhandled",
    ),
    "what is collected": ("class Odd:\n    __del__ = lambda self: fail()\nOdd()", "unhandled"),
    "a library's logger": (
        """
try:
    fail()
except ValueError:
    logging.getLogger("their.name").exception("It went wrong.\\nwith " + secret)
""",
        "library_message",
    ),
    "a task that is lost": (
        """
async def main():
    asyncio.create_task(lose())
    await asyncio.sleep(0.01)
async def lose():
    fail()
asyncio.run(main())
""",
        "library_message",
    ),
}


@pytest.mark.parametrize("source", OTHERS)
def test_an_exception_that_nobody_takes_is_one_line_without_values(source: str) -> None:
    """Its kind, its places and what it came of are told, and no message, since that could quote a secret."""
    body, event = OTHERS[source]
    text = run(
        "def caught():\n    try:\n        fail()\n    except ValueError as error:\n        return error\n" + body
    )
    (line,) = lines(text)
    assert (line["event"], line["error"], line["came_of"]) == (event, "ValueError", ["KeyError"])
    assert line["at"].startswith("<string>:")
    assert SECRET not in text


def test_a_warning_of_python_is_one_line() -> None:
    """Without the line of code that it stands in."""
    (line,) = lines(run("warnings.warn('This goes away.', FutureWarning)"))
    assert (line["event"], line["logger"], line["level"]) == ("library_message", "py.warnings", "warning")
    assert line["message"].endswith("FutureWarning: This goes away.")


def test_every_line_tells_its_process_and_its_request() -> None:
    """The fields with which it begins, in their order."""
    (line,) = lines(run("current_request.set('part')\nlog.info('something', model='m')"))
    assert list(line) == ["timestamp", "level", "event", "process", "pid", "request_id", "model"]
    assert (line["level"], line["process"], line["request_id"]) == ("info", "parent", "req_part")


@pytest.mark.parametrize(
    ("level", "ours", "theirs"), [("debug", 4, 4), ("info", 3, 2), ("warning", 2, 2), ("error", 1, 1)]
)
def test_events_below_the_level_are_not_written(level: str, ours: int, theirs: int) -> None:
    """Of libraries there are warnings and worse, and all with `debug`."""
    body = "for level in ('debug', 'info', 'warning', 'error'):\n    getattr(log, level)('ours')\n"
    body += "    getattr(logging.getLogger('theirs'), level)('message')"
    events = [line["event"] for line in lines(run(body, f"level={level!r}"))]
    assert (events.count("ours"), events.count("library_message")) == (ours, theirs)


@pytest.mark.parametrize("value", ["'x' * 100_000", "['y' * 400] * 1_000", "'\\n\\x1b[31m\\ud83d' * 300"])
def test_a_line_is_bounded_and_whole(value: str) -> None:
    """Whatever is in it, it is one line that a pipe takes in one piece."""
    text = run(f"log.error('something', reason={value})")
    (line,) = lines(text)
    assert (line["event"], line["process"]) == ("something", "parent")
    assert len(text.encode()) <= 4_096


def test_text_is_for_people_and_steers_no_terminal() -> None:
    """One line an event, and nothing in it that a terminal obeys."""
    text = run("log.info('something', reason='a\\x1b[31mb\\nc')", "format='text'")
    assert "something" in text
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_member_of_an_enumeration_is_what_it_stands_for(form: str) -> None:
    """As 200 and command, whatever Python calls them."""
    body = "import http\nfrom tarazu.store.trail import Via\n"
    text = run(f"{body}log.info('something', status=http.HTTPStatus.OK, via=Via.COMMAND)", f"format={form!r}")
    assert "HTTPStatus" not in text
    assert "Via" not in text
    assert re.search(r"status\W+200\b", re.sub(r"\x1b\[\d*m", "", text))


def test_what_has_a_line_of_ours_is_not_told_by_a_library_too() -> None:
    """Of the same library other lines are told; the words are those that it has."""
    for (name, begin), source in zip(TOLD_IN_OUR_WORDS, (granian_words, psycopg_words), strict=True):
        assert begin in inspect.getsource(source)
        body = f"logging.getLogger({name!r}).warning('%s, and more', {begin!r})\n"
        (line,) = lines(run(f"{body}logging.getLogger({name!r}).warning('something else')"))
        assert (line["logger"], line["message"]) == (name, "something else")


def test_on_a_terminal_it_is_text() -> None:
    """And JSON elsewhere, unless a format is asked for."""
    assert lines(run("log.info('something')"))
    ours, theirs = pty.openpty()
    try:
        run("log.info('something')", stderr=theirs)
        assert not os.read(ours, 4_096).startswith(b"{")
        run("log.info('something')", "format='json'", stderr=theirs)
        assert json.loads(os.read(ours, 4_096))["event"] == "something"
    finally:
        os.close(ours)
        os.close(theirs)


def test_what_was_kept_back_is_told_at_the_end() -> None:
    """A process that ends soon has counted for somebody."""
    found = lines(run("for _ in range(1_000):\n    log.warning('flood')"))
    assert len(found) + sum(line.get("times", 1) - 1 for line in found) == 1_000
