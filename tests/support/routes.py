"""The route table of the whole application, the pages' included."""

import asyncio
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Route

from tarazu.api.head import EarlyAnswers, Heads
from tarazu.api.request_id import RequestIds
from tarazu.api.routing import ShortCut
from tarazu.application import make_application
from tarazu.backends.local import LocalAddress
from tarazu.cli.clock import system_clock
from tarazu.panel.headers import PageHeaders
from tarazu.service.books import make_books
from tarazu.service.configuration import load
from tarazu.service.pools import LocalAddresses
from tarazu.service.running import Setup


class Place(Struct, frozen=True, order=True):
    """One method of one route; `path` is whole, with its parameters in braces."""

    path: str
    method: str


@cache
def all_places() -> tuple[Place, ...]:
    """List the routes of an application that runs on the demo catalogue, with books in the current folder."""
    return asyncio.run(_all_places())


async def _all_places() -> tuple[Place, ...]:
    starlette = routed()
    async with starlette.router.lifespan_context(starlette):
        return tuple(sorted(_places(starlette.routes, "")))


def routed() -> Starlette:
    """Make an application on the demo catalogue, and answer with what has its routes; call it in an event loop."""
    addresses: LocalAddresses = {None: LocalAddress("http://127.0.0.1:9/v1", "k")}
    configuration = load(environ={})
    make_books(configuration.database_url)
    application = make_application(Setup(configuration, system_clock, addresses))
    assert isinstance(application, RequestIds)
    heads = application._app
    assert isinstance(heads, Heads)
    short_cut = heads._app
    assert isinstance(short_cut, ShortCut)
    early_answers = short_cut.app
    assert isinstance(early_answers, EarlyAnswers)
    starlette = early_answers._app
    assert isinstance(starlette, Starlette)
    return starlette


def _places(routes: Iterable[BaseRoute], above: str) -> Iterator[Place]:
    for route in routes:
        if isinstance(route, Mount):
            pages = route.app
            assert isinstance(pages, PageHeaders)
            inner = pages._app
            assert isinstance(inner, Starlette)
            yield from _places(inner.routes, above + route.path)
        else:
            assert isinstance(route, Route)
            path = above + route.path.replace(":path}", "}")
            yield from (Place(path, method) for method in (route.methods or set()) - {"HEAD"})
