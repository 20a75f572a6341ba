"""`tarazu account`: open, list, show and change accounts; let their holders in, and out."""

# ruff: noqa: PLC0415 - the database is loaded only by the commands that use it

from typing import Annotated

from cyclopts import Parameter

from tarazu.cli.acts import DO_NOT_REPEAT, done
from tarazu.cli.desk import base_url_of, open_provisioning, read_configuration
from tarazu.cli.documents import AccountDocument
from tarazu.cli.errors import UsageError
from tarazu.cli.options import AsJson, ConfigPath, NoSecondFactor, command_group
from tarazu.cli.output import Column, counted, print_fields, print_json, print_table, say, shown_once
from tarazu.cli.people_documents import InvitationDocument, SignOutDocument
from tarazu.cli.program import command_line
from tarazu.domain.accounts import AccountStatus
from tarazu.domain.catalogue import NO_PLAN
from tarazu.domain.people import PersonKind

account_app = command_group("account", "Open, list, show and change accounts; let their holders in, and out.")

AccountId = Annotated[
    str, Parameter(name="ID", help="The account's id, as in acc_9Kx2…; tarazu account list tells it.")
]
NewStatus = Parameter(name="--status", metavar="STATUS", help="Only an active account is served.")

_COLUMNS = (
    Column("id", whole=True),
    Column("name"),
    Column("email"),
    Column("plan"),
    Column("status"),
    Column("used", number=True),
    Column("limit", number=True),
    Column("balance", number=True),
)


