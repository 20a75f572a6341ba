"""The catalogue as it is in force, without what is behind it."""

from typing import Annotated

from msgspec import Meta, Struct

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.route import Route
from tarazu.api.objects import ModelCapabilities
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.catalogue import Catalogue, Model


class PlanObject(Struct, frozen=True, kw_only=True):
    """A plan on sale."""

    name: Annotated[str, Meta(description="Names the plan.")]
    monthly_credits: Annotated[int, Meta(ge=0, description="Its quota.")]
    requests_per_minute: Annotated[int, Meta(ge=1, description="Over all keys of an account.")]
    models: Annotated[tuple[str, ...], Meta(description="Ids of models, or `*` for all.")]


class PaygObject(Struct, frozen=True, kw_only=True):
    """What an account without a plan may use, while it has a balance."""

    requests_per_minute: Annotated[int, Meta(ge=1, description="Over all keys of an account.")]
    models: Annotated[tuple[str, ...], Meta(description="Ids of models, or `*` for all.")]


class CatalogueModelObject(Struct, frozen=True, kw_only=True):
    """A model on sale. Its backends are counted, not shown."""

    id: Annotated[str, Meta(description="What callers send as `model`.")]
    display_name: Annotated[str, Meta(description="For people.")]
    provider: Annotated[str, Meta(description="Whose model it is.")]
    description: Annotated[str, Meta(description="What it is good for.")]
    credits: Annotated[int, Meta(ge=0, description="Price of a request.")]
    payg_amount: Annotated[int, Meta(ge=0, description="The same price in the catalogue's currency, informative.")]
    capabilities: Annotated[ModelCapabilities, Meta(description="What it can do.")]
    max_output_tokens: Annotated[
        int | None, Meta(description="The most tokens of a reply; null: the backend's own bound.")
    ]
    timeout_s: Annotated[float, Meta(gt=0, description="How long a request may take.")]
    backends: Annotated[int, Meta(ge=0, description="How many backends serve it.")]


class CatalogueObject(Struct, frozen=True, kw_only=True):
    """What is sold now, as the configuration has it."""

    currency: Annotated[str, Meta(description="Of prices.")]
    time_zone: Annotated[str, Meta(description="In which days and months turn.")]
    default_model: Annotated[str | None, Meta(description="What a request gets that names no model.")]
    plans: Annotated[tuple[PlanObject, ...], Meta(description="The plans.")]
    payg: Annotated[PaygObject, Meta(description="What there is without a plan.")]
    models: Annotated[tuple[CatalogueModelObject, ...], Meta(description="The models.")]

    @classmethod
    def of(cls, catalogue: Catalogue) -> "CatalogueObject":
        """Describe a catalogue."""
        payg = catalogue.payg
        return cls(
            currency=catalogue.currency,
            time_zone=str(catalogue.zone),
            default_model=catalogue.default_model,
            plans=tuple(
                PlanObject(
                    name=plan.name,
                    monthly_credits=plan.monthly_credits,
                    requests_per_minute=plan.requests_per_minute,
                    models=plan.models,
                )
                for plan in catalogue.plans.values()
            ),
            payg=PaygObject(requests_per_minute=payg.requests_per_minute, models=payg.models),
            models=tuple(map(_catalogue_model, catalogue.models.values())),
        )


def _catalogue_model(model: Model) -> CatalogueModelObject:
    return CatalogueModelObject(
        id=model.id,
        display_name=model.display_name,
        provider=model.provider,
        description=model.description,
        credits=model.credits,
        payg_amount=model.payg_amount,
        capabilities=ModelCapabilities.of(model.capabilities),
        max_output_tokens=model.max_output_tokens,
        timeout_s=model.timeout_s,
        backends=len(model.backends),
    )


async def get_catalogue(desk: Desk, _call: Call[NoQuery, None]) -> Reply:
    """Show what is sold."""
    return Reply(CatalogueObject.of(desk.catalogue))


ROUTES = (
    Route(
        operation_id="getCatalogue",
        tag="Running it",
        method="GET",
        path="/catalogue",
        scope=Scope.READ,
        summary="Show the catalogue",
        description="Plans and models as they are in force in the process that answers.",
        answer=CatalogueObject(
            currency="IRT",
            time_zone="Asia/Tehran",
            default_model="tarazu/smollm2",
            plans=(PlanObject(name="pro", monthly_credits=100_000, requests_per_minute=600, models=("*",)),),
            payg=PaygObject(requests_per_minute=60, models=("tarazu/smollm2",)),
            models=(
                CatalogueModelObject(
                    id="tarazu/smollm2",
                    display_name="SmolLM2 135M",
                    provider="tarazu",
                    description="A very small model, for trying things out.",
                    credits=1,
                    payg_amount=10,
                    capabilities=ModelCapabilities(
                        chat=True, reasoning=False, vision=False, streaming=False, tools=False, json_output=False
                    ),
                    max_output_tokens=512,
                    timeout_s=60,
                    backends=1,
                ),
            ),
        ),
        handle=get_catalogue,
    ),
)
