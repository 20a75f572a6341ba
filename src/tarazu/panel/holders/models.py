"""The models that the account may call, with their prices, and how a program calls each."""

from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.api.contract.samples import chat_samples
from tarazu.backends.pool import Pool
from tarazu.domain.accounts import Account
from tarazu.domain.catalogue import Model
from tarazu.panel.acting import act
from tarazu.panel.holders.offer import can_pay, offered_models
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
        account = await self._account(visit)
        models = offered_models(account, self._office.catalogue)
        return visit.page(
            "models.html",
            models=models,
            ready={model.id for model in models if self._pools[model.id].available},
            is_payable=can_pay(account, self._office.catalogue),
            capabilities_of=capabilities_of,
            currency=self._office.catalogue.currency,
        )

    async def show(self, visit: Visit) -> Response:
        """Show one model, and how it is called."""
        models = offered_models(await self._account(visit), self._office.catalogue)
        model = next((model for model in models if model.id == visit.part("model_id")), None)
        if model is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return visit.page(
            "model.html",
            model=model,
            is_ready=self._pools[model.id].available,
            capabilities=capabilities_of(model),
            samples=chat_samples(self._api_url, model.id),
            currency=self._office.catalogue.currency,
        )

    async def _account(self, visit: Visit) -> Account:
        return await act(self._office, visit, lambda books: books.account(visit.someone.id))


def capabilities_of(model: Model) -> list[str]:
    """Name what a model can do, to be translated where it is shown."""
    return [name for field, name in CAPABILITIES.items() if getattr(model.capabilities, field)]
