"""Let the holder of an account in to the panel, and out."""

from http import HTTPStatus
from typing import Annotated

from msgspec import Meta, Struct

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.members import time
from tarazu.api.admin.route import Route
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.calendar import iso_time


class InvitationObject(Struct, frozen=True, kw_only=True):
    """A link by which an account's holder chooses a password, once."""

    account_id: Annotated[str, Meta(description="Whose holder is invited.")]
    url: Annotated[
        str, Meta(description="The link, shown this once. Whoever has it can sign in: send it to the holder alone.")
    ]
    expires_at: Annotated[str, time("Until when it works.")]

    def __repr__(self) -> str:
        """Name the account without the link."""
        return f"InvitationObject({self.account_id})"


class SignOutObject(Struct, frozen=True, kw_only=True):
    """A holder who was signed out."""

    account_id: Annotated[str, Meta(description="Whose holder it is.")]
    sessions: Annotated[int, Meta(ge=0, description="How many sessions were ended.")]


async def invite_holder(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """Make a link."""
    invitation = await desk.act(call.caller, lambda acts: acts.invite_holder(call.account_id))
    link = InvitationObject(
        account_id=call.account_id,
        url=invitation.link(desk.base_url),
        expires_at=iso_time(invitation.expires_at_ms),
    )
    return Reply(link, is_new=True)


async def sign_out_holder(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """End all sessions."""
    ended = await desk.act(call.caller, lambda acts: acts.sign_out_holder(call.account_id))
    return Reply(SignOutObject(account_id=call.account_id, sessions=ended))


ROUTES = (
    Route(
        operation_id="inviteHolder",
        tag="Accounts",
        method="POST",
        path="/accounts/{account_id}/invitation",
        scope=Scope.ACCOUNTS,
        summary="Invite an account's holder",
        description=(
            "Makes a link by which the holder chooses a password for the panel. It works once; an older one is void "
            "from now on. An account that has no email, or is blocked, is answered 409."
        ),
        answer=InvitationObject(
            account_id="acc_9Kx2QwErTyUiOp",
            url="https://ai.example.com/panel/invitation/…",
            expires_at="2026-01-20T10:04:00Z",
        ),
        statuses=(HTTPStatus.CREATED,),
        errors=(AdminError.NOT_THERE, AdminError.CONFLICT),
        handle=invite_holder,
    ),
    Route(
        operation_id="signOutHolder",
        tag="Accounts",
        method="POST",
        path="/accounts/{account_id}/sign-out",
        scope=Scope.ACCOUNTS,
        summary="Sign an account's holder out",
        description="Ends all sessions of the holder at the panel. The keys of the account work on.",
        answer=SignOutObject(account_id="acc_9Kx2QwErTyUiOp", sessions=2),
        errors=(AdminError.NOT_THERE,),
        handle=sign_out_holder,
    ),
)
