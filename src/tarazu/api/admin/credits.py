"""Credits: add what was paid for, correct balances, and show what has changed them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.members import AskedLimit, Limit, More, number, text, time
from tarazu.api.admin.route import ONCE, Route
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.calendar import iso_time
from tarazu.domain.credits import BALANCE_MAX
from tarazu.service.checks import HISTORY_LENGTH
from tarazu.service.crediting import REFERENCE_LENGTH_MAX, TEXT_LENGTH_MAX, CreditHistory
from tarazu.service.provisioning import Provisioning
from tarazu.store.adjustments import Adjustment
from tarazu.store.topups import Topup


class NewTopup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Credits that were paid for."""

    credits: Annotated[int, number("Whole credits to add.", 1, BALANCE_MAX)]
    reference: Annotated[str, text("The payment's own number. The same one again adds nothing.", REFERENCE_LENGTH_MAX)]
    note: Annotated[str | None, text("A remark for the books.", TEXT_LENGTH_MAX)] = None


class NewAdjustment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A correction of a balance."""

    credits: Annotated[
        int,
        Meta(
            description="Whole credits to give or, below zero, to take; not 0.",
            extra_json_schema={"minimum": -BALANCE_MAX, "maximum": BALANCE_MAX, "not": {"const": 0}},
        ),
    ]
    reason: Annotated[str, text("Why, for the books.", TEXT_LENGTH_MAX)]
    reference: Annotated[
        str | None,
        text(
            "A number of its own. The same one again changes nothing; without, it is done each time.",
            REFERENCE_LENGTH_MAX,
        ),
    ] = None


class CreditsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which changes to show."""

    limit: AskedLimit = HISTORY_LENGTH
    before: Annotated[str | None, Meta(description="Only those before the change with this id.")] = None


class TopupObject(Struct, frozen=True, kw_only=True):
    """Credits that were paid for."""

    id: Annotated[str, Meta(description="Names the top-up.")]
    account_id: Annotated[str, Meta(description="Whose balance it was added to.")]
    credits: Annotated[int, Meta(ge=1, description="Credits added.")]
    reference: Annotated[str, Meta(description="The payment's own number.")]
    note: Annotated[str | None, Meta(description="A remark.")]
    made_by: Annotated[str | None, Meta(description="Who added it; null where an old release has not recorded it.")]
    created_at: Annotated[str, time("When it was added.")]
    added: Annotated[bool, Meta(description="Whether this request added it; false: one before has, nothing was added.")]
    balance: Annotated[int, Meta(ge=0, description="The account's balance now.")]

    @classmethod
    def of(cls, topup: Topup, *, added: bool, balance: int) -> "TopupObject":
        """Describe a top-up and what came of it."""
        return cls(
            id=topup.id,
            account_id=topup.account_id,
            credits=topup.credits,
            reference=topup.reference,
            note=topup.note,
            made_by=topup.made_by,
            created_at=iso_time(topup.created_at_ms),
            added=added,
            balance=balance,
        )


class AdjustmentObject(Struct, frozen=True, kw_only=True):
    """A correction of a balance."""

    id: Annotated[str, Meta(description="Names the adjustment.")]
    account_id: Annotated[str, Meta(description="Whose balance it has changed.")]
    credits: Annotated[int, Meta(description="Credits given or, below zero, taken.")]
    reason: Annotated[str, Meta(description="Why.")]
    reference: Annotated[str | None, Meta(description="Its own number, if it has one.")]
    made_by: Annotated[str, Meta(description="Who did it.")]
    created_at: Annotated[str, time("When it was done.")]
    adjusted: Annotated[
        bool, Meta(description="Whether this request did it; false: one before has, nothing was changed.")
    ]
    balance: Annotated[int, Meta(ge=0, description="The account's balance now.")]

    @classmethod
    def of(cls, adjustment: Adjustment, *, adjusted: bool, balance: int) -> "AdjustmentObject":
        """Describe an adjustment and what came of it."""
        return cls(
            id=adjustment.id,
            account_id=adjustment.account_id,
            credits=adjustment.credits,
            reason=adjustment.reason,
            reference=adjustment.reference,
            made_by=adjustment.made_by,
            created_at=iso_time(adjustment.created_at_ms),
            adjusted=adjusted,
            balance=balance,
        )


class CreditChangeObject(Struct, frozen=True, kw_only=True):
    """One change of a balance beside requests."""

    id: Annotated[str, Meta(description="Names the change.")]
    kind: Annotated[Literal["top-up", "adjustment"], Meta(description="What it is.")]
    credits: Annotated[int, Meta(description="Credits given or, below zero, taken.")]
    reference: Annotated[str | None, Meta(description="Its own number, if it has one.")]
    why: Annotated[str | None, Meta(description="A top-up's note, or an adjustment's reason.")]
    made_by: Annotated[str | None, Meta(description="Who did it; null where an old release has not recorded it.")]
    created_at: Annotated[str, time("When it was done.")]


