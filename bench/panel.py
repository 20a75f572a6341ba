"""Time what the pages read in books of a million requests, against the same pages in books of a thousand.

    python -m bench.panel
    python -m bench.panel --requests 100000

The million are once of one account, and once of 10,000. All books are looked at in turn, several times over, so that
what else the machine does meets all alike. Before that each is audited: a difference ends the run. At the end a holder
signs in to a service on each of them, and opens the same pages over HTTP, one after the other.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from bench import books
from bench.arguments import parser_of
from bench.balance import assert_balanced
from bench.figures import machine, percentile, table
from tarazu.domain.calendar import iso_time
from tarazu.service.reports import HistoryFilter, history, history_of_one, key_list, overview
from tarazu.service.shop_report import shop_report
from tarazu.store.engine import open_engine, transaction
from tarazu.store.keys import SoughtKeys
from tests.support.service import RunningService
from tests.support.set_clock import SetClock
from tests.support.stores import PostgresqlStore, SqliteStore, Store, postgresql_server
from tests.support.values import make_catalogue, make_plan
from tests.support.visitor import PASSWORD, Visitor

Cell = tuple[str, str, str]
"""A page, a store, and the shape of its books."""

CATALOGUE = make_catalogue(plans=[make_plan("bench", 10**9)])
ZONE = CATALOGUE.zone
ACCOUNT = books.account_id(0)
FIRST_MONTH = HistoryFilter(first_day="2026-04-01", last_day="2026-04-30")
NOW_MS = books.Size().end_ms - 1
"""All books end at the same instant."""


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured: each page `rounds` times, in small books, and in large ones of one or many accounts."""

    small: int = 1_000
    large: int = 1_000_000
    accounts: int = 10_000
    rounds: int = 100

    def shapes(self) -> dict[str, books.Size]:
        """Name the books, the small ones first."""
        of_small = books.Size(requests=self.small, accounts=1)
        of_one = replace(of_small, requests=self.large)
        return {
            f"{self.small:,} requests": of_small,
            f"{self.large:,} of one account": of_one,
            f"{self.large:,} of {self.accounts:,} accounts": replace(of_one, accounts=self.accounts),
        }


def _newest_id(connection: Connection) -> str:
    return history(connection, ACCOUNT, ZONE, limit=1).entries[0].id


PAGES: Mapping[str, Callable[[Connection], object]] = {
    "overview": lambda connection: overview(connection, ACCOUNT, CATALOGUE, NOW_MS),
    "history": lambda connection: history(connection, ACCOUNT, ZONE),
    "history of the first month": lambda connection: history(connection, ACCOUNT, ZONE, sought=FIRST_MONTH),
    "one request": lambda connection: history_of_one(connection, ACCOUNT, _newest_id(connection)),
    "keys": lambda connection: key_list(connection, ACCOUNT, ZONE, NOW_MS, SoughtKeys()),
    "the shop at a glance": lambda connection: shop_report(connection, ZONE, NOW_MS),
}
HTTP_PAGES = {"overview": "/panel/", "history": "/panel/history", "keys": "/panel/keys"}
NO_BACKEND = "http://127.0.0.1:9"
"""No page asks a model server."""


