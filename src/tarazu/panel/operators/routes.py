"""The routes of the operators' pages: what shows each, and what takes its forms."""

from starlette.routing import BaseRoute

from tarazu.panel.downloads import Downloads
from tarazu.panel.frame import Frame
from tarazu.panel.operators.account import AccountPages
from tarazu.panel.operators.account_credits import AccountCreditsPages
from tarazu.panel.operators.account_keys import AccountKeysPages
from tarazu.panel.operators.account_requests import AccountRequestsPages
from tarazu.panel.operators.accounts import AccountsPages
from tarazu.panel.operators.audit import AuditPages
from tarazu.panel.operators.catalogue import CataloguePages
from tarazu.panel.operators.intake import IntakePages
from tarazu.panel.operators.shop import ShopPages
from tarazu.panel.operators.trail import TrailPages
from tarazu.panel.sites import OPERATORS
from tarazu.service.running import Service


def operator_routes(frame: Frame, service: Service, base_url: str) -> list[BaseRoute]:
    """List them. What takes a form can be asked for too, since a browser may load its answer again."""
    office = service.people[OPERATORS.kind].office
    accounts = AccountsPages(office, base_url)
    account = AccountPages(office, base_url)
    credits_ = AccountCreditsPages(office)
    keys = AccountKeysPages(office)
    intake = IntakePages(office)
    trail = TrailPages(office)
    audit = AuditPages(office, service.auditor)
    files = Downloads(office, lambda visit: visit.part("account_id"), with_who=True)
    one = "/accounts/{account_id}"
    key = f"{one}/keys/{{key_id}}"
    return [
        frame.route("/", get=ShopPages(office).show),
        frame.route("/accounts", get=accounts.list),
        frame.route("/accounts.csv", get=accounts.download),
        frame.route("/accounts/new", get=accounts.ask, post=accounts.create),
        frame.route("/accounts/new/invited", get=accounts.ask, post=accounts.create_and_invite, is_guarded=True),
        frame.route(one, get=account.show),
        frame.route(f"{one}/name", get=account.show, post=account.rename),
        frame.route(f"{one}/terms", get=account.show, post=account.change_plan, is_guarded=True),
        frame.route(f"{one}/status", get=account.show, post=account.change_status, is_guarded=True),
        frame.route(f"{one}/email", get=account.show, post=account.change_email, is_guarded=True),
        frame.route(f"{one}/invite", get=account.show, post=account.invite, is_guarded=True),
        frame.route(f"{one}/invitation", get=account.invitation, post=account.leave),
        frame.route(f"{one}/sign-out", get=account.show, post=account.sign_out),
        frame.route(f"{one}/credits", get=credits_.show),
        frame.route(f"{one}/credits/add", get=credits_.show, post=credits_.add, is_guarded=True),
        frame.route(f"{one}/credits/correct", get=credits_.show, post=credits_.correct, is_guarded=True),
        frame.route(f"{one}/keys", get=keys.list),
        frame.route(f"{one}/keys/new", get=keys.ask, post=keys.create, is_guarded=True),
        frame.route(key, get=keys.show),
        frame.route(f"{key}/replace", get=keys.show, post=keys.replace, is_guarded=True),
        frame.route(f"{key}/shown", get=keys.shown, post=keys.leave),
        frame.route(f"{key}/edit", get=keys.edit, post=keys.change),
        frame.route(f"{key}/pause", get=keys.show, post=keys.pause),
        frame.route(f"{key}/resume", get=keys.show, post=keys.resume),
        frame.route(f"{key}/revoke", get=keys.show, post=keys.revoke),
        frame.route(f"{one}/trail", get=trail.of_account),
        frame.route(f"{one}/trail.csv", get=trail.download_of_account),
        frame.route(f"{one}/requests", get=AccountRequestsPages(office).show),
        frame.route(f"{one}/requests.csv", get=files.requests),
        frame.route(f"{one}/credits.csv", get=files.credits),
        frame.route(f"{one}/usage.csv", get=files.usage),
        frame.route("/intake", get=intake.show),
        frame.route("/intake/stop", get=intake.show, post=intake.stop),
        frame.route("/intake/resume", get=intake.show, post=intake.resume),
        frame.route("/catalogue", get=CataloguePages(office, service.configuration_path, service.environ).show),
        frame.route("/audit", get=audit.show, post=audit.run),
        frame.route("/trail", get=trail.show),
        frame.route("/trail.csv", get=trail.download),
    ]
