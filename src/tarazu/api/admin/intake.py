"""The intake switch: whether completions are taken."""

from typing import Annotated

from msgspec import Meta, Struct

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.members import number
from tarazu.api.admin.route import Route
from tarazu.domain.accounts import Intake
from tarazu.domain.admin_tokens import Scope
from tarazu.service.checks import checked_count
from tarazu.service.provisioning import RETRY_AFTER_S_MAX, Provisioning


class IntakeSwitch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the switch is to stand."""

    stopped: Annotated[bool, Meta(description="True: completions are refused from now on, everywhere.")]
    retry_after_s: Annotated[
        int, number("After how many seconds callers are told to come back, while it is stopped.", 1, RETRY_AFTER_S_MAX)
    ] = Intake().retry_after_s


class IntakeObject(Struct, frozen=True, kw_only=True):
    """How the intake switch stands."""

    stopped: Annotated[bool, Meta(description="Whether completions are refused.")]
    retry_after_s: Annotated[int, Meta(ge=1, description="After how many seconds callers are told to come back.")]

    @classmethod
    def of(cls, intake: Intake) -> "IntakeObject":
        """Describe the switch."""
        return cls(stopped=intake.stopped, retry_after_s=intake.retry_after_s)


async def get_intake(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """Show the switch."""
    return Reply(IntakeObject.of(await desk.act(call.caller, lambda acts: acts.intake())))


async def set_intake(desk: Desk, call: Call[NoQuery, IntakeSwitch]) -> Reply:
    """Stop intake, or resume it."""
    asked = call.body
    checked_count("retry time", asked.retry_after_s, member="retry_after_s", most=RETRY_AFTER_S_MAX)

    def switch(acts: Provisioning) -> Intake:
        return acts.stop_intake(retry_after_s=asked.retry_after_s) if asked.stopped else acts.resume_intake()

    return Reply(IntakeObject.of(await desk.act(call.caller, switch)))


ROUTES = (
    Route(
        operation_id="getIntake",
        tag="Running it",
        method="GET",
        path="/intake",
        scope=Scope.READ,
        summary="Show the intake switch",
        description="Whether completions are taken.",
        answer=IntakeObject(stopped=False, retry_after_s=300),
        handle=get_intake,
    ),
    Route(
        operation_id="setIntake",
        tag="Running it",
        method="PUT",
        path="/intake",
        scope=Scope.ACCOUNTS,
        summary="Stop or resume intake",
        description=(
            "It holds from the next request on, in every process: completions are answered with 503 `system_stopped`. "
            "Those that are running are finished."
        ),
        body=IntakeSwitch(stopped=True, retry_after_s=600),
        answer=IntakeObject(stopped=True, retry_after_s=600),
        errors=(AdminError.INVALID_VALUE,),
        handle=set_intake,
    ),
)
