"""Requests: what has become of one, by the id that its caller was given."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.members import Time, time
from tarazu.api.admin.route import Route
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.calendar import iso_time
from tarazu.service.identifiers import request_id_of
from tarazu.store.request_history import RequestRow


class RequestObject(Struct, frozen=True, kw_only=True):
    """One request, without its content."""

    id: Annotated[str, Meta(description="Names the request; a completion carries it.")]
    request_id: Annotated[str, Meta(description="The `X-Request-Id` of its answer.")]
    account_id: Annotated[str, Meta(description="Whose request it is.")]
    key_id: Annotated[str, Meta(description="The key that it was sent with.")]
    key_name: Annotated[str, Meta(description="The name of that key.")]
    model: Annotated[str, Meta(description="Which model was asked.")]
    credits: Annotated[int, Meta(ge=0, description="Its price, whatever has become of it.")]
    credits_charged: Annotated[
        int, Meta(ge=0, description="What it has cost: its price, or 0 while it runs and where it was given back.")
    ]
    source: Annotated[
        Literal["plan", "api_balance"], Meta(description="What pays, or would have paid: the plan, or the balance.")
    ]
    state: Annotated[
        Literal["held", "charged", "released", "swept"],
        Meta(
            description="`held` while it runs; then `charged`, or `released` or `swept`: its credits were given back."
        ),
    ]
    created_at: Annotated[str, time("When it was admitted.")]
    ended_at: Annotated[Time | None, Meta(description="When it ended; null while it runs.")]
    tries: Annotated[int | None, Meta(description="How many backends were asked; null while it runs.")]
    prompt_tokens: Annotated[int | None, Meta(description="Tokens of the prompt; null while it runs.")]
    completion_tokens: Annotated[int | None, Meta(description="Tokens of the reply; null while it runs.")]
    reason: Annotated[
        Literal["abandoned", "timed_out"] | None,
        Meta(
            description="Why there was no reply: `abandoned`, its caller left, or `timed_out`; null for all others. "
            "Beyond the bounds of `[billing]` its credits were charged all the same."
        ),
    ]

    @classmethod
    def of(cls, row: RequestRow) -> "RequestObject":
        """Describe a request."""
        return cls(
            id=row.id,
            request_id=request_id_of(row.id),
            account_id=row.account_id,
            key_id=row.key_id,
            key_name=row.key_name,
            model=row.model_id,
            credits=row.credits,
            credits_charged=row.credits_charged,
            source=row.source.value,
            state=row.state.value,
            created_at=iso_time(row.created_at_ms),
            ended_at=None if row.ended_at_ms is None else iso_time(row.ended_at_ms),
            tries=row.tries,
            prompt_tokens=row.prompt_tokens,
            completion_tokens=row.completion_tokens,
            reason=None if row.reason is None else row.reason.value,
        )


async def show_request(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """Show one."""
    return Reply(RequestObject.of(await desk.act(call.caller, lambda acts: acts.request(call.ids["request_id"]))))


ROUTES = (
    Route(
        operation_id="showRequest",
        tag="Running it",
        method="GET",
        path="/requests/{request_id}",
        scope=Scope.READ,
        summary="Show a request",
        description=(
            "By its id, `chatcmpl_…`, or by the `X-Request-Id` of its answer, `req_…`. A request that was refused "
            "has no row: the history of its account adds such requests up, and the log has its line."
        ),
        answer=RequestObject(
            id="chatcmpl_0V2yJ8kQmZ4tB7wXc1NfRpL",
            request_id="req_0V2yJ8kQmZ4tB7wXc1NfRpL",
            account_id="acc_9Kx2QwErTyUiOp",
            key_id="key_4TgBnHyU7jMk",
            key_name="shop",
            model="openai/gpt-4o-mini",
            credits=5,
            credits_charged=5,
            source="plan",
            state="charged",
            created_at="2026-01-17T10:06:00Z",
            ended_at="2026-01-17T10:06:02Z",
            tries=1,
            prompt_tokens=12,
            completion_tokens=34,
            reason=None,
        ),
        errors=(AdminError.NOT_THERE,),
        handle=show_request,
    ),
)
