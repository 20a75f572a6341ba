"""`tarazu check`, `db upgrade`, `audit` and `openapi`: what an operator runs before and beside the service."""

# ruff: noqa: PLC0415 - configuration, database and API are loaded only by the commands that use them

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tarazu.cli.clock import system_clock
from tarazu.cli.desk import books_errors, open_books, read_configuration
from tarazu.cli.documents import CheckDocument, MigrationDocument, ModelDocument, PlanDocument, ProblemDocument
from tarazu.cli.errors import EXIT_FAILED
from tarazu.cli.options import AsJson, ConfigPath, command_group
from tarazu.cli.output import INDENT, Column, counted, print_json, print_table, say
from tarazu.domain.catalogue import ANY_MODEL

if TYPE_CHECKING:
    from tarazu.service.configuration import Configuration
    from tarazu.store.audit import AuditReport

database_app = command_group("db", "Look after the database.")

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

    It lists what is sold, or everything that is wrong. The exit status is 1 when there is a problem.

    For example:

        tarazu check
        tarazu check --config /etc/tarazu/tarazu.toml
    """
    if as_json:
        document = _checked(config)
        print_json(document)
        return 0 if document.ok else EXIT_FAILED
    _print_catalogue(read_configuration(config, needs_secrets=True))
    return 0


@database_app.command
def upgrade(*, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Run the migrations that are missing.

    The books are made when there are none. With SQLite `tarazu serve` does it too.

    For example:

        tarazu db upgrade
    """
    from tarazu.store.engine import open_engine
    from tarazu.store.migrate import upgrade as migrate

    configuration = read_configuration(config)
    with books_errors():
        engine = open_engine(configuration.database_url)
        try:
            before, after = migrate(engine)
        finally:
            engine.dispose()
    if as_json:
        print_json(MigrationDocument(before=before, after=after))
    elif before == after:
        say(f"The database is at revision {after} already.")
    else:
        say(f"The database was {'empty' if before is None else f'at revision {before}'}, now it is at {after}.")


def audit(*, as_json: AsJson = False, config: ConfigPath = None) -> int:
    """Compare the books with their rows.

    It recomputes every account's used quota and balance and every day's usage, and
    looks for holds that should have ended. The exit status is 1 on any difference.

    For example:

        tarazu audit
        tarazu audit --json
    """
    from tarazu.service.auditing import audit_books

    with open_books(read_configuration(config)) as engine:
        report = audit_books(engine, system_clock)
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    return EXIT_FAILED if report.differences else 0


def openapi(*, as_json: AsJson = False) -> None:
    """Print the API's contract, OpenAPI 3.1 in JSON.

    The running service has the same at /api/v1/openapi.json.

    For example:

        tarazu openapi > openapi.json
    """
    from tarazu.api.openapi import document

    if as_json:
        print_json(document())
    else:
        say(msgspec.json.format(msgspec.json.encode(document()), indent=INDENT).decode())


def _checked(config: Path | None) -> CheckDocument:
    from tarazu.service.configuration import ConfigurationError, load

    try:
        configuration = load(config)
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
    say("used quota, balances, daily usage, and the deadlines of holds.")
    if not report.differences:
        say("The books balance.")
        return
    count = len(report.differences)
    say(f"There {'is 1 difference' if count == 1 else f'are {count:,} differences'}:\n")
    print_table(
        _DIFFERENCE_COLUMNS,
        (
            (difference.account_id, difference.figure, difference.subject, difference.booked, difference.computed)
            for difference in report.differences
        ),
    )
