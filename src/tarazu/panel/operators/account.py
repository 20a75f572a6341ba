"""One account as it stands: its figures, plan and status, how its holder comes in, and what happened last."""

from msgspec import Struct
from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.domain.accounts import AccountStatus
from tarazu.panel.acting import act
from tarazu.panel.operators.acts import ActLine, act_line
from tarazu.panel.operators.choices import plan_choices, read_status, status_choices
from tarazu.panel.usage_bars import drawn
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.checks import UNCHANGED
from tarazu.service.people_acts import Invitation
from tarazu.service.provisioning import Provisioning
from tarazu.service.reports import HistoryEntry, Overview, history, overview
from tarazu.store.refused_requests import RefusedRow
from tarazu.store.trail import ActFilter, newest_acts

NEWEST = 5
"""So many requests and acts are shown beside all else."""


class AccountGlance(Struct, frozen=True, kw_only=True):
    """All that the page shows, of one moment."""

    overview: Overview
    requests: tuple[HistoryEntry | RefusedRow, ...]
    acts: tuple[ActLine, ...]


class AccountPages:
    """The page of an account. `base_url` is where browsers reach the service, for invitations."""

    def __init__(self, office: BackOffice, base_url: str) -> None:
        self._office = office
        self._base_url = base_url

    async def show(self, visit: Visit) -> Response:
        """Show it."""
        glance = await self._glance(visit)
        account = glance.overview.account
        return visit.page(
            "operators/account.html",
            account=account,
            glance=glance,
            drawn=drawn(glance.overview.usage, visit.formats),
            plans=plan_choices(self._office.catalogue, visit.formats, account.plan),
            statuses=[choice for choice in status_choices(visit.formats) if choice[0] != AccountStatus.ACTIVE],
        )

    async def rename(self, visit: Visit) -> Response:
        """Change what it is called."""
        account_id, name = visit.part("account_id"), visit.form.text("name")
        await act(self._office, visit, lambda books: books.set_account(account_id, name=name))
        return visit.done(f"/accounts/{account_id}", "account-renamed")

    async def change_plan(self, visit: Visit) -> Response:
        """Change the plan: what the form has changed, and not what somebody else has changed meanwhile."""
        account_id, form = visit.part("account_id"), visit.form
        plan = form.text("plan")
        new = UNCHANGED if plan == form.text("plan_before") else plan or None
        await act(self._office, visit, lambda books: books.set_account(account_id, plan=new))
        return visit.done(f"/accounts/{account_id}", "account-changed")

    async def change_status(self, visit: Visit) -> Response:
        """Change the status."""
        account_id, status = visit.part("account_id"), read_status(visit.form.text("status"))
        await act(self._office, visit, lambda books: books.set_account(account_id, status=status))
        is_active = status is AccountStatus.ACTIVE
        return visit.done(f"/accounts/{account_id}", "account-changed" if is_active else "account-stopped")

    async def change_email(self, visit: Visit) -> Response:
        """Change the address that the holder signs in with; who had another is shut out."""
        account_id, email = visit.part("account_id"), visit.form.text("email")
        await act(self._office, visit, lambda books: books.set_account(account_id, email=email))
        return visit.done(f"/accounts/{account_id}", "email-changed")

    async def invite(self, visit: Visit) -> Response:
        """Make an invitation, whose link is shown once."""
        account_id = visit.part("account_id")
        invitation = await act(self._office, visit, lambda books: books.invite_holder(account_id))
        return show_invitation(visit, account_id, invitation, self._base_url)

    async def invitation(self, visit: Visit) -> Response:
        """Show a new invitation's link, until the page is left."""
        account = await act(self._office, visit, lambda books: books.account(visit.part("account_id")))
        link, until = visit.shown("link"), int(visit.shown("until") or 0)
        return visit.page("operators/invitation_shown.html", account=account, link=link, expires_at_ms=until)

    async def leave(self, visit: Visit) -> Response:
        """Forget the link."""
        account = await act(self._office, visit, lambda books: books.account(visit.part("account_id")))
        return visit.leave(f"/accounts/{account.id}")

    async def sign_out(self, visit: Visit) -> Response:
        """End all sessions of the holder."""
        account_id = visit.part("account_id")

        def sign_out(books: Provisioning) -> int:
            return books.sign_out_holder(account_id)

        await act(self._office, visit, sign_out)
        return visit.done(f"/accounts/{account_id}", "holder-signed-out")

    async def _glance(self, visit: Visit) -> AccountGlance:
        account_id, catalogue = visit.part("account_id"), self._office.catalogue
        now_ms = self._office.clock()

        def look(connection: Connection) -> AccountGlance:
            newest = newest_acts(connection, ActFilter(account_id=account_id), limit=NEWEST)
            return AccountGlance(
                overview=overview(connection, account_id, catalogue, now_ms),
                requests=history(connection, account_id, catalogue.zone, limit=NEWEST).entries,
                acts=tuple(act_line(each, visit.formats) for each in newest.acts),
            )

        return await self._office.look(look)


def show_invitation(visit: Visit, account_id: str, invitation: Invitation, base_url: str) -> Response:
    """Lead to the page that shows the link of a new invitation once."""
    link, until = invitation.link(base_url), str(invitation.expires_at_ms)
    return visit.show_once(f"/accounts/{account_id}/invitation", link=link, until=until)
