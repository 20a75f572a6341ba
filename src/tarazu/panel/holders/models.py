"""The models that the account may call, with their prices, and how a program calls each."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.api.contract.samples import chat_samples
from tarazu.backends.pool import Pool
from tarazu.domain.accounts import Account
from tarazu.domain.catalogue import Model
from tarazu.domain.search_form import any_reads, search_form
from tarazu.panel.acting import act
from tarazu.panel.holders.offer import offered_models
from tarazu.panel.messages import later, translations
from tarazu.panel.usage_bars import drawn
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.configuration.addresses import API_PATH
from tarazu.service.reports import usage_report
from tarazu.store.usage import Part

CAPABILITIES = {
    "chat": later("chat"),
    "reasoning": later("reasoning"),
    "vision": later("vision"),
    "streaming": later("streaming"),
    "tools": later("tools"),
    "json_output": later("JSON output"),
}
ORDER_NAMES = {
    "": later("as the service lists them"),
    "cheapest": later("cheapest first"),
    "dearest": later("dearest first"),
    "name": later("by name"),
}
ORDERS: Mapping[str, Callable[[Model], Any]] = {
    "cheapest": lambda model: (model.credits, model.payg_amount),
    "dearest": lambda model: (-model.credits, -model.payg_amount),
    "name": lambda model: search_form(model.display_name),
}


class ModelPages:
    """The pages of models. `base_url` is where callers reach the service."""

    def __init__(self, office: BackOffice, pools: Mapping[str, Pool], base_url: str) -> None:
        self._office = office
        self._pools = pools
        self._api_url = base_url + API_PATH

    async def list(self, visit: Visit) -> Response:
        """List the models that are looked for, those that are unavailable now too."""
        account = await self._account(visit)
        offered = offered_models(account, self._office.catalogue)
        search, capability, order = visit.query("search").strip(), visit.query("capability"), visit.query("order")
        models = [model for model in offered if _is_sought(model, search, capability)]
        if order in ORDERS:
            models.sort(key=ORDERS[order])
        gettext = translations(visit.formats.language).gettext
        able = [
            (name, gettext(word)) for name, word in CAPABILITIES.items() if any(_can(model, name) for model in offered)
        ]
        return visit.page(
            "models.html",
            models=models,
            offered=offered,
            search=search,
            capability=capability,
            order=order,
            capability_filter=[("", gettext("anything")), *able],
            orders=[(name, gettext(word)) for name, word in ORDER_NAMES.items()],
            ready={model.id for model in models if self._pools[model.id].available},
            capabilities_of=capabilities_of,
            currency=self._office.catalogue.currency,
        )

    async def show(self, visit: Visit) -> Response:
        """Show one model, and how it is called."""
        account, catalogue = await self._account(visit), self._office.catalogue
        models = offered_models(account, catalogue)
        model = next((model for model in models if model.id == visit.part("model_id")), None)
        if model is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        now_ms, part = self._office.clock(), Part(model_id=model.id)
        usage = await self._office.look(
            lambda connection: usage_report(connection, account.id, catalogue, now_ms, part=part)
        )
        return visit.page(
            "model.html",
            model=model,
            usage=usage,
            drawn=drawn(usage, visit.formats),
            requests_per_minute=catalogue.offer(account.plan).requests_per_minute,
            is_ready=self._pools[model.id].available,
            capabilities=capabilities_of(model),
            samples=chat_samples(self._api_url, model.id),
            currency=catalogue.currency,
        )

    async def _account(self, visit: Visit) -> Account:
        return await act(self._office, visit, lambda books: books.account(visit.someone.id))


def capabilities_of(model: Model) -> list[str]:
    """Name what a model can do, to be translated where it is shown."""
    return [name for field, name in CAPABILITIES.items() if _can(model, field)]


def is_called(model: Model, search: str) -> bool:
    """Tell whether a text stands in what a model or its provider is called, as it reads."""
    return any_reads(search, model.id, model.display_name, model.provider)


def _is_sought(model: Model, search: str, capability: str) -> bool:
    return is_called(model, search) and (capability not in CAPABILITIES or _can(model, capability))


def _can(model: Model, capability: str) -> bool:
    return bool(getattr(model.capabilities, capability))
