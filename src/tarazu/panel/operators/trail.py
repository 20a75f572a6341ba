"""The trail: every act on the books, with who, when and what."""

from http import HTTPStatus

from starlette.responses import Response

from tarazu.panel.acting import act
from tarazu.panel.messages import told
from tarazu.panel.operators.acts import act_line
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.identifiers import ACCOUNT_PREFIX
from tarazu.service.provisioning import Provisioning, Trail
from tarazu.service.provisioning_errors import NotThereError

PAGE_LENGTH = 25


class TrailPages:
    """The page of the trail."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show a page of acts, of one account if one is named, the newest first."""
        account_id, before = visit.query("account").strip(), visit.query("before") or None
        try:
            account_id, trail = await act(
                self._office,
                visit,
                lambda books: _trail(books, account_id, before),
            )
        except NotThereError as error:
            nothing = Trail(acts=(), more=False)
            return _page(visit, HTTPStatus.NOT_FOUND, nothing, account_id, refusal=told(error, visit.formats))
        return _page(visit, HTTPStatus.OK, trail, account_id, is_first=before is None)


def _trail(books: Provisioning, account: str, before: str | None) -> tuple[str, Trail]:
    """List acts of the account with this id, or of the only one that a search by email or name finds."""
    if account and not account.startswith(ACCOUNT_PREFIX):
        found = books.accounts_page(search=account, limit=2).accounts
        if len(found) == 1:
            account = found[0].id
    return account, books.trail(limit=PAGE_LENGTH, account_id=account or None, before=before)


def _page(
    visit: Visit, status: int, trail: Trail, account_id: str, *, is_first: bool = True, refusal: str | None = None
) -> Response:
    return visit.page(
        "operators/trail.html",
        status,
        lines=[act_line(each, visit.formats) for each in trail.acts],
        more=trail.more,
        account_id=account_id,
        is_first=is_first,
        refusal=refusal,
    )
