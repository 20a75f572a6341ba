"""GET /models and GET /models/{model_id}: exactly what the calling key can use."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from tarazu.api.envelope import json_response
from tarazu.api.identity import identified
from tarazu.api.objects import ModelCapabilities, ModelList, ModelObject, Pricing
from tarazu.backends.pool import Pool
from tarazu.domain.admission import usable_models
from tarazu.domain.catalogue import Model
from tarazu.domain.errors import Error, Refusal, RefusedError
from tarazu.store.ledger import Ledger

NO_ID = "No model is named. Leave the slash at the end out: GET /models lists the models."


class ModelEndpoints:
    """The two endpoints that show models; `pools` tell which of them are ready."""

    def __init__(self, ledger: Ledger, pools: Mapping[str, Pool]) -> None:
        self._ledger = ledger
        self._pools = pools

    async def list(self, request: Request) -> Response:
        """List the models that plan and key allow, available or not, in catalogue order."""
        caller = await identified(request, self._ledger)
        models = usable_models(caller, self._ledger.catalogue)
        return json_response(ModelList(data=tuple(map(self._object, models))))

    async def retrieve(self, request: Request) -> Response:
        """Show one model, its id matched exactly; not found when GET /models does not list it."""
        caller = await identified(request, self._ledger)
        for model in usable_models(caller, self._ledger.catalogue):
            if model.id == request.path_params["model_id"]:
                return json_response(self._object(model))
        message = None if request.path_params["model_id"] else NO_ID
        raise RefusedError(Refusal(error=Error.MODEL_NOT_FOUND, message=message))

    def _object(self, model: Model) -> ModelObject:
        available = self._pools[model.id].available
        return ModelObject(
            id=model.id,
            display_name=model.display_name,
            provider=model.provider,
            description=model.description,
            credits_per_request=model.credits,
            capabilities=ModelCapabilities.of(model.capabilities),
            pricing=Pricing(
                credits=model.credits,
                payg_amount=model.payg_amount,
                currency=self._ledger.catalogue.currency,
            ),
            available=available,
            status="available" if available else "unavailable",
        )
