"""A clock that tests set, by which the service and its commands tell the time: a month turns when told."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.runs_first import found_first
from tests.support.service import CATALOGUE, RunningService, checked
from tests.support.values import instant_ms

NOON = "2026-02-10T12:00:00Z"

SITE = Path(__file__).with_name("clock_site")
"""What a process that tells the time by a clock runs first; the same for all, as `tests.support.forked` needs it."""


class SetClock:
    """A clock that stands still until it is set. Only the wall clock is set: time-outs run as ever."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "now_ms"
        self.environ = {**found_first(SITE), "SET_CLOCK": str(self._file)}
        self.set(NOON)

    def __call__(self) -> int:
        """Tell the time, in milliseconds since the epoch."""
        return self._now_ms

    def set(self, moment: str) -> None:
        """Set it to an ISO 8601 time."""
        self._set(instant_ms(moment))

    def advance(self, seconds: int) -> None:
        """Set it forward."""
        self._set(self._now_ms + seconds * 1_000)

    def _set(self, now_ms: int) -> None:
        self._now_ms = now_ms
        part = self._file.with_suffix(".part")
        part.write_text(str(now_ms))
        part.replace(self._file)


@contextmanager
def service_by(
    clock: SetClock,
    folder: Path,
    backend_url: str,
    *,
    catalogue: str = CATALOGUE,
    server: str = "",
    database_url: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[RunningService]:
    """Run a service that tells the time by `clock`; at the end its books must balance, and its log be clean."""
    environ = {**clock.environ, **(environ or {})}
    service = RunningService(
        folder,
        backend_url,
        catalogue=catalogue,
        server=server,
        database_url=database_url,
        environ=environ,
        clock=clock,
    )
    with checked(service) as running:
        yield running
