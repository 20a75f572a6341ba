"""The trail: every act on the books, with who, when and what; of all, or of one account."""

from http import HTTPStatus

from starlette.responses import Response

from tarazu.panel.acting import act
from tarazu.panel.messages import later, told, translations
from tarazu.panel.operators.acts import ActLine, act_line
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning import Trail
from tarazu.service.provisioning_errors import NotThereError
from tarazu.store.accounts import AccountOrder, Sought

PAGE_LENGTH = 25
NOBODY = later("No account has this id, email or name.")


class TrailPages:
    """The pages of the trail."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show a page of acts, the newest first, or lead to those of the account that is looked for."""
        search = visit.query("account").strip()
        if search:
            return await self._find(visit, search)
        try:
            trail = await self._read(visit, None)
        except NotThereError as error:
            nothing = Trail(acts=(), more=False)
            return _page(visit, nothing, HTTPStatus.NOT_FOUND, refusal=told(error, visit.formats))
        return _page(visit, trail)

    async def of_account(self, visit: Visit) -> Response:
        """Show a page of acts on one account, the newest first."""
        account_id = visit.part("account_id")
        account = await act(self._office, visit, lambda books: books.account(account_id))
        trail = await self._read(visit, account_id)
        return visit.page(
            "operators/account_trail.html",
            account=account,
            lines=_lines(visit, trail),
            more=trail.more,
            is_first=not visit.query("before"),
        )

    async def _find(self, visit: Visit, search: str) -> Response:
        """Lead to the account that is meant, or list those that may be."""
        sought = Sought(text=search)
        found = await act(self._office, visit, lambda books: books.account_list(sought, AccountOrder.NAME))
        if found.paging.count == 1:
            return visit.redirect(f"/accounts/{found.accounts[0].id}/trail")
        nothing = Trail(acts=(), more=False)
        if found.accounts:
            return _page(visit, nothing, search=search, accounts=found.accounts, count=found.paging.count)
        refusal = translations(visit.formats.language).gettext(NOBODY)
        return _page(visit, nothing, HTTPStatus.NOT_FOUND, search=search, refusal=refusal)

    async def _read(self, visit: Visit, account_id: str | None) -> Trail:
        before = visit.query("before") or None
        return await act(
            self._office, visit, lambda books: books.trail(limit=PAGE_LENGTH, account_id=account_id, before=before)
        )


def _lines(visit: Visit, trail: Trail) -> list[ActLine]:
    return [act_line(each, visit.formats) for each in trail.acts]


def _page(visit: Visit, trail: Trail, status: int = HTTPStatus.OK, /, **values: object) -> Response:
    shown: dict[str, object] = {"search": "", "accounts": (), "count": 0, "refusal": None, **values}
    return visit.page(
        "operators/trail.html",
        status,
        lines=_lines(visit, trail),
        more=trail.more,
        is_first=not visit.query("before"),
        **shown,
    )
