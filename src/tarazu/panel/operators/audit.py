"""The audit of the books, at the press of a button."""

import msgspec
from msgspec import Struct, structs
from starlette.responses import Response

from tarazu.panel.acting import act
from tarazu.panel.kept import Kept, Kind
from tarazu.panel.messages import later
from tarazu.panel.visits import Visit
from tarazu.service.auditing import Auditor, AuditRunningError
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning_errors import ConflictError
from tarazu.store.audit import AuditReport

SHOWN_MAX = 200
"""Differences on the page. The command lists more, and all are counted."""

RULES = {
    "used quotas": later("Used quotas"),
    "balances": later("Balances"),
    "daily usage": later("Daily usage"),
    "deadlines of holds": later("Deadlines of holds"),
    "idempotency keys": later("Idempotency keys"),
    "requests": later("Requests"),
    "owners of rows": later("Owners of rows"),
}
"""How people call the audit's rules."""

FIGURES = {
    "used": later("used quota"),
    "balance": later("balance"),
    "daily usage: requests": later("daily usage: requests"),
    "daily usage: credits": later("daily usage: credits"),
    "daily usage: prompt_tokens": later("daily usage: tokens in"),
    "daily usage: completion_tokens": later("daily usage: tokens out"),
    "daily usage without a request": later("daily usage without a request"),
    "overdue hold: deadline_ms": later("overdue hold: deadline, in milliseconds"),
    "idempotency key with a reply: charged requests": later("idempotency key with a reply: charged requests"),
    "idempotency key without a reply: held requests": later("idempotency key without a reply: held requests"),
    "request in a period before its day": later("request in a period before its day"),
    "request whose state and time of its end disagree": later("request whose state and time of its end disagree"),
    "charged request without its tokens": later("charged request without its tokens"),
    "requests of an account that does not exist": later("requests of an account that does not exist"),
    "requests with a key that is not the account's": later("requests with a key that is not the account's"),
    "keys of an account that does not exist": later("keys of an account that does not exist"),
    "topups of an account that does not exist": later("top-ups of an account that does not exist"),
    "adjustments of an account that does not exist": later("corrections of an account that does not exist"),
}
"""How people call what differs."""


class Audited(Struct, frozen=True, kw_only=True):
    """What an audit has found, and when."""

    report: AuditReport
    begin_ms: int
    took_ms: int


class AuditPages:
    """The page of the audit. What differs stands on its answer alone; when it was made, and how much, in the trail."""

    def __init__(self, office: BackOffice, auditor: Auditor) -> None:
        self._office = office
        self._auditor = auditor

    async def show(self, visit: Visit) -> Response:
        """Offer it, and show what the last one has found where a form has led here."""
        kept = visit.shown("audit")
        audited = msgspec.json.decode(kept, type=Audited) if kept else None
        return visit.page("operators/audit.html", audited=audited, rules=RULES, figures=FIGURES)

    async def run(self, visit: Visit) -> Response:
        """Audit the books, beside all else that the process does."""
        begin_ms = self._office.clock()
        try:
            report = await self._auditor.run()
        except AuditRunningError:
            raise ConflictError("An audit is running already. Wait until it has ended, then try again.") from None
        await act(self._office, visit, lambda books: books.record_audit(differences=report.found))
        shown = structs.replace(report, differences=report.differences[:SHOWN_MAX])
        audited = Audited(report=shown, begin_ms=begin_ms, took_ms=max(0, self._office.clock() - begin_ms))
        fields = (("audit", msgspec.json.encode(audited).decode()),)
        return await visit.lead_or_show("/audit", Kept(kind=Kind.SHOWN, fields=fields), self.show)
