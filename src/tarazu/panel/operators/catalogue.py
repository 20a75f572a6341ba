"""The catalogue as it is in force in this process, without what gives access to a backend."""

from collections.abc import Mapping
from pathlib import Path

from starlette.responses import Response

from tarazu.domain.search_form import any_reads
from tarazu.panel.holders.models import capabilities_of, is_called
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.configuration.on_disk import look_at_file
from tarazu.service.servers import host_of, model_of

FOLDED_FROM = 12
"""A list that is longer is folded until it is opened, or searched."""


class CataloguePages:
    """The page of what is sold, and of what is behind it."""

    def __init__(self, office: BackOffice, path: Path | None, environ: Mapping[str, str]) -> None:
        """Show what is in force, and how the file at `path` stands to it, if the service has one."""
        self._office = office
        self._path = path
        self._environ = environ

    async def show(self, visit: Visit) -> Response:
        """Show plans, models with their prices, and their backends in the order in which they are asked.

        What is looked for narrows models and backends: by what they are called, whose they are, and where they are.
        """
        catalogue, search = self._office.catalogue, visit.query("search").strip()
        every = [
            (model, name, spec)
            for model in catalogue.models.values()
            for name, spec in sorted(model.named_backends(), key=lambda named: named[1].priority)
        ]
        backends = [
            (model, name, spec)
            for model, name, spec in every
            if is_called(model, search) or any_reads(search, name, spec.kind, host_of(spec), model_of(spec))
        ]
        on_disk = await self._office.look(lambda _: look_at_file(self._path, catalogue, self._environ))
        among = {model.id for model, _, _ in backends}
        return visit.page(
            "operators/catalogue.html",
            catalogue=catalogue,
            search=search,
            on_disk=on_disk,
            models=[model for model in catalogue.models.values() if model.id in among or is_called(model, search)],
            backends=backends,
            backends_count=len(every),
            folded_from=FOLDED_FROM,
            capabilities_of=capabilities_of,
            host_of=host_of,
            model_of=model_of,
        )
