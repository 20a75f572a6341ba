"""The tree of commands."""

from functools import cache
from importlib import import_module

from cyclopts import App
from msgspec import Struct

from tarazu.cli.help_layout import HelpLayout
from tarazu.cli.options import OPTIONS
from tarazu.cli.release import release


class Command(Struct, frozen=True):
    """One of the program's first words: where its command is, and what the program's help says of it."""

    place: str
    help: str
    usage: str | None = None


COMMANDS = {
    "serve": Command("tarazu.cli.serve:serve", "Serve the API until Ctrl-C or SIGTERM."),
    "reload": Command("tarazu.cli.serving:reload", "Have the running service read its configuration again."),
    "drain": Command("tarazu.cli.serving:drain", "Stop the running service without cutting off any caller."),
    "check": Command("tarazu.cli.operating:check", "Check the configuration."),
    "db": Command("tarazu.cli.database:database_app", "Look after the database."),
    "audit": Command("tarazu.cli.operating:audit", "Compare the books with their rows."),
    "openapi": Command("tarazu.cli.operating:openapi", "Print the API's contract, OpenAPI 3.1 in JSON."),
    "backend": Command("tarazu.cli.backend:backend_app", "Test the servers behind the models, and show how they are."),
    "account": Command(
        "tarazu.cli.account:account_app", "Open, list, show and change accounts; let their holders in, and out."
    ),
    "key": Command("tarazu.cli.key:key_app", "Issue, list, change, pause, revoke and replace API keys."),
    "credit": Command(
        "tarazu.cli.credit:credit_app", "Add credits to balances, correct them, and show what has changed them."
    ),
    "request": Command("tarazu.cli.request:request", "Show what has become of one request."),
    "intake": Command("tarazu.cli.intake:intake_app", "Stop and resume taking requests, everywhere at once."),
    "admin": Command(
        "tarazu.cli.admin:admin_app", "Operators, tokens of the admin API, and the trail of what was done."
    ),
    "chat": Command(
        "tarazu.cli.chat:chat", "Talk with a model through the API.", usage="tarazu chat [OPTIONS] [PROMPT]"
    ),
}


def app_for(first: str | None = None) -> App:
    """Make the program with the command of this first word alone, or with all commands where it is none of theirs.

    To load one command and not the others is half of a start. Of all others, help tells what stands here.
    """
    app = App(
        name="tarazu",
        help="A metered chat-completion service: language models behind one HTTP API, paid in whole credits.",
        version=release,
        help_flags=["--help", "-h"],
        help_format="plaintext",
        help_formatter=HelpLayout(),
        group_parameters=OPTIONS,
        # The exit status, the wording of errors and Ctrl-C are the business of tarazu.cli.running.
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
    )
    if first in COMMANDS:
        _load(app, first)
    else:
        for name, command in COMMANDS.items():
            app.command(command.place, name=name, help=command.help)
    return app


@cache
def whole_app() -> App:
    """Make the program with all commands loaded, for who writes about them."""
    app = app_for("serve")
    for name in COMMANDS:
        if name != "serve":
            _load(app, name)
    return app


def _load(app: App, name: str) -> None:
    command = COMMANDS[name]
    module, _, attribute = command.place.partition(":")
    app.command(getattr(import_module(module), attribute), name=name)
    if command.usage is not None:
        app[name].usage = command.usage
