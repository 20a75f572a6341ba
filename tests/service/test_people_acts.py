"""Inviting people, signing them out, making operators: what is refused, and what the trail has of it."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.people import OperatorStatus, PersonKind
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ConflictError, NotThereError, ProvisioningError
from tests.support.books import Books
from tests.support.people import EMAILS, Desk, open_desk

pytestmark = pytest.mark.both_stores

HOLDER, OPERATOR = PersonKind.HOLDER, PersonKind.OPERATOR


@pytest.fixture
def desk(books: Books) -> Iterator[Desk]:
    """Make a desk over them."""
    with open_desk(books) as desk:
        yield desk


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda of: of.invite_holder("acc_x"), NotThereError),
        (lambda of: of.sign_out_holder("acc_x"), NotThereError),
        (lambda of: of.invite_operator("opr_x"), NotThereError),
        (lambda of: of.set_operator("opr_x", status=OperatorStatus.ACTIVE), NotThereError),
        (lambda of: of.create_operator(email=" Grace@Example.com", name="G"), ConflictError),
        (lambda of: of.create_operator(email="nobody", name="G"), ProvisioningError),
        (lambda of: of.create_operator(email="n\0@example.com", name="G"), ProvisioningError),
        (lambda of: of.create_operator(email="g@example.com", name=" "), ProvisioningError),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    desk: Desk, act: Callable[[Provisioning], object], error: type[ProvisioningError]
) -> None:
    """It says why, and is not in the trail."""
    before = desk.books.dump()
    with pytest.raises(error):
        act(desk.provisioning)
    assert desk.books.dump() == before


def test_nobody_is_invited_who_could_not_sign_in(desk: Desk) -> None:
    """An account without an email, a blocked one, an inactive operator: each is told what stands against it."""
    provisioning = desk.provisioning
    nameless = provisioning.create_account(name="No email").id
    provisioning.set_account(desk.ids[HOLDER], status=AccountStatus.BLOCKED)
    provisioning.set_operator(desk.ids[OPERATOR], status=OperatorStatus.INACTIVE)
    with pytest.raises(ConflictError, match="no email address"):
        provisioning.invite_holder(nameless)
    with pytest.raises(ConflictError, match="is blocked"):
        provisioning.invite_holder(desk.ids[HOLDER])
    with pytest.raises(ConflictError, match="is inactive") as found:
        provisioning.invite_operator(desk.ids[OPERATOR])
    assert "--status active" in (found.value.hint or "")


def test_a_link_leads_to_the_pages_of_its_kind(desk: Desk) -> None:
    """Under the address that callers use; what is shown of an invitation elsewhere has no token."""
    links = [desk.invitations[kind].link("https://ai.example.com") for kind in (HOLDER, OPERATOR)]
    tokens = [desk.invitations[kind].token for kind in (HOLDER, OPERATOR)]
    assert links == [
        f"https://ai.example.com/panel/invitation/{tokens[0]}",
        f"https://ai.example.com/admin/invitation/{tokens[1]}",
    ]
    assert not any(token in repr(desk.invitations) for token in tokens)


def test_signing_a_holder_out_ends_all_sessions_and_no_other(desk: Desk) -> None:
    """How many there were is told; the password stays."""

    async def run() -> None:
        secrets = [await desk.joined(HOLDER), await desk.sign_in(HOLDER)]
        bystander = await desk.joined(OPERATOR)
        assert desk.provisioning.sign_out_holder(desk.ids[HOLDER]) == 2
        assert [await desk.signing_in.signed_in(HOLDER, secret) for secret in secrets] == [None, None]
        await desk.person(OPERATOR, bystander)
        await desk.sign_in(HOLDER)

    asyncio.run(run())


def test_operators_are_listed_with_what_they_have_done_of_their_invitation(desk: Desk) -> None:
    """Oldest first, and whether there is a password yet."""
    desk.books.clock.now_ms += 1
    desk.provisioning.create_operator(email="hedy@example.com", name="Hedy")
    asyncio.run(desk.joined(OPERATOR))
    found = [(each.name, each.email, each.status, each.has_password) for each in desk.provisioning.operators()]
    assert found == [
        ("Grace", EMAILS[OPERATOR], OperatorStatus.ACTIVE, True),
        ("Hedy", "hedy@example.com", OperatorStatus.ACTIVE, False),
    ]


def test_each_act_is_in_the_trail_and_no_secret_of_it(desk: Desk) -> None:
    """With whom it was about; an act that changes nothing is none."""
    provisioning, clock = desk.provisioning, desk.books.clock
    account_id, operator_id = desk.ids[HOLDER], desk.ids[OPERATOR]
    invitations = [desk.invitations[HOLDER], desk.invitations[OPERATOR]]
    clock.now_ms += 1
    provisioning.sign_out_holder(account_id)
    clock.now_ms += 1
    invitations.append(provisioning.invite_operator(operator_id))
    for _ in range(2):
        clock.now_ms += 1
        provisioning.set_operator(operator_id, status=OperatorStatus.INACTIVE)
    trail = provisioning.trail().acts
    assert [(act.act, act.account_id, act.subject, act.detail) for act in trail[:3]] == [
        ("operator.set", None, operator_id, {"status": ["active", "inactive"]}),
        ("operator.invite", None, operator_id, {"email": EMAILS[OPERATOR]}),
        ("account.sign_out", account_id, None, {"sessions": 0}),
    ]
    begun = {act.act: (act.account_id, act.subject, act.detail) for act in trail[3:]}
    assert begun["account.invite"] == (account_id, None, {"email": EMAILS[HOLDER]})
    assert begun["operator.create"] == (None, operator_id, {"name": "Grace", "email": EMAILS[OPERATOR]})
    assert not any(invitation.token in repr(trail) for invitation in invitations)