def run(stores: Mapping[str, Store], folder: Path, size: Size) -> str:
    """Measure all pages; answer with the report.

    Raises:
        BooksDifferError: some books do not balance.
    """
    shapes = size.shapes()
    took_s: dict[Cell, list[float]] = {}
    over_http_s: dict[Cell, list[float]] = {}
    with ExitStack() as stack:
        engines: dict[tuple[str, str], Engine] = {}
        for number, (name, shape) in enumerate(product(stores, shapes)):
            engine = _filled(stores[name], folder / str(number), shapes[shape])
            engines[name, shape] = engine
            stack.callback(engine.dispose)
        for _ in range(size.rounds + 1):  # the first of them makes the statements, and does not count
            for page, (name, shape) in product(PAGES, engines):
                took_s.setdefault((page, name, shape), []).append(_measure(engines[name, shape], PAGES[page]))
        for number, (name, shape) in enumerate(engines):
            visitor = stack.enter_context(_signed_in(engines[name, shape], folder / str(number)))
            for _, page in product(range(size.rounds + 1), HTTP_PAGES):
                over_http_s.setdefault((page, name, shape), []).append(_ask(visitor, HTTP_PAGES[page]))
    conditions = f"{machine()}. Each page {size.rounds} times. The machine's load at the end: {os.getloadavg()[1]:.1f}."
    read = _table(PAGES, took_s, list(stores), list(shapes))
    asked = _table(HTTP_PAGES, over_http_s, list(stores), list(shapes))
    return f"{conditions}\n\n{read}\n\nOver HTTP, by one holder who is signed in:\n\n{asked}"


def _filled(store: Store, folder: Path, size: books.Size) -> Engine:
    folder.mkdir()
    engine = open_engine(store.new_books(folder))
    books.fill(engine, size)
    assert_balanced(engine)
    return engine


def _measure(engine: Engine, page: Callable[[Connection], object]) -> float:
    """Look at a page as the back office does, in a transaction of its own."""
    began_s = time.perf_counter()
    with transaction(engine, read_only=True) as connection:
        page(connection)
    return time.perf_counter() - began_s


@contextmanager
def _signed_in(engine: Engine, folder: Path) -> Iterator[Visitor]:
    """Run a service on the books, at the instant at which they end, and sign the holder of ACCOUNT in."""
    clock = SetClock(folder)
    clock.set(iso_time(NOW_MS))
    url = engine.url.set(drivername=engine.dialect.name).render_as_string(hide_password=False)
    with RunningService(folder, NO_BACKEND, database_url=url, environ=clock.environ, clock=clock) as service:
        service.provisioning.set_account(ACCOUNT, email="holder@example.com")
        visitor = Visitor(service)
        path = f"/panel/invitation/{service.provisioning.invite_holder(ACCOUNT).token}"
        visitor.get(path)
        visitor.follow(visitor.send(path, password=PASSWORD))
        yield visitor


def _ask(visitor: Visitor, path: str) -> float:
    """Open a page, over a connection of its own."""
    began_s = time.perf_counter()
    page = visitor.get(path)
    took_s = time.perf_counter() - began_s
    assert page.status == HTTPStatus.OK, page
    return took_s


def _table(
    pages: Iterable[str], took_s: Mapping[Cell, Sequence[float]], stores: Sequence[str], shapes: Sequence[str]
) -> str:
    """Make a table of what was measured; the first of each cell made the statements, and does not count."""
    columns = [f"{shape}: {figure}" for shape in shapes for figure in ("p50 ms", "p99 ms")]
    head = ("page", "store", *columns, "one account / small", "many accounts / small")

    def rows() -> Iterator[Sequence[str]]:
        for page, store in product(pages, stores):
            of_shapes = [took_s[page, store, shape][1:] for shape in shapes]
            small_s, *large_s = (percentile(taken, 50) for taken in of_shapes)
            figures = [f"{percentile(taken, at) * 1_000:.1f}" for taken in of_shapes for at in (50, 99)]
            yield page, store, *figures, *(f"{each_s / small_s:.1f}" for each_s in large_s)

    return table(head, rows())


def main() -> None:
    """Measure as the arguments say; print the report."""
    parser = parser_of("bench.panel", __doc__)
    parser.add_argument("--requests", type=int, default=Size().large)
    parser.add_argument("--rounds", type=int, default=Size().rounds)
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="tarazu-bench-") as name, postgresql_server(Path(name)) as url:
        folder = Path(name)
        stores: dict[str, Store] = {"sqlite": SqliteStore(folder), "postgresql": PostgresqlStore(url)}
        print(run(stores, folder, Size(large=arguments.requests, rounds=arguments.rounds)))


if __name__ == "__main__":
    main()
