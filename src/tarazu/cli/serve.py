"""`tarazu serve`: run the service, and tell a person how to use it once it answers."""

# ruff: noqa: PLC0415 - the server is loaded only by the command that runs it

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from tarazu.cli.clock import system_clock
from tarazu.cli.desk import books_errors, open_provisioning, read_configuration
from tarazu.cli.errors import CommandError, UsageError
from tarazu.cli.options import ConfigPath, checked_setting, number_option
from tarazu.cli.output import say, say_aside, shown_once
from tarazu.cli.program import as_typed, command_line
from tarazu.cli.streams import give_output_up

if TYPE_CHECKING:
    from tarazu.service.configuration import Configuration, ServerSettings
    from tarazu.service.provisioning import Provisioning

DEMO_NAME = "Demo"
"""The name of the account that the demo catalogue begins with."""
DEMO_PLAN = "free"
DEMO_EMAIL = "demo@localhost"
"""To sign in with; no mail is sent to it."""
DEMO_KEY_NAME = "demo"
DEMO_REASON = (
    "This is the demo: there is no tarazu.toml here, and neither --config nor TARAZU_CONFIG names another file."
)


def serve(
    *,
    host: Annotated[
        str | None, Parameter(metavar="H", help="Listen at this address; 0.0.0.0 is all, other machines included.")
    ] = None,
    port: Annotated[int | None, number_option("--port", "Listen at this port; 0 is any free one.", metavar="P")] = None,
    workers: Annotated[
        int | None, number_option("--workers", "Processes that share the work; one keeps one core busy.")
    ] = None,
    config: ConfigPath = None,
) -> int:
    """Serve the API until Ctrl-C or SIGTERM.

    Options win over the configuration. `tarazu reload` puts a changed
    configuration in force without a stop, and so does SIGHUP. Without a
    configuration it is a demo: a small language model that is built in, and, at
    the first start, an account whose API key is shown once: on a terminal, or
    where it listens to this machine alone.

    For example:

        tarazu serve
        tarazu serve --config /etc/tarazu/tarazu.toml --host 0.0.0.0 --workers 4
    """
    from tarazu.service.books import make_books
    from tarazu.service.logs import logs_written
    from tarazu.service.serving import ServingError
    from tarazu.service.serving import serve as serve_until_stopped

    configuration = read_configuration(config, needs_secrets=True)
    server = _overridden(configuration.server, host=host, port=port, workers=workers)
    # Books that cannot be used are told of before anything starts.
    with books_errors(configuration), logs_written(configuration.logs):
        make_books(configuration.database_url)

    def greet(serving: "ServerSettings") -> None:
        try:
            _greet(configuration, serving, config)
        except CommandError as error:  # the service runs in spite of it
            say_aside(f"tarazu: {as_typed(str(error))}")
        except OSError:  # nobody reads it
            give_output_up()

    try:
        return serve_until_stopped(configuration, server, system_clock, on_ready=greet)
    except ServingError as error:
        raise CommandError(str(error)) from None


def _overridden(
    server: "ServerSettings", *, host: str | None, port: int | None, workers: int | None
) -> "ServerSettings":
    from tarazu.service.configuration.listening_host import listening_fault
    from tarazu.service.configuration.schema import Host, Port, Workers

    if host is not None and (fault := listening_fault(host)):
        raise UsageError(f"--host: {fault}.")
    return replace(
        server,
        host=server.host if host is None else checked_setting("--host", host, Host),
        port=server.port if port is None else checked_setting("--port", port, Port),
        workers=server.workers if workers is None else checked_setting("--workers", workers, Workers),
    )


def _greet(configuration: "Configuration", server: "ServerSettings", config: Path | None) -> None:
    """Say how to use the service; on the demo's first start, make its account and its key."""
    from tarazu.cli.greeting import greeting

    base_url = server.base_url.rstrip("/")
    if configuration.path is None:
        _greet_demo(configuration, server.host, base_url)
        return
    with open_provisioning(configuration) as provisioning:
        has_accounts, create_operator = provisioning.has_accounts(), _create_operator(provisioning, config)
    if has_accounts:
        advice = f"Issue another API key:\n{command_line('key create ACCOUNT --name NAME', config)}"
    else:
        advice = (
            "There is no account yet. Open one, and issue an API key for it:\n"
            f"{command_line('account create --name NAME --plan PLAN', config)}\n"
            f"{command_line('key create ACCOUNT --name NAME', config)}"
        )
    listening = "" if server.public_url is None else f"It listens at {server.own_url}\n\n"
    say(greeting(base_url, f"{listening}{advice}", create_operator))


def _greet_demo(configuration: "Configuration", host: str, base_url: str) -> None:
    from tarazu.cli.greeting import demo_greeting, greeting
    from tarazu.service.forwarding import is_loopback

    with open_provisioning(configuration) as provisioning:
        is_first = not provisioning.has_accounts()
        if is_first:
            provisioning.create_account(name=DEMO_NAME, email=DEMO_EMAIL, plan=DEMO_PLAN)
        account = next((each for each in provisioning.accounts() if each.name == DEMO_NAME), None)
        # What is printed elsewhere than to a terminal may end in a log. A key that opens the service to other machines
        # must not stand there, nor must a link that opens the panel to them.
        is_shown = is_first and (_is_watched() or is_loopback(host))
        key = provisioning.create_key(account.id, name=DEMO_KEY_NAME) if is_shown and account else None
        is_alone = key is not None and is_loopback(host)
        panel_link = provisioning.invite_holder(account.id).link(base_url) if is_alone and account else None
        create_operator = _create_operator(provisioning, None)
    create_key = command_line(f"key create {account.id if account else 'ACCOUNT'} --name NAME")
    if key is None:
        another = "an" if is_first else "another"
        say(greeting(base_url, f"{DEMO_REASON}\n\nIssue {another} API key:\n{create_key}", create_operator))
        return
    catalogue = configuration.catalogue
    model_id = catalogue.default_model or next(iter(catalogue.models))
    with shown_once(f"The key {key.key.id} is made", f"Issue another: {create_key}"):
        say(
            demo_greeting(
                base_url,
                DEMO_REASON,
                key=key.secret,
                model_id=model_id,
                panel_link=panel_link,
                create_operator=create_operator,
            )
        )


def _create_operator(provisioning: "Provisioning", config: Path | None) -> str | None:
    """Write the command that makes the first operator; None where there is one."""
    if provisioning.operators():
        return None
    return command_line("admin operator create --email EMAIL --name NAME", config)


def _is_watched() -> bool:
    return sys.stdout.isatty()
