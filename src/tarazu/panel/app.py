"""The two applications of pages, each with its routes: the account holders' and the operators'."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from tarazu.api.routing import ExactRoute
from tarazu.panel.doors import DoorPages
from tarazu.panel.downloads import Downloads
from tarazu.panel.forms import LARGE_FORM_BYTES_MAX
from tarazu.panel.frame import SECOND_FACTOR_PATH, Frame
from tarazu.panel.headers import PageHeaders
from tarazu.panel.holders.credits import CreditPages
from tarazu.panel.holders.history import HistoryPages
from tarazu.panel.holders.keys import KeyPages
from tarazu.panel.holders.models import ModelPages
from tarazu.panel.holders.overview import OverviewPages
from tarazu.panel.holders.playground import PlaygroundPages
from tarazu.panel.operators.routes import operator_routes
from tarazu.panel.problems import ProblemPages
from tarazu.panel.second_factor import CODES_PATH, SecondFactorPages
from tarazu.panel.settings import SettingsPages
from tarazu.panel.sites import HOLDERS, OPERATORS
from tarazu.panel.static_files import serve_static
from tarazu.service.provisioning_errors import NotThereError
from tarazu.service.running import Service
from tarazu.store.availability import BooksUnavailableError


def holder_pages(service: Service, base_url: str) -> ASGIApp:
    """Make the account holders' pages, to be mounted at the path of HOLDERS."""
    office = service.people[HOLDERS.kind].office
    frame = Frame.of(HOLDERS, service)
    overview = OverviewPages(office)
    files = Downloads(office, lambda visit: visit.someone.id)
    keys = KeyPages(office, base_url)
    models = ModelPages(office, service.pools, base_url)
    playground = PlaygroundPages(office, service.completions, base_url)
    routes = [
        frame.route("/", get=overview.show),
        frame.route("/usage.csv", get=files.usage),
        frame.route("/keys", get=keys.list),
        frame.route("/keys/new", get=keys.ask, post=keys.create),
        frame.route("/keys/{key_id}", get=keys.show),
        frame.route("/keys/{key_id}/replace", get=keys.show, post=keys.replace),
        frame.route("/keys/{key_id}/shown", get=keys.shown, post=keys.leave),
        frame.route("/keys/{key_id}/edit", get=keys.edit, post=keys.change),
        frame.route("/keys/{key_id}/pause", get=keys.show, post=keys.pause),
        frame.route("/keys/{key_id}/resume", get=keys.show, post=keys.resume),
        frame.route("/keys/{key_id}/revoke", post=keys.revoke),
        frame.route("/models", get=models.list),
        frame.route("/models/{model_id:path}", get=models.show),
        frame.route("/playground", get=playground.show, post=playground.complete, form_bytes_max=LARGE_FORM_BYTES_MAX),
        frame.route("/playground/take-up", post=playground.take_up, form_bytes_max=LARGE_FORM_BYTES_MAX),
        frame.route("/history", get=HistoryPages(office).show),
        frame.route("/history.csv", get=files.requests),
        frame.route("/credits", get=CreditPages(office).show),
        frame.route("/credits.csv", get=files.credits),
    ]
    return _pages(frame, service, routes)


def operator_pages(service: Service, base_url: str) -> ASGIApp:
    """Make the operators' pages, to be mounted at the path of OPERATORS."""
    frame = Frame.of(OPERATORS, service, needs_second_factor=service.operators.need_second_factor)
    return _pages(frame, service, operator_routes(frame, service, base_url))


def _pages(frame: Frame, service: Service, routes: Sequence[BaseRoute]) -> ASGIApp:
    people = service.people[frame.site.kind]
    doors = DoorPages(frame, people.signing_in, people.own_access)
    settings = SettingsPages(frame, people.own_access)
    second_factor = SecondFactorPages(people.own_access)
    problems = ProblemPages(frame)
    app = Starlette(
        routes=[
            *routes,
            frame.route("/settings", get=settings.show),
            frame.route("/settings/name", get=settings.show, post=settings.rename),
            frame.route("/settings/password", get=settings.show, post=settings.change_password),
            frame.route("/settings/sessions/end", get=settings.show, post=settings.end_session),
            frame.route("/settings/sessions/end-others", get=settings.show, post=settings.end_other_sessions),
            frame.route(SECOND_FACTOR_PATH, get=second_factor.show, post=second_factor.set_up, is_guarded=True),
            frame.route(CODES_PATH, get=second_factor.codes, post=second_factor.leave),
            frame.route(f"{SECOND_FACTOR_PATH}/remove", get=second_factor.show, post=second_factor.remove),
            frame.route("/sign-in/code", get=doors.code, post=doors.give_code, is_open=True),
            frame.route("/sign-in", get=doors.door, post=doors.sign_in, is_open=True),
            frame.route("/sign-out", post=doors.sign_out, is_open=True),
            frame.route("/invitation/{token}", get=doors.invitation, post=doors.accept, is_open=True),
            frame.route("/language", post=doors.speak, is_open=True),
            ExactRoute("/static/{name}", serve_static),
        ],
        exception_handlers={
            HTTPException: problems.refused,
            NotThereError: problems.not_there,
            BooksUnavailableError: problems.unavailable,
            Exception: problems.failed,
        },
    )
    app.router.redirect_slashes = False
    return PageHeaders(app, service.forwarding)
