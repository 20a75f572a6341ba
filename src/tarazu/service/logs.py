"""Set up the logs: one line an event on standard error, for people on a terminal, as JSON elsewhere."""

import logging
import sys

import structlog


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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
