"""The audit: whether the books balance."""

from typing import Annotated

from msgspec import Meta, Struct

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.route import Route
from tarazu.domain.admin_tokens import Scope
from tarazu.store.audit import AuditReport


class AuditRuleObject(Struct, frozen=True, kw_only=True):
    """What one rule has found."""

    name: Annotated[str, Meta(description="Names the rule.")]
    found: Annotated[int, Meta(ge=0, description="Differences found.")]
    listed: Annotated[int, Meta(ge=0, description="How many of them are listed.")]


class DifferenceObject(Struct, frozen=True, kw_only=True):
    """One figure in the books that its rows do not bear out."""

    account_id: Annotated[str, Meta(description="Whose figure it is.")]
    figure: Annotated[str, Meta(description="Which figure.")]
    subject: Annotated[str, Meta(description="Of what: a period, a day, a request.")]
    booked: Annotated[int, Meta(description="What the books have.")]
    computed: Annotated[int, Meta(description="What the rows come to.")]


class AuditObject(Struct, frozen=True, kw_only=True):
    """What an audit has compared, and where it differs."""

    balanced: Annotated[bool, Meta(description="Whether nothing differs.")]
    accounts: Annotated[int, Meta(ge=0, description="Accounts in the books.")]
    requests: Annotated[int, Meta(ge=0, description="Requests in the books.")]
    found: Annotated[int, Meta(ge=0, description="Differences found, also those that are not listed.")]
    rules: Annotated[tuple[AuditRuleObject, ...], Meta(description="What each rule has found.")]
    differences: Annotated[tuple[DifferenceObject, ...], Meta(description="The first differences of each rule.")]

    @classmethod
    def of(cls, report: AuditReport) -> "AuditObject":
        """Describe an audit."""
        return cls(
            balanced=report.found == 0,
            accounts=report.accounts,
            requests=report.requests,
            found=report.found,
            rules=tuple(AuditRuleObject(name=rule.name, found=rule.found, listed=rule.listed) for rule in report.rules),
            differences=tuple(
                DifferenceObject(
                    account_id=each.account_id,
                    figure=each.figure,
                    subject=each.subject,
                    booked=each.booked,
                    computed=each.computed,
                )
                for each in report.differences
            ),
        )


async def run_audit(desk: Desk, _call: Call[NoQuery, None]) -> Reply:
    """Audit the books, beside the service."""
    return Reply(AuditObject.of(await desk.auditor.run()))


ROUTES = (
    Route(
        operation_id="runAudit",
        tag="Running it",
        method="POST",
        path="/audit",
        scope=Scope.READ,
        summary="Audit the books",
        description=(
            "Recomputes every figure and compares. It answers when it is done: in half a minute, for ten million "
            "requests; one runs at a time in a process. It changes nothing."
        ),
        answer=AuditObject(
            balanced=False,
            accounts=2,
            requests=1_250,
            found=1,
            rules=(AuditRuleObject(name="balances", found=1, listed=1),),
            differences=(
                DifferenceObject(
                    account_id="acc_9Kx2QwErTyUiOp", figure="balance", subject="", booked=500, computed=480
                ),
            ),
        ),
        errors=(AdminError.AUDIT_RUNNING,),
        handle=run_audit,
    ),
)
