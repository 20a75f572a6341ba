"""Serve the admin API: let the caller in, read what is asked for, do it, answer."""

from collections.abc import Sequence
from http import HTTPStatus

import structlog
from starlette.requests import Request
from starlette.responses import Response

from tarazu.api.admin.call import Call, Desk
from tarazu.api.admin.caller import admin_caller
from tarazu.api.admin.errors import AdminError, ScopeDetails, refused
from tarazu.api.admin.reading import read_body, read_id, read_query
from tarazu.api.admin.refusals import REFUSED, refusal_of
from tarazu.api.admin.route import Route
from tarazu.api.admin.routes import ROUTES
from tarazu.api.authorization import bearer_text
from tarazu.api.body import BodyReader
from tarazu.api.envelope import json_response, refusal_response
from tarazu.api.head import head_of
from tarazu.api.routing import ExactRoute
from tarazu.domain.admin_tokens import AdminToken, Scope
from tarazu.domain.keys import ADMIN_TOKEN, parse

log = structlog.get_logger()


def admin_routes(root: str, desk: Desk, bodies: BodyReader) -> list[ExactRoute]:
    """Make a route of each path under `root`, for all of its methods."""
    by_path: dict[str, list[Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, []).append(route)
    return [
        ExactRoute(root + path, AdminEndpoint(routes, desk, bodies).serve, methods=[route.method for route in routes])
        for path, routes in by_path.items()
    ]


class AdminEndpoint:
    """One path."""

    def __init__(self, routes: Sequence[Route], desk: Desk, bodies: BodyReader) -> None:
        self._routes = {route.method: route for route in routes}
        self._desk = desk
        self._bodies = bodies

    async def serve(self, request: Request) -> Response:
        """Serve one request."""
        route = self._routes["GET" if request.method == "HEAD" else request.method]
        try:
            return await self._answer(route, request)
        except REFUSED as error:
            return refusal_response(refusal_of(error))

    async def _answer(self, route: Route, request: Request) -> Response:
        call = Call(
            caller=await self._let_in(request, route.scope),
            ids={name: read_id(text) for name, text in request.path_params.items()},
            query=read_query(request, route.query),
            body=None if route.body is None else await read_body(request, self._bodies, type(route.body)),
        )
        reply = await route.handle(self._desk, call)
        return json_response(reply.body, HTTPStatus.CREATED if reply.is_new else HTTPStatus.OK)

    async def _let_in(self, request: Request, needed: Scope) -> AdminToken:
        """Find out who is calling, from a fresh row.

        Raises:
            AdminRefusedError: no good token, or one that does not have the scope.
            BooksUnavailableError: the books cannot be read.
        """
        token = bearer_text(head_of(request.scope))
        address = self._desk.forwarding.origin(request.scope).address
        if token == "":
            raise refused(AdminError.MISSING_TOKEN)
        presented = None if token is None else parse(token, ADMIN_TOKEN)
        caller = None
        if token is not None and presented is not None:
            self._desk.office.meet(token, address)
            now_ms = self._desk.now_ms()
            caller = await self._desk.office.look(lambda connection: admin_caller(presented, connection, now_ms))
            self._desk.office.note(token, None if caller is None else caller.id)
        if token is None or caller is None:
            log.warning("token_refused", reason="no good token", address=address)
            raise refused(AdminError.INVALID_TOKEN)
        if not caller.allows(needed):
            log.warning(
                "token_refused",
                reason=f"without the scope {needed}",
                token_id=caller.id,
                address=address,
            )
            raise refused(AdminError.INSUFFICIENT_SCOPE, f"This needs the scope {needed}.", ScopeDetails(needed))
        return caller