@account_app.command
def create(
    *,
    name: Annotated[str, Parameter(metavar="NAME", help="Whose account it is, for people.")],
    email: Annotated[str | None, Parameter(metavar="EMAIL", help="An address; no two accounts share one.")] = None,
    plan: Annotated[
        str | None, Parameter(metavar="PLAN", help="A plan of the configuration; without one, only the balance pays.")
    ] = None,
    status: Annotated[AccountStatus, NewStatus] = AccountStatus.ACTIVE,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Open an account.

    For example:

        tarazu account create --name "Ada Lovelace" --email ada@example.com --plan pro
        tarazu account create --name "Pay as you go" --json
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        account = provisioning.create_account(name=name, email=email, plan=plan, status=status)
        done(f"The account {account.id} is open; {DO_NOT_REPEAT}.")
    document = AccountDocument.of(account, configuration.catalogue)
    _print_account(document, as_json=as_json)
    if not as_json:
        say(f"\nIssue a key for it with: {command_line(f'key create {document.id} --name NAME', config)}")


@account_app.command(name="list")
def list_(*, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """List all accounts, oldest first.

    For example:

        tarazu account list
        tarazu account list --json
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        accounts = provisioning.accounts()
    documents = [AccountDocument.of(account, configuration.catalogue) for account in accounts]
    if as_json:
        print_json(documents)
    elif not documents:
        say(f"There are no accounts. Open one with: {command_line('account create --name NAME', config)}")
    else:
        print_table(
            _COLUMNS,
            (
                (of.id, of.name, of.email, of.plan or NO_PLAN, of.status, of.used, of.limit, of.balance)
                for of in documents
            ),
        )


@account_app.command
def show(account_id: AccountId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Show one account: plan, status, quota and balance.

    For example:

        tarazu account show acc_9Kx2QwErTyUiOp
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        account = provisioning.account(account_id)
    _print_account(AccountDocument.of(account, configuration.catalogue), as_json=as_json)


@account_app.command(name="set")
def set_(
    account_id: AccountId,
    /,
    *,
    email: Annotated[
        str | None, Parameter(metavar="EMAIL", help="Its holder signs in with this address; no two accounts share one.")
    ] = None,
    plan: Annotated[str | None, Parameter(metavar="PLAN", help="Move it to this plan.")] = None,
    no_plan: Annotated[
        bool, Parameter(name="--no-plan", negative=(), show_default=False, help="Take it off its plan.")
    ] = False,
    status: Annotated[AccountStatus | None, NewStatus] = None,
    no_second_factor: NoSecondFactor = False,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Change an account's email, plan or status, from the next request on.

    With another email, or blocked, its holder's sessions and invitation end.
    With another email the password and the second factor go too: invite the
    holder again.

    For example:

        tarazu account set acc_9Kx2QwErTyUiOp --plan pro
        tarazu account set acc_9Kx2QwErTyUiOp --status blocked
        tarazu account set acc_9Kx2QwErTyUiOp --email ada@example.com
        tarazu account set acc_9Kx2QwErTyUiOp --no-second-factor
    """
    if plan is not None and no_plan:
        raise UsageError("--plan and --no-plan exclude each other.", "Give one of them.")
    if email is plan is status is None and not no_plan and not no_second_factor:
        raise UsageError(
            "There is nothing to change.",
            "Give --email EMAIL, --plan PLAN, --no-plan, --status STATUS or --no-second-factor.",
        )
    from tarazu.service.checks import UNCHANGED

    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        if no_second_factor:
            provisioning.remove_second_factor(PersonKind.HOLDER, account_id)
            done(f"The holder of {account_id} has no second factor.")
        account = provisioning.set_account(
            account_id,
            email=UNCHANGED if email is None else email,
            plan=plan if plan is not None or no_plan else UNCHANGED,
            status=UNCHANGED if status is None else status,
        )
        done(f"The account {account_id} is {account.status}, on the plan {account.plan or NO_PLAN}.")
    _print_account(AccountDocument.of(account, configuration.catalogue), as_json=as_json)


@account_app.command
def rename(
    account_id: AccountId,
    name: Annotated[str, Parameter(metavar="NAME", help="Whose account it is, for people.")],
    /,
    *,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Give an account another name.

    For example:

        tarazu account rename acc_9Kx2QwErTyUiOp "Ada Lovelace"
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        account = provisioning.set_account(account_id, name=name)
        done(f"The account {account_id} is called {account.name}.")
    _print_account(AccountDocument.of(account, configuration.catalogue), as_json=as_json)


@account_app.command
def invite(account_id: AccountId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Make a link by which the account's holder chooses a password for the panel.

    It works once and for three days, and takes the place of an older one. The
    holder signs in with the account's email. For somebody who has a password
    already it sets another, and ends all sessions.

    For example:

        tarazu account invite acc_9Kx2QwErTyUiOp
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        invitation = provisioning.invite_holder(account_id)
    document = InvitationDocument.of(account_id, invitation, base_url_of(configuration))
    with shown_once(
        f"A link for {account_id} is made",
        "Nothing can show it again. Make another, which takes its place: "
        f"{command_line(f'account invite {account_id}', config)}",
    ):
        _print_invitation(document, as_json=as_json)


@account_app.command(name="sign-out")
def sign_out(account_id: AccountId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """End all sessions of the account's holder in the panel.

    The password stays, and so do the keys.

    For example:

        tarazu account sign-out acc_9Kx2QwErTyUiOp
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        document = SignOutDocument(id=account_id, sessions=provisioning.sign_out_holder(account_id))
        done(f"The sessions of the holder of {account_id} have ended.")
    if as_json:
        print_json(document)
    else:
        say(f"Ended {counted(document.sessions, 'session')} of the holder of {document.id}.")


def _print_invitation(document: InvitationDocument, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    print_fields((("Link", document.link), ("Account", document.id), ("Expires", document.link_expires_at)))
    say("\nSend it to the account's holder alone: whoever follows it first chooses the password.")


def _print_account(document: AccountDocument, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    print_fields(
        (
            ("Id", document.id),
            ("Name", document.name),
            ("Email", document.email),
            ("Plan", document.plan or NO_PLAN),
            ("Status", document.status),
            ("Period", document.period),
            ("Used", f"{document.used:,} of {document.limit:,} credits, {document.remaining:,} left"),
            ("Balance", f"{document.balance:,} credits"),
            ("Created", document.created_at),
        )
    )
