"""The models that the account may call, with their prices, and how a program calls each."""

from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.api.contract.samples import chat_samples
from tarazu.backends.pool import Pool
from tarazu.domain.catalogue import ANY_MODEL, Model
from tarazu.panel.acting import act
from tarazu.panel.messages import later
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.configuration.addresses import API_PATH

CAPABILITIES = {
    "chat": later("chat"),
    "reasoning": later("reasoning"),
    "vision": later("vision"),
    "streaming": later("streaming"),
    "tools": later("tools"),
    "json_output": later("JSON output"),
}


class ModelPages:
    """The pages of models. `base_url` is where callers reach the service."""

    def __init__(self, office: BackOffice, pools: Mapping[str, Pool], base_url: str) -> None:
        self._office = office
        self._pools = pools
        self._api_url = base_url + API_PATH

    async def list(self, visit: Visit) -> Response:
        """List the models in catalogue order, those that are unavailable now too."""
        models = await self._models(visit)
        ready = {model.id for model in models if self._pools[model.id].available}
        return visit.page("models.html", models=models, ready=ready, capabilities_of=capabilities_of, **self._money())

    async def show(self, visit: Visit) -> Response:
        """Show one model, and how it is called."""
        models = await self._models(visit)
        model = next((model for model in models if model.id == visit.request.path_params["model_id"]), None)
        if model is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return visit.page(
            "model.html",
            model=model,
            is_ready=self._pools[model.id].available,
            capabilities=capabilities_of(model),
            samples=chat_samples(self._api_url, model.id),
            **self._money(),
        )

    async def _models(self, visit: Visit) -> tuple[Model, ...]:
        account = await act(self._office, visit, lambda books: books.account(visit.someone.id))
        catalogue = self._office.catalogue
        return tuple(catalogue.usable_models(catalogue.offer(account.plan), (ANY_MODEL,)))

    def _money(self) -> dict[str, str]:
        return {"currency": self._office.catalogue.currency}


def capabilities_of(model: Model) -> list[str]:
    """Name what a model can do, to be translated where it is shown."""
    return [name for field, name in CAPABILITIES.items() if getattr(model.capabilities, field)]
