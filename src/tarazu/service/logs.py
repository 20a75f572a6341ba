"""The log: one line an event on standard error, as JSON or, for people on a terminal, as text.

What Python and libraries have to say comes in the same form. No line holds a key, a prompt, a reply or a backend's
credentials: of an exception it tells the kind and the places, and its message only where that is ours or the system's.
"""

import asyncio
import json
import logging
import multiprocessing
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import structlog

from tarazu.service.configuration.schema import LogSettings
from tarazu.service.identifiers import REQUEST_PREFIX, current_request
from tarazu.service.log_lines import LINE_BYTES_MAX, LineWriter
from tarazu.service.log_sums import Fields, Sums
from tarazu.service.shortages import shortage

STANDARD_ERROR = 2
TEXT_CHARACTERS_MAX = 500
"""Of one field."""
PLACES_MAX = 12
"""Of a traceback, the innermost."""
CAUSES_MAX = 5
TOLD_IN_OUR_WORDS = (
    ("_granian", "Configured number of workers appears to be higher"),
    ("psycopg", "error ignored terminating"),
)
"""What libraries say, by logger and first words, of what has a line of ours: `more_workers_than_cores`, and the error
that whoever has the connection tells."""
FIRST = ("timestamp", "level", "event", "process", "pid", "request_id")
"""The order in which a line begins, and what is left of one that is too long."""

log = structlog.get_logger()


@contextmanager
def logs_written(settings: LogSettings) -> Iterator[LineWriter]:
    """Write the log of this process until the block ends, and then what still waits.

    The writer that it gives is to be started, once this process forks no other any more.
    """
    is_text = settings.format == "text" or (settings.format == "auto" and os.isatty(STANDARD_ERROR))
    render = _text if is_text else _json
    sums = Sums()
    name = multiprocessing.current_process().name
    process = {"process": "parent" if name == "MainProcess" else name, "pid": os.getpid()}

    def add_process(_logger: object, _method: str, fields: Fields) -> Fields:
        return {**fields, **process}

    stamp = structlog.processors.TimeStamper(fmt="iso")

    def own_lines(dropped: int, *, at_end: bool = False) -> Iterable[bytes]:
        for fields in sums.due(at_end=at_end):
            yield render(None, "", fields)
        if dropped:
            fields = stamp(None, "warning", {"event": "log_lines_dropped", "level": "warning", "lines": dropped})
            yield render(None, "", add_process(None, "warning", fields))

    writer = LineWriter(STANDARD_ERROR, own_lines)
    structlog.configure(
        processors=[structlog.processors.add_log_level, stamp, add_process, _add_request, _plain, sums, render],
        wrapper_class=structlog.make_filtering_bound_logger(settings.level),
        logger_factory=lambda *_: _Logger(writer),
        cache_logger_on_first_use=False,  # what this process forks has a writer of its own
    )
    try:
        with _others_heard(settings):
            yield writer
    finally:
        for line in own_lines(0, at_end=True):
            writer.write(line)
        writer.close()


@contextmanager
def without_logs() -> Iterator[None]:
    """Say nothing while the block runs: for a command that tells a person all that there is in its own words."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


def trace_of(error: BaseException) -> Fields:
    """Tell of an exception what is no secret: its kind, the places it came through, and what it came of."""
    frames = deque(traceback.walk_tb(error.__traceback__), PLACES_MAX)
    places = [f"{frame.f_code.co_filename}:{line}" for frame, line in frames]
    causes: list[str] = []
    cause = error
    while (cause := cause.__cause__ or cause.__context__) and len(causes) < CAUSES_MAX:  # type: ignore[assignment]
        causes.append(type(cause).__name__)
    is_plain = isinstance(error, OSError) or type(error).__module__.startswith("tarazu.")
    reason = str(error) if is_plain else shortage(error)
    return {
        "error": type(error).__name__,
        **({"reason": reason} if reason else {}),
        **({"came_of": causes} if causes else {}),
        "at": places[-1] if places else "",
        "through": places[:-1],
    }


def log_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Write what an event loop has nobody else to tell."""
    error = context.get("exception")
    told = {"message": context["message"]} if error is None else trace_of(error)
    log.error("unhandled", where="event loop", **told)


class _Logger:
    """What structlog hands its lines to."""

    def __init__(self, writer: LineWriter) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = writer.write


class _OtherLogger(logging.Handler):
    """Takes what libraries log: its first line, since what follows are quotations, and the kind of an exception."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        message = record.getMessage().partition("\n")[0]
        if any(record.name == name and message.startswith(begin) for name, begin in TOLD_IN_OUR_WORDS):
            return
        level = max(record.levelno // 10 * 10, logging.DEBUG)
        log.log(level, "library_message", logger=record.name, message=message, **(trace_of(error) if error else {}))


@contextmanager
def _others_heard(settings: LogSettings) -> Iterator[None]:
    """Take what Python and libraries say into the log, until the block ends."""

    def take_uncaught(_kind: object, error: BaseException, _trace: object) -> None:
        log.critical("unhandled", where="main thread", **trace_of(error))

    def take_from_thread(told: threading.ExceptHookArgs) -> None:
        if told.exc_value is not None:
            name = "" if told.thread is None else told.thread.name
            log.critical("unhandled", where=f"thread {name}", **trace_of(told.exc_value))

    def take_unraisable(told: "sys.UnraisableHookArgs") -> None:
        if told.exc_value is not None:
            log.error("unhandled", where="what could not raise it", **trace_of(told.exc_value))

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    root.handlers[:] = [_OtherLogger()]
    root.setLevel("WARNING" if settings.level == "info" else settings.level.upper())  # they have much to say
    logging.captureWarnings(capture=True)
    sys.excepthook, threading.excepthook, sys.unraisablehook = take_uncaught, take_from_thread, take_unraisable
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(capture=False)
        root.handlers[:] = handlers
        root.setLevel(level)


def _add_request(_logger: object, _method: str, fields: Fields) -> Fields:
    """Tell of which request a line is."""
    unique = current_request.get(None)
    return fields if unique is None else {**fields, "request_id": REQUEST_PREFIX + unique}


def _plain(_logger: object, _method: str, fields: Fields) -> Fields:
    """Write the members of enumerations as what they stand for, and no text that is too long."""
    return {name: _bounded(value.value if isinstance(value, Enum) else value) for name, value in fields.items()}


def _bounded(value: object) -> object:
    is_long = isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX
    return f"{value[:TEXT_CHARACTERS_MAX]}…" if is_long else value  # type: ignore[index]  # is a text


def _json(_logger: object, _method: str, fields: Fields) -> bytes:
    first = {name: fields[name] for name in FIRST if name in fields}
    line = _json_line({**first, **fields})
    return line if len(line) <= LINE_BYTES_MAX else _json_line({**first, "cut": True})


def _json_line(fields: Fields) -> bytes:
    # A lone surrogate becomes its escape, which JSON reads too.
    text = json.dumps(fields, ensure_ascii=False, default=repr, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


_console = structlog.dev.ConsoleRenderer(colors=os.isatty(STANDARD_ERROR))


def _text(_logger: object, _method: str, fields: Fields) -> bytes:
    """Write a line for people. What a terminal would obey is written as Python writes it."""
    plain = {
        name: repr(value)[1:-1] if isinstance(value, str) and not value.isprintable() else value
        for name, value in fields.items()
    }
    return _console(None, "", plain).encode("utf-8", "backslashreplace")[: LINE_BYTES_MAX - 1] + b"\n"
