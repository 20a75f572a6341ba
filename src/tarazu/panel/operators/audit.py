"""The audit of the books, at the press of a button."""

from http import HTTPStatus

from starlette.responses import Response

from tarazu.panel.messages import later
from tarazu.panel.visits import Visit
from tarazu.service.auditing import Auditor, AuditRunningError
from tarazu.service.back_office import BackOffice

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


class AuditPages:
    """The page of the audit. It is no act: nothing is changed, and what it has found stands on its answer alone."""

    def __init__(self, office: BackOffice, auditor: Auditor) -> None:
        self._office = office
        self._auditor = auditor

    async def show(self, visit: Visit) -> Response:
        """Offer it."""
        return visit.page("operators/audit.html", report=None, is_running=False)

    async def run(self, visit: Visit) -> Response:
        """Audit the books, beside all else that the process does, and show what differs."""
        begin_ms = self._office.clock()
        try:
            report = await self._auditor.run()
        except AuditRunningError:
            return visit.page("operators/audit.html", HTTPStatus.CONFLICT, report=None, is_running=True)
        return visit.page(
            "operators/audit.html",
            report=report,
            is_running=False,
            rules=RULES,
            shown=report.differences[:SHOWN_MAX],
            begin_ms=begin_ms,
            took_ms=max(0, self._office.clock() - begin_ms),
        )
