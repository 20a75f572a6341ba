"""The tree of commands."""

from importlib.metadata import version

from cyclopts import App

from tarazu.cli.account import account_app
from tarazu.cli.admin import admin_app
from tarazu.cli.backend import backend_app
from tarazu.cli.chat import chat
from tarazu.cli.credit import credit_app
from tarazu.cli.database import database_app
from tarazu.cli.help_layout import HelpLayout
from tarazu.cli.intake import intake_app
from tarazu.cli.key import key_app
from tarazu.cli.operating import audit, check, openapi
from tarazu.cli.options import OPTIONS
from tarazu.cli.serve import serve
from tarazu.cli.serving import drain, reload

app = App(
    name="tarazu",
    help="A metered chat-completion service: language models behind one HTTP API, paid in whole credits.",
    version=lambda: version("tarazu"),
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
for command in (
    serve,
    reload,
    drain,
    check,
    database_app,
    audit,
    openapi,
    backend_app,
    account_app,
    key_app,
    credit_app,
    intake_app,
    admin_app,
    chat,
):
    app.command(command)
app["chat"].usage = "tarazu chat [OPTIONS] [PROMPT]"
