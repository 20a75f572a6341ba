"""The page that says what went wrong, and what to do."""

from http import HTTPStatus

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tarazu.panel.frame import VISIT, Frame
from tarazu.panel.messages import later
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOfficeFullError
from tarazu.service.completion import BOOKS_RETRY_AFTER_S
from tarazu.service.identifiers import REQUEST_PREFIX, current_request


class Problem(Struct, frozen=True):
    """What one status means to whoever reads the page."""

    title: str
    text: str


PROBLEMS = {
    HTTPStatus.BAD_REQUEST: Problem(
        later("This form could not be read"), later("Go back, reload the page, and send the form again.")
    ),
    HTTPStatus.FORBIDDEN: Problem(
        later("This form is not valid any more"),
        later("It was sent from another site, or you have signed in again since. Go back and reload the page."),
    ),
    HTTPStatus.NOT_FOUND: Problem(
        later("There is nothing here"), later("The address is wrong, or what was here is gone.")
    ),
    HTTPStatus.METHOD_NOT_ALLOWED: Problem(
        later("This page cannot be opened this way"), later("It only accepts a form from another page.")
    ),
    HTTPStatus.REQUEST_TIMEOUT: Problem(
        later("The form took too long to arrive"), later("Check your connection, go back, and send it once more.")
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: Problem(
        later("The form is too large"), later("Go back, and send less at once.")
    ),
    HTTPStatus.MISDIRECTED_REQUEST: Problem(
        later("This host name is not known here"),
        later("Open the service at its own address. Its operator can make this name known."),
    ),
    HTTPStatus.INTERNAL_SERVER_ERROR: Problem(
        later("Something went wrong on our side"), later("It has been noted. Try again in a moment.")
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: Problem(
        later("The service is busy"), later("Nothing was changed. Try again in a moment.")
    ),
}
AWAY = Problem(
    later("The service cannot reach its books just now"), later("Nothing was changed. Try again in a moment.")
)
"""In place of `busy`, where the database cannot be used."""


class ProblemPages:
    """Answers in a site's frame where a page could not."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    async def refused(self, request: Request, error: Exception) -> Response:
        """Answer to what has no page, or to a form that is not taken."""
        assert isinstance(error, HTTPException)
        response = self._page(request, error.status_code)
        response.headers.update(error.headers or {})
        return response

    async def not_there(self, request: Request, _error: Exception) -> Response:
        """Answer to an id that leads to nothing, or to what belongs to somebody else."""
        return self._page(request, HTTPStatus.NOT_FOUND)

    async def unavailable(self, request: Request, error: Exception) -> Response:
        """Answer while the books cannot be used, or too many wait for them."""
        problem = None if isinstance(error, BackOfficeFullError) else AWAY
        response = self._page(request, HTTPStatus.SERVICE_UNAVAILABLE, problem)
        response.headers["retry-after"] = str(BOOKS_RETRY_AFTER_S)
        return response

    async def failed(self, request: Request, _error: Exception) -> Response:
        """Answer to what nobody has foreseen; it is logged where every request begins."""
        return self._page(request, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _page(self, request: Request, status: int, problem: Problem | None = None) -> Response:
        visit = request.scope.get(VISIT)
        if not isinstance(visit, Visit):  # before anybody has asked who it is
            visit = self._frame.visit(request)
        problem = problem or PROBLEMS.get(HTTPStatus(status), PROBLEMS[HTTPStatus.INTERNAL_SERVER_ERROR])
        unique = current_request.get("")
        return visit.page(
            "problem.html",
            status,
            problem=problem,
            can_retry=request.method == "GET" and status >= HTTPStatus.INTERNAL_SERVER_ERROR,
            request_id=REQUEST_PREFIX + unique if unique and status >= HTTPStatus.INTERNAL_SERVER_ERROR else None,
        )
