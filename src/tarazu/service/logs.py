"""Set up the logs: one line an event on standard error, for people on a terminal, as JSON elsewhere."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

import structlog


class _Unfailing:
    """The part of a stream that a logger uses. A failure loses the line and stops nobody.

    The disk may be full, or the reader gone, just when there is most to tell.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def configure_logs() -> None:
    """Send all logs to standard error. No event holds a key, a prompt, a reply or a backend's credentials."""
    render: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _Unfailing(sys.stderr))),
        cache_logger_on_first_use=True,
    )


@contextmanager
def without_logs() -> Iterator[None]:
    """Say nothing while the block runs: for a command that tells a person all that there is in its own words."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)
