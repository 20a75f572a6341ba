"""`tarazu serve`: run the service, and tell a person how to use it once it answers."""

# ruff: noqa: PLC0415 - the server is loaded only by the command that runs it

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from tarazu.cli.clock import system_clock
from tarazu.cli.desk import books_errors, open_provisioning, read_configuration
from tarazu.cli.errors import CommandError
from tarazu.cli.greeting import demo_greeting, greeting
from tarazu.cli.options import ConfigPath, checked_setting, number_option
from tarazu.cli.output import say, say_aside
from tarazu.cli.program import command_line

if TYPE_CHECKING:
    from tarazu.service.configuration import Configuration, ServerSettings
    from tarazu.service.provisioning import Provisioning

DEMO_NAME = "Demo"
"""The name of the account that the demo catalogue begins with."""
DEMO_PLAN = "free"
DEMO_KEY_NAME = "demo"


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

    Options win over the configuration. SIGHUP puts a changed configuration in
    force without a stop. Without a configuration it is a demo: a small language
    model that is built in, and, at the first start, an account whose API key is
    printed once.

    For example:

        tarazu serve
        tarazu serve --config /etc/tarazu/tarazu.toml --host 0.0.0.0 --workers 4
    """
    from tarazu.service.books import make_books
    from tarazu.service.logs import configure_logs
    from tarazu.service.serving import ServingError
    from tarazu.service.serving import serve as serve_until_stopped

    configuration = read_configuration(config, needs_secrets=True)
    server = _overridden(configuration.server, host=host, port=port, workers=workers)
    configure_logs()
    with books_errors(configuration):  # books that cannot be used are told of before anything starts
        make_books(configuration.database_url)

    def greet(base_url: str) -> None:
        try:
            say(_greeting(configuration, base_url.rstrip("/"), config))
        except CommandError as error:  # the service runs in spite of it
            say_aside(f"tarazu: {error}")
        except BrokenPipeError:
            pass  # nobody reads it

    try:
        return serve_until_stopped(configuration, server, system_clock, on_ready=greet)
    except ServingError as error:
        raise CommandError(str(error)) from None


def _overridden(
    server: "ServerSettings", *, host: str | None, port: int | None, workers: int | None
) -> "ServerSettings":
    from tarazu.service.configuration.schema import Host, Port, Workers

    return replace(
        server,
        host=server.host if host is None else checked_setting("--host", host, Host),
        port=server.port if port is None else checked_setting("--port", port, Port),
        workers=server.workers if workers is None else checked_setting("--workers", workers, Workers),
    )


def _greeting(configuration: "Configuration", base_url: str, config: Path | None) -> str:
    """Say how to use the service; on the demo's first start, make its account and key."""
    with open_provisioning(configuration) as provisioning:
        is_demo = configuration.path is None
        if not provisioning.has_accounts():
            if is_demo:
                return _first_greeting(configuration, provisioning, base_url)
            return greeting(
                base_url,
                "There is no account yet. Open one, and issue an API key for it:\n"
                f"{command_line('account create --name NAME --plan PLAN', config)}\n"
                f"{command_line('key create ACCOUNT --name NAME', config)}",
            )
        accounts = provisioning.accounts() if is_demo else []
        demo = next((account for account in accounts if account.name == DEMO_NAME), None)
    account_id = demo.id if demo else "ACCOUNT"
    return greeting(base_url, f"Issue another API key:\n{command_line(f'key create {account_id} --name NAME', config)}")


def _first_greeting(configuration: "Configuration", provisioning: "Provisioning", base_url: str) -> str:
    account = provisioning.create_account(name=DEMO_NAME, plan=DEMO_PLAN)
    issued = provisioning.create_key(account.id, name=DEMO_KEY_NAME)
    catalogue = configuration.catalogue
    model_id = catalogue.default_model or next(iter(catalogue.models))
    return demo_greeting(base_url, key=issued.secret, model_id=model_id)
