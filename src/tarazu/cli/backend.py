"""`tarazu backend`: test the servers behind the models, and show how they are."""

# ruff: noqa: PLC0415 - configuration, database and backends are loaded only by the commands that use them

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tarazu.cli.clock import system_clock
from tarazu.cli.desk import open_books, read_configuration
from tarazu.cli.documents import BackendDocument, TriedBackendDocument
from tarazu.cli.errors import EXIT_FAILED, CommandError, UsageError
from tarazu.cli.options import AsJson, ConfigPath, checked_setting, command_group
from tarazu.cli.output import Column, counted, print_json, print_table, printable, progress, say, unicode_text

if TYPE_CHECKING:
    from tarazu.domain.catalogue import Catalogue, Model
    from tarazu.service.trying import TriedBackend

BEGINNING_CHARACTERS = 40
"""Of a reply, so that a person can see whether it makes sense."""

backend_app = command_group("backend", "Test the servers behind the models, and show how they are.")

ModelId = Annotated[str | None, Parameter(name="MODEL", help="The model's id; without it, all models.")]

_LIST_COLUMNS = (
    Column("backend", whole=True),
    Column("kind", whole=True),
    Column("server", whole=True),
    Column("model"),
    Column("priority", number=True),
    Column("weight", number=True),
    Column("at once", number=True),
    Column("timeout s", number=True),
    Column("health", whole=True),
)
_TEST_COLUMNS = (
    Column("backend", whole=True),
    Column("kind", whole=True),
    Column("model"),
    Column("outcome", whole=True),
    Column("load s", number=True),
    Column("seconds", number=True),
    Column("tokens in", number=True),
    Column("tokens out", number=True),
    Column("reply"),
)


@backend_app.command(name="list")
def list_(model: ModelId = None, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """List the backends in the order in which they are asked.

    With their health as the running services see it: ready; busy or tripped, and
    so left alone for a while; or disabled in the configuration. It asks no
    backend.

    For example:

        tarazu backend list
        tarazu backend list openai/gpt-4o-mini --json
    """
    from tarazu.service.backend_reports import backend_reports
    from tarazu.store.engine import transaction

    configuration = read_configuration(config)
    models = _models(configuration.catalogue, model)
    with open_books(configuration) as engine, transaction(engine, read_only=True) as connection:
        reports = backend_reports(connection, models, system_clock())
    documents = [BackendDocument.of(report) for report in reports]
    if as_json:
        print_json(documents)
    else:
        _print_list(documents)


@backend_app.command(name="test")
def ask(
    model: ModelId = None,
    /,
    *,
    timeout: Annotated[
        float | None, Parameter(metavar="S", help="Wait so many seconds for each; without it, as its requests do.")
    ] = None,
    prompt: Annotated[str | None, Parameter(metavar="TEXT", help="Ask this; without it, for a short hello.")] = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> int:
    """Ask every backend of a model once, for real.

    It tells what each has answered, how long that took, and what to do about
    those that gave no reply; then the exit status is 1. A local model is loaded
    for the test. Nobody is charged here, but whoever runs a server may charge
    you. The backends' secrets must be in the environment. It can run beside the
    service.

    For example:

        tarazu backend test
        tarazu backend test openai/gpt-4o-mini --timeout 10
    """
    import asyncio

    from tarazu.service.trying import PROMPT, try_backends

    catalogue = read_configuration(config).catalogue
    models = _models(catalogue, model)
    asked = try_backends(
        models, system_clock, prompt=PROMPT if prompt is None else _checked_prompt(prompt), timeout_s=_seconds(timeout)
    )
    with progress() as tell:
        tell(f"Asking {counted(sum(len(each.backends) for each in models), 'backend')}", None)
        tried = asyncio.run(asked)
    if as_json:
        _print_documents(tried)
    else:
        _print_tried(tried)
    return EXIT_FAILED if any(each.failed for each in tried) else 0


for _name in ("list", "test"):
    backend_app[_name].usage = f"tarazu backend {_name} [OPTIONS] [MODEL]"


def _print_list(documents: "list[BackendDocument]") -> None:
    print_table(
        _LIST_COLUMNS,
        (
            (
                each.backend,
                each.kind,
                each.host,
                each.server_model,
                each.priority,
                each.weight,
                each.max_concurrency,
                f"{each.timeout_s:g}",
                each.health,
            )
            for each in documents
        ),
    )
    resting = [each for each in documents if each.rests]
    if resting:
        say()
    for each in resting:
        since, until = min(rest.since for rest in each.rests), max(rest.until for rest in each.rests)
        faults = ", ".join(sorted({rest.fault for rest in each.rests}))
        processes = counted(len(each.rests), "process", "processes")
        say(f"{each.backend} rests since {since}, until {until}, in {processes}: {faults}.")


def _models(catalogue: "Catalogue", model_id: str | None) -> "list[Model]":
    if model_id is None:
        return list(catalogue.models.values())
    found = catalogue.models.get(model_id)
    if found is None:
        raise CommandError(f"There is no model {model_id}.", f"There are: {', '.join(catalogue.models)}")
    return [found]


def _seconds(timeout: float | None) -> float | None:
    from tarazu.service.configuration.schema import Seconds

    return None if timeout is None else checked_setting("--timeout", timeout, Seconds)


def _checked_prompt(prompt: str) -> str:
    from tarazu.domain.prompt import INPUT_CHARACTERS_MAX

    text = unicode_text(prompt, "The prompt").strip()
    if not 0 < len(text) <= INPUT_CHARACTERS_MAX:
        raise UsageError(f"--prompt: expected 1 to {INPUT_CHARACTERS_MAX:,} characters.")
    return text


def _print_tried(tried: "list[TriedBackend]") -> None:
    from tarazu.cli.backend_advice import next_step
    from tarazu.service.servers import model_of

    print_table(
        _TEST_COLUMNS,
        (
            (
                each.name,
                each.spec.kind,
                model_of(each.spec),
                _outcome(each),
                _rounded(each.load_s),
                _rounded(each.seconds),
                each.reply and each.reply.prompt_tokens,
                each.reply and each.reply.completion_tokens,
                _beginning(each),
            )
            for each in tried
        ),
    )
    failed = [each for each in tried if each.failed]
    if failed:
        say()
    for each in failed:
        say(f"{each.name}: {next_step(each)}")


def _print_documents(tried: "list[TriedBackend]") -> None:
    from tarazu.cli.backend_advice import next_step

    print_json(
        [
            TriedBackendDocument(
                model=each.model.id,
                backend=each.name,
                kind=each.spec.kind,
                server_model=each.spec.model,
                outcome=each.outcome,
                detail=each.detail or None,
                load_s=each.load_s,
                seconds=each.seconds,
                prompt_tokens=each.reply.prompt_tokens if each.reply else None,
                completion_tokens=each.reply.completion_tokens if each.reply else None,
                reply=_beginning(each),
                advice=next_step(each) if each.failed else None,
            )
            for each in tried
        ]
    )


def _outcome(tried: "TriedBackend") -> str:
    """Write the outcome with its detail, where that is not a whole sentence and so stands in the advice."""
    from tarazu.service.trying import NOT_LOADED, SECRET_MISSING

    detail = "" if tried.outcome in {NOT_LOADED, SECRET_MISSING} else tried.detail
    return f"{tried.outcome} {detail}".strip()


def _beginning(tried: "TriedBackend") -> str | None:
    if tried.reply is None:
        return None
    line = " ".join(printable(tried.reply.text).split())
    return line if len(line) <= BEGINNING_CHARACTERS else f"{line[:BEGINNING_CHARACTERS]}…"


def _rounded(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.2f}"
