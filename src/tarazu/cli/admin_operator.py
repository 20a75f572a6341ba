"""`tarazu admin operator`: who may open the operators' pages."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tarazu.cli.acts import done
from tarazu.cli.desk import base_url_of, open_provisioning, read_configuration
from tarazu.cli.errors import UsageError
from tarazu.cli.options import AsJson, ConfigPath, NoSecondFactor, command_group
from tarazu.cli.output import Column, print_fields, print_json, print_table, say, shown_once
from tarazu.cli.people_documents import InvitationDocument, NewOperatorDocument, OperatorDocument
from tarazu.cli.program import command_line
from tarazu.domain.people import OperatorStatus, PersonKind

operator_app = command_group("operator", "Make, list, invite and change operators, who may open the pages at /admin.")

OperatorId = Annotated[
    str, Parameter(name="ID", help="The operator's id, as in opr_7Gh3…; tarazu admin operator list tells it.")
]
SEND_ADVICE = "\nSend it to the operator alone: whoever follows it first chooses the password."

_COLUMNS = (
    Column("id", whole=True),
    Column("name"),
    Column("email"),
    Column("status"),
    Column("password"),
    Column("created", whole=True),
)


@operator_app.command
def create(
    *,
    email: Annotated[str, Parameter(metavar="EMAIL", help="To sign in with; no two operators share one.")],
    name: Annotated[str, Parameter(metavar="NAME", help="Who it is, for people.")],
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Make an operator, with a link by which they choose a password.

    The link works once and for three days.

    For example:

        tarazu admin operator create --email grace@example.com --name "Grace Hopper"
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        operator, invitation = provisioning.create_operator(email=email, name=name)
    document = NewOperatorDocument.invited(operator, invitation, base_url_of(configuration))
    fields = (
        ("Link", document.link),
        ("Expires", document.link_expires_at),
        ("Id", document.id),
        ("Name", document.name),
        ("Email", document.email),
    )
    _print_invitation(document, fields, config, as_json=as_json)


@operator_app.command(name="list")
def list_(*, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """List all operators, oldest first.

    For example:

        tarazu admin operator list
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        documents = [OperatorDocument.of(operator) for operator in provisioning.operators()]
    if as_json:
        print_json(documents)
    elif not documents:
        create_one = command_line("admin operator create --email EMAIL --name NAME", config)
        say(f"There are no operators. Make one with: {create_one}")
    else:
        print_table(
            _COLUMNS,
            ((of.id, of.name, of.email, of.status, of.has_password, of.created_at) for of in documents),
        )


@operator_app.command
def invite(operator: OperatorId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Make a link by which an operator chooses another password.

    It works once and for three days, and takes the place of an older one.
    Following it ends all sessions of the operator.

    For example:

        tarazu admin operator invite opr_7Gh3QwErTyUiOp
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        invitation = provisioning.invite_operator(operator)
    document = InvitationDocument.of(operator, invitation, base_url_of(configuration))
    fields = (("Link", document.link), ("Expires", document.link_expires_at), ("Id", document.id))
    _print_invitation(document, fields, config, as_json=as_json)


@operator_app.command(name="set")
def set_(
    operator: OperatorId,
    /,
    *,
    email: Annotated[
        str | None, Parameter(metavar="EMAIL", help="They sign in with this address; no two operators share one.")
    ] = None,
    status: Annotated[
        OperatorStatus | None, Parameter(metavar="STATUS", help="Only an active operator may sign in.")
    ] = None,
    no_second_factor: NoSecondFactor = False,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Change an operator's email, shut them out at once and in all browsers, or let them in again.

    With another email the sessions, the password and the second factor go:
    invite the operator again.

    Who has lost the telephone with the second factor signs in without it.

    For example:

        tarazu admin operator set opr_7Gh3QwErTyUiOp --status inactive
        tarazu admin operator set opr_7Gh3QwErTyUiOp --email grace@example.com
        tarazu admin operator set opr_7Gh3QwErTyUiOp --no-second-factor
    """
    if email is status is None and not no_second_factor:
        raise UsageError("There is nothing to change.", "Give --email EMAIL, --status STATUS or --no-second-factor.")
    with open_provisioning(read_configuration(config)) as provisioning:
        if no_second_factor:
            provisioning.remove_second_factor(PersonKind.OPERATOR, operator)
            done(f"{operator} has no second factor.")
        document = OperatorDocument.of(provisioning.set_operator(operator, email=email, status=status))
        done(f"{document.id} ({document.email}) is {document.status}.")
    if as_json:
        print_json(document)
    else:
        without = " and has no second factor" if no_second_factor else ""
        say(f"{document.id} ({document.email}) is {document.status}{without}.")


def _print_invitation(
    document: InvitationDocument | NewOperatorDocument,
    fields: Iterable[tuple[str, object]],
    config: Path | None,
    *,
    as_json: bool,
) -> None:
    with shown_once(
        f"A link for {document.id} is made",
        "Nothing can show it again. Make another, which takes its place: "
        f"{command_line(f'admin operator invite {document.id}', config)}",
    ):
        if as_json:
            print_json(document)
            return
        print_fields(fields)
        say(SEND_ADVICE)
