"""Read what is sold: billing, models, plans and the pay-as-you-go section become the domain's Catalogue."""

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

from tarazu.domain.bounds import MIB, Bounds
from tarazu.domain.catalogue import ANY_MODEL, NO_PLAN, Capabilities, Catalogue, Model, Offer, Plan, Shop
from tarazu.service.configuration.addresses import contact_fault, page_address_fault
from tarazu.service.configuration.backends import read_backend
from tarazu.service.configuration.lines import KeyPath
from tarazu.service.configuration.problems import Findings, did_you_mean, listed, shown
from tarazu.service.configuration.schema import (
    BillingSection,
    IdempotencySection,
    KeysSection,
    ModelSection,
    PaygSection,
    PlanSection,
    ShopSection,
)
from tarazu.service.configuration.sections import read_section, read_tables
from tarazu.service.configuration.surroundings import Surroundings

MODEL_ID_CHARACTERS_MAX = 128
PLAN_NAME_CHARACTERS_MAX = 64
OWN_PROVIDER = "tarazu"
"""The provider of a model whose id names none before a slash."""

_MODEL_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9:._-]*+(?:/[A-Za-z0-9_][A-Za-z0-9:._-]*+)*+", re.ASCII)
_PLAN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)
_CAPABILITIES = tuple(name for name in Capabilities.__struct_fields__ if name != "streaming")


def read_catalogue(document: dict[str, Any], surroundings: Surroundings, findings: Findings) -> Catalogue:
    """Make the catalogue; it is good once `findings` has raised nothing."""
    billing = read_section(BillingSection, document.get("billing", {}), ("billing",), findings)
    payg = read_section(PaygSection, document.get("payg", {}), ("payg",), findings)
    models = {
        model_id: _model(model_id, table, surroundings, findings)
        for model_id, table in read_tables(document, "models", findings).items()
    }
    plans = {
        name: _plan(name, table, models, findings) for name, table in read_tables(document, "plans", findings).items()
    }
    if not models:
        findings.add(
            ("models",),
            'there is no model to sell; add [models."ID"] with credits, and [[models."ID".backends]] with a kind',
        )
    _check_models(payg.models, ("payg", "models"), models, findings)
    default_model = billing.default_model
    if default_model is not None and default_model not in models:
        findings.add(("billing", "default_model"), _no_such_model(default_model, models))
    return Catalogue(
        models=models,
        plans=plans,
        payg=Offer(models=payg.models, requests_per_minute=payg.requests_per_minute),
        zone=_zone(billing.timezone, findings),
        currency=billing.currency,
        default_model=default_model,
        bounds=_bounds(document, findings),
        shop=_shop(document, findings),
        abandoned_per_hour=billing.abandoned_per_hour if billing.abandoned == "free" else 0,
    )


def _shop(document: dict[str, Any], findings: Findings) -> Shop:
    section = read_section(ShopSection, document.get("shop", {}), ("shop",), findings)
    for name, fault_of in (("payment_url", page_address_fault), ("contact", contact_fault)):
        text = getattr(section, name)
        if text is not None and (fault := fault_of(text)):
            findings.add(("shop", name), fault)
    return Shop(name=section.name, payment_url=section.payment_url, contact=section.contact)


def _bounds(document: dict[str, Any], findings: Findings) -> Bounds:
    keys = read_section(KeysSection, document.get("keys", {}), ("keys",), findings)
    idempotency = read_section(IdempotencySection, document.get("idempotency", {}), ("idempotency",), findings)
    return Bounds(
        keys=keys.per_account,
        new_keys_hourly=keys.per_hour,
        account_reply_bytes=idempotency.per_account_mib * MIB,
        reply_bytes=idempotency.total_mib * MIB,
    )


def _model(model_id: str, table: object, surroundings: Surroundings, findings: Findings) -> Model:
    key = ("models", model_id)
    if len(model_id) > MODEL_ID_CHARACTERS_MAX or not _MODEL_ID.fullmatch(model_id):
        findings.add(
            key,
            f"expected a model id of 1 to {MODEL_ID_CHARACTERS_MAX} letters, digits and : . - _ in parts that "
            'are divided by single slashes, as in [models."openai/gpt-4o"]',
        )
    section = read_section(ModelSection, table, key, findings)
    tables = section.backends or ()
    backends = (
        read_backend(backend, (*key, "backends", place), surroundings, findings) for place, backend in enumerate(tables)
    )
    provider, slash, _ = model_id.partition("/")
    return Model(
        id=model_id,
        display_name=section.display_name or model_id,
        provider=section.provider or (provider if slash else OWN_PROVIDER),
        description=section.description,
        credits=section.credits,
        payg_amount=section.payg_amount,
        capabilities=_capabilities(section.capabilities, (*key, "capabilities"), findings),
        max_output_tokens=section.max_output_tokens,
        timeout_s=section.timeout_s,
        backends=tuple(backend for backend in backends if backend is not None),
    )


def _capabilities(names: tuple[str, ...], key: KeyPath, findings: Findings) -> Capabilities:
    for place, name in enumerate(names):
        if name == "streaming":
            findings.add((*key, place), '"streaming" is not available, since replies are sent whole; leave it out')
        elif name not in _CAPABILITIES:
            findings.add((*key, place), f"expected one of {listed(_CAPABILITIES)}, got {shown(name)}")
    return Capabilities(**{name: True for name in names if name in _CAPABILITIES})


def _plan(name: str, table: object, models: Iterable[str], findings: Findings) -> Plan:
    key = ("plans", name)
    if name.casefold() == NO_PLAN:
        findings.add(key, f'no plan may be called "{NO_PLAN}": GET /usage says so of an account without one')
    elif len(name) > PLAN_NAME_CHARACTERS_MAX or not _PLAN_NAME.fullmatch(name):
        findings.add(
            key,
            f"expected a plan name of 1 to {PLAN_NAME_CHARACTERS_MAX} letters, digits and . - _ as in [plans.pro]",
        )
    section = read_section(PlanSection, table, key, findings)
    _check_models(section.models, (*key, "models"), models, findings)
    return Plan(
        name=name,
        monthly_credits=section.monthly_credits,
        requests_per_minute=section.requests_per_minute,
        models=section.models,
    )


def _check_models(wanted: tuple[str, ...], key: KeyPath, models: Iterable[str], findings: Findings) -> None:
    for place, model_id in enumerate(wanted):
        if model_id != ANY_MODEL and model_id not in models:
            findings.add((*key, place), _no_such_model(model_id, models))


def _no_such_model(model_id: str, models: Iterable[str]) -> str:
    meant = did_you_mean(model_id, models)
    advice = f"did you mean {shown(meant)}?" if meant else 'each model needs a section [models."ID"]'
    return f"there is no model {shown(model_id)}, {advice}"


def _zone(name: str, findings: Findings) -> ZoneInfo:
    """Find a time zone. The names are those of the tzdata package, the same on every machine."""
    names = files("tzdata").joinpath("zones").read_text("utf-8").split()
    if name in names:
        return ZoneInfo(name)
    meant = did_you_mean(name, names)
    advice = f"did you mean {shown(meant)}?" if meant else 'as in "Asia/Tehran"'
    findings.add(("billing", "timezone"), f"expected the IANA name of a time zone, got {shown(name)}, {advice}")
    return ZoneInfo("UTC")
