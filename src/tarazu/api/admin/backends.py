"""The backends of all models, and how they are."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.members import time
from tarazu.api.admin.route import Route
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.calendar import iso_time
from tarazu.service.backend_reports import BackendHealth, BackendReport, backend_reports
from tarazu.service.servers import model_of


class BackendRestObject(Struct, frozen=True, kw_only=True):
    """A process of the service that leaves a backend alone for a while."""

    process: Annotated[str, Meta(description="Its machine, its number there, and random characters.")]
    state: Annotated[
        str,
        Meta(
            description="Why: it is busy, or has failed.",
            extra_json_schema={"enum": [BackendHealth.BUSY, BackendHealth.TRIPPED]},
        ),
    ]
    fault: Annotated[str, Meta(description="What the backend did last.")]
    since: Annotated[str, time("When it was last well.")]
    until: Annotated[str, time("When it may be tried again.")]


class BackendObject(Struct, frozen=True, kw_only=True):
    """A backend of a model, with its health as all processes of the service see it. Its address is not shown."""

    model: Annotated[str, Meta(description="Id of the model that it serves.")]
    backend: Annotated[str, Meta(description="Names the backend: the model's id, and its place in the configuration.")]
    kind: Annotated[str, Meta(description="Which protocol it speaks.")]
    server_model: Annotated[str | None, Meta(description="The name that the server knows the model by.")]
    priority: Annotated[int, Meta(ge=0, description="0 is asked first.")]
    weight: Annotated[int, Meta(ge=1, description="Its share of the load among those of its priority.")]
    max_concurrency: Annotated[int | None, Meta(description="Requests at once from one process; null: no bound.")]
    timeout_s: Annotated[float, Meta(gt=0, description="How long one try may take.")]
    health: Annotated[
        str,
        Meta(description="The worst that a process says of it.", extra_json_schema={"enum": list(BackendHealth)}),
    ]
    rests: Annotated[tuple[BackendRestObject, ...], Meta(description="The processes that leave it alone now.")]


class BackendList(Struct, frozen=True, kw_only=True):
    """The backends of all models, in the order in which they are asked."""

    data: Annotated[tuple[BackendObject, ...], Meta(description="The backends.")]

    @classmethod
    def of(cls, reports: Sequence[BackendReport]) -> "BackendList":
        """Describe backends, and their rests."""
        return cls(data=tuple(map(_backend, reports)))


def _backend(report: BackendReport) -> BackendObject:
    spec = report.spec
    return BackendObject(
        model=report.model.id,
        backend=report.name,
        kind=spec.kind,
        server_model=model_of(spec),
        priority=spec.priority,
        weight=spec.weight,
        max_concurrency=spec.max_concurrency,
        timeout_s=report.model.timeout_of(spec),
        health=report.health.value,
        rests=tuple(
            BackendRestObject(
                process=rest.process_id,
                state=rest.state,
                fault=rest.fault,
                since=iso_time(rest.since_ms),
                until=iso_time(rest.until_ms),
            )
            for rest in report.rests
        ),
    )


async def list_backends(desk: Desk, _call: Call[NoQuery, None]) -> Reply:
    """Show all backends; none is asked."""
    models = desk.catalogue.models.values()
    reports = await desk.office.look(lambda connection: backend_reports(connection, models, desk.now_ms()))
    return Reply(BackendList.of(reports))


ROUTES = (
    Route(
        operation_id="listBackends",
        tag="Running it",
        method="GET",
        path="/backends",
        scope=Scope.READ,
        summary="List the backends",
        description="In the order in which they are asked, with the health that all processes tell. None is asked.",
        answer=BackendList(
            data=(
                BackendObject(
                    model="openai/gpt-4o-mini",
                    backend="openai/gpt-4o-mini#1",
                    kind="openai",
                    server_model="gpt-4o-mini",
                    priority=0,
                    weight=1,
                    max_concurrency=None,
                    timeout_s=60,
                    health="tripped",
                    rests=(
                        BackendRestObject(
                            process="shop-1:4711:0V2yJ8kQmZ4tB7",
                            state="tripped",
                            fault="refused",
                            since="2026-03-14T09:26:00Z",
                            until="2026-03-14T09:26:08Z",
                        ),
                    ),
                ),
            )
        ),
        handle=list_backends,
    ),
)
