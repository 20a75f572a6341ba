"""One operation of the admin API: the row from which its route, its checks and its contract are made."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from msgspec import Struct

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.domain.admin_tokens import Scope

ONCE = (HTTPStatus.OK, HTTPStatus.CREATED)
"""Of what is created once for each reference: the first answers 201, the same again 200."""

Handle = Callable[[Desk, Call[Any, Any]], Awaitable[Reply]]


class Route(Struct, frozen=True, kw_only=True):
    """`path` is relative to the admin API's; `errors` are those beside the ones that every operation may answer with.

    With `body` the request has one, read as this example's type. `answer` is an example of the answer, which comes with
    one of the `statuses`. `leads_to` names operations that take its id, and the parameter in which they take it.
    """

    operation_id: str
    tag: str
    method: str
    path: str
    scope: Scope
    summary: str
    description: str
    query: type[Struct] = NoQuery
    body: Struct | None = None
    answer: Struct
    statuses: tuple[HTTPStatus, ...] = (HTTPStatus.OK,)
    errors: tuple[AdminError, ...] = ()
    leads_to: dict[str, str] = {}
    handle: Handle
