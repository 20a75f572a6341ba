"""The trail: every act on the books, with who, when and what; of all, or of one account, and as a file."""

from http import HTTPStatus

from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.domain.accounts import Account
from tarazu.domain.calendar import day_after, day_of, day_start_ms
from tarazu.panel.acting import act
from tarazu.panel.downloads import send_csv
from tarazu.panel.messages import later, told, translations
from tarazu.panel.narrowed import Narrowed
from tarazu.panel.operators.acts import ACTS, act_line
from tarazu.panel.ranges import read_span
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.csv_files import trail_csv
from tarazu.service.finding import existing_account
from tarazu.service.provisioning_errors import NotThereError, ProvisioningError
from tarazu.service.trails import Trail, TrailFilter, trail_page
from tarazu.store.accounts import AccountOrder, Sought

PAGE_LENGTH = 25
NOBODY = later("No account has this id, email or name.")


class TrailPages:
    """The pages of the trail."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show a page of acts, the newest first, or lead to those of the account that is looked for."""
        search, narrowed = visit.query("account").strip(), self._narrowed(visit, None)
        if search:
            return await self._find(visit, search, narrowed)
        try:
            trail = await self._office.look(lambda connection: self._read(connection, visit, narrowed))
        except NotThereError as error:
            return _page(visit, narrowed, Trail(), HTTPStatus.NOT_FOUND, refusal=told(error, visit.formats))
        return _page(visit, narrowed, trail)

    async def of_account(self, visit: Visit) -> Response:
        """Show a page of acts on one account, the newest first."""
        account_id = visit.part("account_id")
        narrowed = self._narrowed(visit, account_id)

        def look(connection: Connection) -> tuple[Account, Trail]:
            return existing_account(connection, account_id), self._read(connection, visit, narrowed)

        account, trail = await self._office.look(look)
        return visit.page("operators/account_trail.html", account=account, **_shown(visit, narrowed, trail))

    async def download(self, visit: Visit) -> Response:
        """Send the acts that the address asks for as a file."""
        return await self._send(visit, None)

    async def download_of_account(self, visit: Visit) -> Response:
        """Send those on one account."""
        return await self._send(visit, visit.part("account_id"))

    async def _send(self, visit: Visit, account_id: str | None) -> Response:
        narrowed = self._narrowed(visit, account_id)
        if narrowed.refusal is not None:
            raise HTTPException(HTTPStatus.BAD_REQUEST)
        return await send_csv(self._office, "log", trail_csv(visit.formats.zone, narrowed.sought))

    async def _find(self, visit: Visit, search: str, narrowed: Narrowed[TrailFilter]) -> Response:
        """Lead to the account that is meant, or list those that may be."""
        sought = Sought(text=search)
        found = await act(self._office, visit, lambda books: books.account_list(sought, AccountOrder.NAME))
        if found.paging.count == 1:
            return visit.redirect(f"/accounts/{found.accounts[0].id}/trail")
        if found.accounts:
            count = found.paging.count
            return _page(visit, narrowed, Trail(), search=search, accounts=found.accounts, count=count)
        refusal = translations(visit.formats.language).gettext(NOBODY)
        return _page(visit, narrowed, Trail(), HTTPStatus.NOT_FOUND, search=search, refusal=refusal)

    def _read(self, connection: Connection, visit: Visit, narrowed: Narrowed[TrailFilter]) -> Trail:
        return trail_page(connection, narrowed.sought, limit=PAGE_LENGTH, before=visit.query("before") or None)

    def _narrowed(self, visit: Visit, account_id: str | None) -> Narrowed[TrailFilter]:
        """Read what is looked for from the address."""
        query = {name: visit.query(name).strip() for name in ("act", "who", "from", "until")}
        zone = visit.formats.zone
        try:
            first, last = read_span(query["from"], query["until"], day_of(self._office.clock(), zone))
        except ProvisioningError as error:
            nothing = TrailFilter(account_id=account_id)
            return Narrowed(sought=nothing, query=query, refusal=told(error, visit.formats))
        sought = TrailFilter(
            account_id=account_id,
            names=_names_of(query["act"]),
            made_by=query["who"],
            since_ms=None if first is None else day_start_ms(first, zone),
            until_ms=None if last is None else day_start_ms(day_after(last), zone),
        )
        return Narrowed(sought=sought, query=query)


def _names_of(act_name: str) -> tuple[str, ...]:
    """List the kinds of acts that are called as this one is; what no kind is called is looked for as it stands."""
    called = ACTS.get(act_name)
    same = tuple(name for name, word in ACTS.items() if word == called)
    return same or ((act_name,) if act_name else ())


def _kinds(visit: Visit) -> list[tuple[str, str]]:
    """Offer each word for an act once, by the first act that it stands for."""
    gettext = translations(visit.formats.language).gettext
    first = {word: name for name, word in reversed(ACTS.items())}
    return [("", gettext("any event")), *sorted(((name, gettext(word)) for word, name in first.items()), key=_by_word)]


def _by_word(choice: tuple[str, str]) -> str:
    return choice[1]


def _shown(visit: Visit, narrowed: Narrowed[TrailFilter], trail: Trail) -> dict[str, object]:
    return {
        "lines": [act_line(each, visit.formats) for each in trail.acts],
        "trail": trail,
        "narrowed": narrowed,
        "kinds": _kinds(visit),
        "is_first": not visit.query("before"),
    }


def _page(
    visit: Visit, narrowed: Narrowed[TrailFilter], trail: Trail, status: int = HTTPStatus.OK, /, **values: object
) -> Response:
    shown: dict[str, object] = {"search": "", "accounts": (), "count": 0, "refusal": None, **values}
    return visit.page("operators/trail.html", status, **_shown(visit, narrowed, trail), **shown)