class CreditHistoryObject(Struct, frozen=True, kw_only=True):
    """A page of what has changed an account's balance beside requests, newest first, and the balance now."""

    account_id: Annotated[str, Meta(description="Whose balance it is.")]
    balance: Annotated[int, Meta(ge=0, description="The balance now.")]
    data: Annotated[tuple[CreditChangeObject, ...], Meta(description="The changes.")]
    limit: Limit
    more: More

    @classmethod
    def of(cls, history: CreditHistory, limit: int) -> "CreditHistoryObject":
        """Describe a page."""
        return cls(
            account_id=history.account.id,
            balance=history.account.balance,
            data=tuple(
                CreditChangeObject(
                    id=change.id,
                    kind=change.kind.value,
                    credits=change.credits,
                    reference=change.reference,
                    why=change.why,
                    made_by=change.made_by,
                    created_at=iso_time(change.created_at_ms),
                )
                for change in history.changes
            ),
            limit=limit,
            more=history.more,
        )


async def add_topup(desk: Desk, call: Call[NoQuery, NewTopup]) -> Reply:
    """Add credits, once for each reference."""
    asked = call.body

    def add(acts: Provisioning) -> TopupObject:
        topup, added = acts.add_credit(call.account_id, asked.credits, reference=asked.reference, note=asked.note)
        return TopupObject.of(topup, added=added, balance=acts.account(call.account_id).balance)

    topup = await desk.act(call.caller, add)
    return Reply(topup, is_new=topup.added)


async def add_adjustment(desk: Desk, call: Call[NoQuery, NewAdjustment]) -> Reply:
    """Correct a balance, with a reference once."""
    asked = call.body

    def adjust(acts: Provisioning) -> AdjustmentObject:
        adjustment, adjusted = acts.adjust_credit(
            call.account_id, asked.credits, reason=asked.reason, reference=asked.reference
        )
        return AdjustmentObject.of(adjustment, adjusted=adjusted, balance=acts.account(call.account_id).balance)

    adjustment = await desk.act(call.caller, adjust)
    return Reply(adjustment, is_new=adjustment.adjusted)


async def list_credits(desk: Desk, call: Call[CreditsQuery, None]) -> Reply:
    """Show a page of what has changed a balance."""
    asked = call.query
    history = await desk.act(
        call.caller, lambda acts: acts.credit_history(call.account_id, limit=asked.limit, before=asked.before)
    )
    return Reply(CreditHistoryObject.of(history, asked.limit))


_CHANGES_A_BALANCE = (AdminError.NOT_THERE, AdminError.CONFLICT, AdminError.INVALID_VALUE)

ROUTES = (
    Route(
        operation_id="listCredits",
        tag="Credits",
        method="GET",
        path="/accounts/{account_id}/credits",
        scope=Scope.READ,
        summary="Show what has changed a balance",
        description=(
            "Top-ups and adjustments with who, when and why, newest first. The next page is `before` the last change "
            "of this one. What requests have cost is not in it."
        ),
        query=CreditsQuery,
        answer=CreditHistoryObject(
            account_id="acc_9Kx2QwErTyUiOp",
            balance=500,
            data=(
                CreditChangeObject(
                    id="top_5fGhJkLmNpQrSt",
                    kind="top-up",
                    credits=500,
                    reference="invoice-2026-0117",
                    why=None,
                    made_by="payment page",
                    created_at="2026-01-17T10:06:00Z",
                ),
            ),
            limit=HISTORY_LENGTH,
            more=False,
        ),
        errors=(AdminError.NOT_THERE, AdminError.INVALID_VALUE),
        handle=list_credits,
    ),
    Route(
        operation_id="addTopup",
        tag="Credits",
        method="POST",
        path="/accounts/{account_id}/topups",
        scope=Scope.CREDITS,
        summary="Add credits that were paid for",
        description=(
            "Once for each `reference`: the same again, for the same account and amount, answers 200 with the first "
            "top-up and adds nothing; with another account or amount 409."
        ),
        body=NewTopup(credits=500, reference="invoice-2026-0117"),
        answer=TopupObject(
            id="top_5fGhJkLmNpQrSt",
            account_id="acc_9Kx2QwErTyUiOp",
            credits=500,
            reference="invoice-2026-0117",
            note=None,
            made_by="payment page",
            created_at="2026-01-17T10:06:00Z",
            added=True,
            balance=500,
        ),
        statuses=ONCE,
        errors=_CHANGES_A_BALANCE,
        handle=add_topup,
    ),
    Route(
        operation_id="addAdjustment",
        tag="Credits",
        method="POST",
        path="/accounts/{account_id}/adjustments",
        scope=Scope.CREDITS,
        summary="Correct a balance",
        description=(
            "Up or down, never below zero. With a `reference` it is done once, as a top-up is; without, each time. "
            "References of top-ups and adjustments are one namespace."
        ),
        body=NewAdjustment(credits=-20, reason="invoice 117 was paid twice", reference="correction-3"),
        answer=AdjustmentObject(
            id="adj_8kLmNpQrStUvWx",
            account_id="acc_9Kx2QwErTyUiOp",
            credits=-20,
            reason="invoice 117 was paid twice",
            reference="correction-3",
            made_by="back office",
            created_at="2026-01-18T08:30:00Z",
            adjusted=True,
            balance=480,
        ),
        statuses=ONCE,
        errors=_CHANGES_A_BALANCE,
        handle=add_adjustment,
    ),
)
