"""The catalogue as it is in force in this process, without what gives access to a backend."""

from starlette.responses import Response

from tarazu.panel.holders.models import capabilities_of
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.servers import host_of, model_of


class CataloguePages:
    """The page of what is sold, and of what is behind it."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show plans, models with their prices, and their backends in the order in which they are asked."""
        catalogue = self._office.catalogue
        backends = [
            (model, name, spec)
            for model in catalogue.models.values()
            for name, spec in sorted(model.named_backends(), key=lambda named: named[1].priority)
        ]
        return visit.page(
            "operators/catalogue.html",
            catalogue=catalogue,
            backends=backends,
            capabilities_of=capabilities_of,
            host_of=host_of,
            model_of=model_of,
        )
