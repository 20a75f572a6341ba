"""How the backends of the catalogue are, as the processes of the service have told the books."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.catalogue import BackendSpec, Model
from tarazu.store.backend_rests import BackendRest, read_rests


class BackendHealth(StrEnum):
    """The health of a backend: that one process has tripped it says more than that another found it busy."""

    READY = "ready"
    BUSY = "busy"
    TRIPPED = "tripped"
    DISABLED = "disabled"
    """By the configuration."""


class BackendReport(Struct, frozen=True, kw_only=True):
    """A backend as the configuration has it, and the rests of all processes that leave it alone now."""

    model: Model
    name: str
    spec: BackendSpec
    rests: tuple[BackendRest, ...]

    @property
    def health(self) -> BackendHealth:
        """Sum up what the processes say."""
        if not self.spec.enabled:
            return BackendHealth.DISABLED
        states = {rest.state for rest in self.rests}
        return next(
            (state for state in (BackendHealth.TRIPPED, BackendHealth.BUSY) if state in states), BackendHealth.READY
        )


def backend_reports(connection: Connection, models: Iterable[Model], now_ms: int) -> list[BackendReport]:
    """Report on the backends of these models, each model's in the order in which they are asked."""
    rests = read_rests(connection, now_ms)
    return [
        BackendReport(
            model=model,
            name=name,
            spec=spec,
            rests=tuple(rest for rest in rests if rest.backend == name) if spec.enabled else (),
        )
        for model in models
        for name, spec in sorted(model.named_backends(), key=lambda named: named[1].priority)
    ]
