"""The JSON documents that commands about people, admin tokens and the trail print. Times are ISO 8601 in UTC."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tarazu.cli.documents import time_or_none
from tarazu.domain.admin_tokens import AdminToken
from tarazu.domain.calendar import iso_time
from tarazu.domain.people import Operator

if TYPE_CHECKING:
    from tarazu.service.admin_token_acts import IssuedToken
    from tarazu.service.people_acts import Invitation
    from tarazu.service.trails import Trail


class InvitationDocument(Struct, frozen=True, kw_only=True):
    """An invitation just made, of the account or operator `id`. `link` is to be seen this once."""

    id: str
    link: str
    link_expires_at: str

    @classmethod
    def of(cls, id_: str, invitation: "Invitation", base_url: str) -> "InvitationDocument":
        """Describe an invitation to a service at this address."""
        return cls(id=id_, link=invitation.link(base_url), link_expires_at=iso_time(invitation.expires_at_ms))

    def __repr__(self) -> str:
        """Leave the link out."""
        return f"InvitationDocument({self.id})"


class SignOutDocument(Struct, frozen=True, kw_only=True):
    """How many sessions of an account's holder have been ended."""

    id: str
    sessions: int


class OperatorDocument(Struct, frozen=True, kw_only=True):
    """One operator. Until `has_password`, the first invitation has not been followed."""

    id: str
    name: str
    email: str
    status: str
    has_password: bool
    created_at: str

    @classmethod
    def of(cls, operator: Operator) -> "OperatorDocument":
        """Describe an operator."""
        return cls(
            id=operator.id,
            name=operator.name,
            email=operator.email,
            status=operator.status.value,
            has_password=operator.has_password,
            created_at=iso_time(operator.created_at_ms),
        )


class NewOperatorDocument(OperatorDocument, frozen=True, kw_only=True):
    """An operator just made, with the link of the invitation, to be seen this once."""

    link: str
    link_expires_at: str

    @classmethod
    def invited(cls, operator: Operator, invitation: "Invitation", base_url: str) -> "NewOperatorDocument":
        """Describe an operator who is invited to a service at this address."""
        return cls(
            id=operator.id,
            name=operator.name,
            email=operator.email,
            status=operator.status.value,
            has_password=operator.has_password,
            created_at=iso_time(operator.created_at_ms),
            link=invitation.link(base_url),
            link_expires_at=iso_time(invitation.expires_at_ms),
        )

    def __repr__(self) -> str:
        """Leave the link out."""
        return f"NewOperatorDocument({self.id})"


class AdminTokenDocument(Struct, frozen=True, kw_only=True):
    """One admin token. `state` is active, expired or revoked."""

    id: str
    name: str
    state: str
    scopes: tuple[str, ...]
    made_by: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None

    @classmethod
    def of(cls, token: AdminToken, now_ms: int) -> "AdminTokenDocument":
        """Describe a token as it is now."""
        state = "active" if token.is_active(now_ms) else "expired" if token.revoked_at_ms is None else "revoked"
        return cls(
            id=token.id,
            name=token.name,
            state=state,
            scopes=token.scopes,
            made_by=token.made_by,
            created_at=iso_time(token.created_at_ms),
            expires_at=time_or_none(token.expires_at_ms),
            revoked_at=time_or_none(token.revoked_at_ms),
        )


class IssuedTokenDocument(Struct, frozen=True, kw_only=True):
    """A token just made. `secret` is the whole token, to be seen this once."""

    id: str
    secret: str
    name: str
    scopes: tuple[str, ...]
    created_at: str
    expires_at: str | None

    @classmethod
    def of(cls, issued: "IssuedToken") -> "IssuedTokenDocument":
        """Describe a token just made."""
        token = issued.token
        return cls(
            id=token.id,
            secret=issued.secret,
            name=token.name,
            scopes=token.scopes,
            created_at=iso_time(token.created_at_ms),
            expires_at=time_or_none(token.expires_at_ms),
        )

    def __repr__(self) -> str:
        """Name the token without its secret."""
        return f"IssuedTokenDocument({self.id})"


class ActDocument(Struct, frozen=True, kw_only=True):
    """One act: what `made_by` did, by the command line, an operator's page, the admin API or the panel (`via`).

    `account_id` is whose account it was about, `subject` the id of what else; `detail` has a few facts.
    """

    id: str
    act: str
    made_by: str
    via: str
    account_id: str | None
    subject: str | None
    detail: dict[str, Any]
    made_at: str


class TrailDocument(Struct, frozen=True, kw_only=True):
    """Acts, newest first. When there is `more`, --before with the last of the ids shows it."""

    acts: tuple[ActDocument, ...]
    more: bool

    @classmethod
    def of(cls, trail: "Trail") -> "TrailDocument":
        """Describe a page of the trail."""
        return cls(
            more=trail.more,
            acts=tuple(
                ActDocument(
                    id=act.id,
                    act=act.act,
                    made_by=act.made_by,
                    via=act.via.value,
                    account_id=act.account_id,
                    subject=act.subject,
                    detail=act.detail,
                    made_at=iso_time(act.made_at_ms),
                )
                for act in trail.acts
            ),
        )
