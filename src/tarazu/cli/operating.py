"""`tarazu check`, `audit` and `openapi`: what an operator runs before and beside the service."""

# ruff: noqa: PLC0415 - configuration, database and API are loaded only by the commands that use them

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from tarazu.cli.clock import system_clock
from tarazu.cli.desk import open_books, read_configuration
from tarazu.cli.documents import CheckDocument, ModelDocument, PlanDocument, ProblemDocument
from tarazu.cli.errors import EXIT_FAILED
from tarazu.cli.options import AsJson, ConfigPath
from tarazu.cli.output import INDENT, Column, counted, print_json, print_json_text, print_table, progress, say
from tarazu.cli.program import as_typed, name_configuration
from tarazu.domain.catalogue import ANY_MODEL

if TYPE_CHECKING:
    from tarazu.service.configuration import Configuration
    from tarazu.store.audit import AuditReport

_PLAN_COLUMNS = (
    Column("plan", whole=True),
    Column("credits a month", number=True),
    Column("requests a minute", number=True),
    Column("models"),
)
_DIFFERENCE_COLUMNS = (
    Column("account", whole=True),
    Column("figure"),
    Column("of"),
    Column("booked", number=True),
    Column("computed", number=True),
)


def check(*, as_json: AsJson = False, config: ConfigPath = None) -> int:
    """Check the configuration.

    It lists what is sold, or everything that is wrong. It looks at the books as
    they are, and warns of what would keep a service from them. The exit status is
    1 when there is a problem; a warning leaves it 0.

    For example:

        tarazu check
        tarazu check --config /etc/tarazu/tarazu.toml
    """
    if as_json:
        document = _checked(config)
        print_json(document)
        return 0 if document.ok else EXIT_FAILED
    from tarazu.service.advice import advice

    configuration = read_configuration(config, needs_secrets=True, looks_up=True)
    _print_catalogue(configuration)
    for warning in advice(configuration):
        say(f"\nWarning: {as_typed(warning)}")
    return 0


def audit(*, as_json: AsJson = False, config: ConfigPath = None) -> int:
    """Compare the books with their rows.

    It recomputes every account's used quota and balance and every day's usage,
    and looks for holds that should have ended and rows that belong to nothing.
    The exit status is 1 on any difference. It changes nothing, and can run beside
    the service.

    For example:

        tarazu audit
        tarazu audit --json
    """
    from tarazu.service.auditing import audit_books

    with open_books(read_configuration(config)) as engine, progress() as tell:
        report = audit_books(engine, system_clock, tell)
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    return EXIT_FAILED if report.found else 0


def openapi(
    *,
    admin: Annotated[
        bool, Parameter(name="--admin", negative=(), show_default=False, help="The admin API's contract instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the API's contract, OpenAPI 3.1 in JSON.

    The running service has the same at /api/v1/openapi.json and, for the admin
    API, at /api/admin/v1/openapi.json.

    For example:

        tarazu openapi > openapi.json
        tarazu openapi --admin > admin-openapi.json
    """
    if admin:
        from tarazu.api.admin.openapi import admin_document as document
    else:
        from tarazu.api.openapi import document

    if as_json:
        print_json(document())
    else:
        print_json_text(msgspec.json.format(msgspec.json.encode(document()), indent=INDENT).decode())


def _checked(config: Path | None) -> CheckDocument:
    from tarazu.service.advice import advice
    from tarazu.service.configuration import ConfigurationError, load, looked_up

    name_configuration(config)
    try:
        configuration = looked_up(load(config))
    except ConfigurationError as error:
        return CheckDocument(
            ok=False,
            problems=tuple(
                ProblemDocument(file=problem.file, line=problem.line, key=problem.key, reason=problem.reason)
                for problem in error.problems
            ),
        )
    return CheckDocument(
        ok=True,
        warnings=tuple(map(as_typed, advice(configuration))),
        path=None if configuration.path is None else str(configuration.path),
        plans=tuple(
            PlanDocument(
                name=plan.name,
                monthly_credits=plan.monthly_credits,
                requests_per_minute=plan.requests_per_minute,
                models=plan.models,
            )
            for plan in configuration.catalogue.plans.values()
        ),
        models=tuple(
            ModelDocument(
                id=model.id,
                display_name=model.display_name,
                credits=model.credits,
                payg_amount=model.payg_amount,
                backends=tuple(backend.kind for backend in model.backends),
            )
            for model in configuration.catalogue.models.values()
        ),
    )


def _print_catalogue(configuration: "Configuration") -> None:
    catalogue = configuration.catalogue
    say(f"{configuration.path or 'The built-in demo catalogue'} is right.\n")
    plans = [
        (plan.name, plan.monthly_credits, plan.requests_per_minute, _models(plan.models))
        for plan in catalogue.plans.values()
    ]
    payg = ("(pay as you go)", None, catalogue.payg.requests_per_minute, _models(catalogue.payg.models))
    print_table(_PLAN_COLUMNS, [*plans, payg])
    say()
    print_table(
        (
            Column("model", whole=True),
            Column("name"),
            Column("credits", number=True),
            Column(catalogue.currency, number=True),
            Column("backends"),
        ),
        (
            (model.id, model.display_name, model.credits, model.payg_amount, tuple(of.kind for of in model.backends))
            for model in catalogue.models.values()
        ),
    )
    say(f"\nWithout a model in the request, {catalogue.default_model or 'the first one that is allowed'} answers.")


def _models(models: tuple[str, ...]) -> str:
    return "all" if ANY_MODEL in models else ", ".join(models)


def _print_report(report: "AuditReport") -> None:
    say(f"Compared {counted(report.accounts, 'account')} and {counted(report.requests, 'request')}:")
    say(f"{', '.join(rule.name for rule in report.rules)}.")
    if not report.found:
        say("The books balance.")
        return
    say(f"There {'is 1 difference' if report.found == 1 else f'are {report.found:,} differences'}:\n")
    print_table(
        _DIFFERENCE_COLUMNS,
        (
            (difference.account_id, difference.figure, difference.subject, difference.booked, difference.computed)
            for difference in report.differences
        ),
    )
    for rule in report.rules:
        if rule.found > rule.listed:
            say(f"\nand {rule.found - rule.listed:,} more in the {rule.name}")
