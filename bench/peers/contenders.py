"""Who is measured side by side, in the order of the tables, and how nginx and Tarazu are started."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.asking import PLAN, catalogue
from bench.peers import nginx, others, wrk
from bench.peers.contender import MODEL, OPENAI_CHAT, Contender, Start
from bench.peers.process_tree import CORE, OTHER_CORE, starting_on
from tarazu.service.configuration import ServerSettings
from tests.support.service import CHAT, RunningService
from tests.support.stores import PostgresqlStore, SqliteStore, Store, postgresql_server


@contextmanager
def _nginx(folder: Path, backend: str, *, keeps_connections: bool) -> Iterator[Contender]:
    proxy = nginx.bare_proxy(folder / "proxy", backend, keeps_connections=keeps_connections)
    with starting_on({CORE}, proxy) as started:
        yield Contender(url=f"http://{started.address}{OPENAI_CHAT}", pid=started.pid, does="nothing")


@contextmanager
def _tarazu(folder: Path, backend: str, store: Store, does: str) -> Iterator[Contender]:
    database_url = store.new_books(folder)
    sold = catalogue({MODEL: f"http://{backend}/v1"})
    # The one account may have all places: those of a load that has just ended are still taken when the next begins.
    all_places = f"max_in_flight_per_account = {ServerSettings().max_in_flight}"
    service = RunningService(folder, "", catalogue=sold, database_url=database_url, server=all_places)
    with starting_on({CORE}, service):
        yield Contender(
            url=f"http://127.0.0.1:{service.port}{CHAT}",
            pid=service.process.pid,
            does=does,
            headers={"Authorization": service.customer(PLAN).bearer},
            engine=service.engine,
        )


@contextmanager
def _tarazu_on_sqlite(folder: Path, backend: str) -> Iterator[Contender]:
    does = "key, limits, quota and balance; a hold and a charge, which is on disk before the reply"
    with _tarazu(folder, backend, SqliteStore(folder), does) as contender:
        yield contender


@contextmanager
def _tarazu_on_postgresql(folder: Path, backend: str) -> Iterator[Contender]:
    with (
        starting_on({OTHER_CORE}, postgresql_server(folder)) as url,
        _tarazu(folder, backend, PostgresqlStore(url), "the same, by a server on the other core") as contender,
    ):
        yield contender


NGINX = "nginx"
SQLITE, POSTGRESQL = "Tarazu, SQLite", "Tarazu, PostgreSQL"
OTHERS = ("LiteLLM", "Portkey, Bun", "Portkey, Node.js", "TensorZero", "any-llm gateway")
LITELLM, PORTKEY_ON_BUN, PORTKEY_ON_NODE, TENSORZERO, ANY_LLM = OTHERS
CONTENDERS: dict[str, Start] = {
    NGINX: partial(_nginx, keeps_connections=True),
    "nginx, a connection each": partial(_nginx, keeps_connections=False),
    SQLITE: _tarazu_on_sqlite,
    POSTGRESQL: _tarazu_on_postgresql,
    LITELLM: others.litellm,
    PORTKEY_ON_BUN: partial(others.portkey, runtime=str(others.BUN)),
    PORTKEY_ON_NODE: partial(others.portkey, runtime="node"),
    TENSORZERO: others.tensorzero_gateway,
    ANY_LLM: others.any_llm_gateway,
}
PROGRAMS = {
    LITELLM: others.LITELLM,
    PORTKEY_ON_BUN: others.BUN,
    PORTKEY_ON_NODE: others.PORTKEY,
    TENSORZERO: others.TENSORZERO,
    ANY_LLM: others.ANY_LLM,
}
"""What `make bench` installs."""


def missing(names: Collection[str]) -> dict[str, str]:
    """Tell what these need and is not installed, and how it would be."""
    needed = {Path(nginx.COMMAND): "apt-get install nginx-light", Path(wrk.COMMAND): "apt-get install wrk"}
    needed |= {path: "make bench" for name, path in PROGRAMS.items() if name in names}
    return {str(path): how for path, how in needed.items() if not path.exists()}
