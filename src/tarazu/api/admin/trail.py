"""The trail of every act."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tarazu.api.admin.call import Call, Desk, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.members import AskedLimit, Limit, More, time
from tarazu.api.admin.route import Route
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.calendar import iso_time
from tarazu.service.checks import HISTORY_LENGTH
from tarazu.service.trails import Trail


class TrailQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which acts to show."""

    account_id: Annotated[str | None, Meta(description="Only those on the account with this id.")] = None
    limit: AskedLimit = HISTORY_LENGTH
    before: Annotated[str | None, Meta(description="Only those before the act with this id.")] = None


class ActObject(Struct, frozen=True, kw_only=True):
    """One act on the books."""

    id: Annotated[str, Meta(description="Names the act, and sorts by time.")]
    act: Annotated[str, Meta(description="What was done, as in `key.revoke`.")]
    made_by: Annotated[str, Meta(description="Who did it: a token's name, or a person.")]
    via: Annotated[
        Literal["command", "operator", "token", "holder"],
        Meta(description="By which way: a command, an operator's page, this API, or the account's own holder."),
    ]
    account_id: Annotated[str | None, Meta(description="On whose account.")]
    subject: Annotated[str | None, Meta(description="On what else: the id of a key, of a top-up.")]
    detail: Annotated[dict[str, Any], Meta(description="A few facts more; which, depends on the act.")]
    made_at: Annotated[str, time("When.")]


class ActList(Struct, frozen=True, kw_only=True):
    """A page of the trail, newest first."""

    data: Annotated[tuple[ActObject, ...], Meta(description="The acts.")]
    limit: Limit
    more: More

    @classmethod
    def of(cls, trail: Trail, limit: int) -> "ActList":
        """Describe a page."""
        return cls(
            data=tuple(
                ActObject(
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
            limit=limit,
            more=trail.more,
        )


async def list_acts(desk: Desk, call: Call[TrailQuery, None]) -> Reply:
    """Show a page of the trail."""
    asked = call.query
    trail = await desk.act(
        call.caller, lambda acts: acts.trail(limit=asked.limit, account_id=asked.account_id, before=asked.before)
    )
    return Reply(ActList.of(trail, asked.limit))


ROUTES = (
    Route(
        operation_id="listActs",
        tag="Running it",
        method="GET",
        path="/trail",
        scope=Scope.READ,
        summary="Show the trail",
        description=(
            "Every act on the books but requests, with who, when and what, newest first. The next page is `before` the "
            "last act of this one."
        ),
        query=TrailQuery,
        answer=ActList(
            data=(
                ActObject(
                    id="act_0V2yJ8kQm4tB7wXc1NfRpL2",
                    act="credit.add",
                    made_by="payment page",
                    via="token",
                    account_id="acc_9Kx2QwErTyUiOp",
                    subject="top_5fGhJkLmNpQrSt",
                    detail={"credits": 500, "reference": "invoice-2026-0117"},
                    made_at="2026-01-17T10:06:00Z",
                ),
            ),
            limit=HISTORY_LENGTH,
            more=False,
        ),
        errors=(AdminError.NOT_THERE, AdminError.INVALID_VALUE),
        handle=list_acts,
    ),
)
