"""See the statements of an engine just before its driver runs them, by whatever way they come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Dialect, Engine

WAYS = ("do_execute", "do_executemany")

See = Callable[[Any, str, Any], None]
"""Is given the driver's cursor, the text and its values: of many rows a list."""


@contextmanager
def seen(engine: Engine) -> Iterator[list[str]]:
    """Note the statements that are run in the block."""
    statements: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        before_each(engine.dialect, lambda _cursor, statement, _values: statements.append(statement), patch)
        yield statements


def before_each(dialect: Dialect, see: See, patch: pytest.MonkeyPatch | None = None) -> None:
    """Call `see` before each statement of the dialect's engine, for good or until `patch` is undone.

    SQLAlchemy's event is not told of statements that the driver is given as they are.
    """
    patch = patch or pytest.MonkeyPatch()
    for way in WAYS:
        patch.setattr(dialect, way, _seeing(getattr(dialect, way), see))


def _seeing(run: Callable[..., None], see: See) -> Callable[..., None]:
    def seeing(cursor: Any, statement: str, values: Any, *rest: Any) -> None:
        see(cursor, statement, values)
        run(cursor, statement, values, *rest)

    return seeing
