"""Who is measured side by side: how each is started, where it is asked and with what, and what it does per request."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Engine

from bench.asking import PLAN, catalogue, conversation
from bench.peers import nginx, wrk
from bench.peers.process_tree import CORE, OTHER_CORE, starting_on
from bench.peers.servers import running
from tests.support.service import CHAT, RunningService, free_port
from tests.support.stores import PostgresqlStore, SqliteStore, Store, postgresql_server

MODEL = "bench"
"""What all of them are asked for."""
OPENAI_CHAT = "/v1/chat/completions"
BODY = conversation(MODEL)
ROOT = Path(__file__).parents[2]
LITELLM = ROOT / ".bench" / "litellm" / "bin" / "litellm"
PORTKEY = ROOT / "bench" / "npm" / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
_KEY = "sk-bench"
_LITELLM_CONFIGURATION = """
model_list:
  - model_name: MODEL
    litellm_params: {model: openai/MODEL, api_base: "http://BACKEND/v1", api_key: none}
general_settings: {master_key: KEY, disable_spend_logs: true}
litellm_settings: {telemetry: false, set_verbose: false, num_retries: 0}
"""


class Contender(Struct, frozen=True, kw_only=True):
    """Who answers at `url` when asked with these headers, in the processes that come from `pid`.

    `does` is what it does for a request beside passing it on. `engine` leads to its books, where these can be audited.
    """

    url: str
    pid: int
    does: str
    headers: Mapping[str, str] = {}
    engine: Engine | None = None


Start = Callable[[Path, str], AbstractContextManager[Contender]]
"""Start a contender on its core, with a folder and the backend's host and port; it runs until the block ends."""


@contextmanager
def _nginx(folder: Path, backend: str, *, keeps_connections: bool) -> Iterator[Contender]:
    proxy = nginx.bare_proxy(folder / "proxy", backend, keeps_connections=keeps_connections)
    with starting_on({CORE}, proxy) as started:
        yield Contender(url=f"http://{started.address}{OPENAI_CHAT}", pid=started.pid, does="nothing")


@contextmanager
def _tarazu(folder: Path, backend: str, store: Store, does: str) -> Iterator[Contender]:
    database_url = store.new_books(folder)
    sold = catalogue({MODEL: f"http://{backend}/v1"})
    service = RunningService(folder, "", catalogue=sold, database_url=database_url)
    with starting_on({CORE}, service):
        yield Contender(
            url=f"http://127.0.0.1:{service.port}{CHAT}",
            pid=service.process.pid,
            does=does,
            headers={"Authorization": f"Bearer {service.customer(PLAN).secret}"},
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


@contextmanager
def _litellm(folder: Path, backend: str) -> Iterator[Contender]:
    port = free_port()
    configuration = _LITELLM_CONFIGURATION.replace("MODEL", MODEL).replace("BACKEND", backend).replace("KEY", _KEY)
    (folder / "config.yaml").write_text(configuration, "utf-8")
    command = [
        str(LITELLM),
        "--config",
        "config.yaml",
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        "--num_workers",
        "1",
    ]
    environ = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
    server = running(command, port, log=folder / "output.log", environ=environ)
    with starting_on({CORE}, server) as process:
        yield Contender(
            url=f"http://127.0.0.1:{port}{OPENAI_CHAT}",
            pid=process.pid,
            does="one master key; the cost in memory, nothing kept (without a database)",
            headers={"Authorization": f"Bearer {_KEY}"},
        )


@contextmanager
def _portkey(folder: Path, backend: str) -> Iterator[Contender]:
    port = free_port()
    command = ["node", str(PORTKEY), "--headless", f"--port={port}"]
    environ = {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": backend.partition(":")[0]}
    with starting_on({CORE}, running(command, port, log=folder / "output.log", environ=environ)) as process:
        headers = {
            "Authorization": f"Bearer {_KEY}",
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": f"http://{backend}/v1",
        }
        yield Contender(
            url=f"http://127.0.0.1:{port}{OPENAI_CHAT}",
            pid=process.pid,
            does="no key of its own, no limit, nothing counted",
            headers=headers,
        )


NGINX = "nginx"
SQLITE, POSTGRESQL = "Tarazu, SQLite", "Tarazu, PostgreSQL"
OTHERS = ("LiteLLM", "Portkey")
CONTENDERS: dict[str, Start] = {
    NGINX: partial(_nginx, keeps_connections=True),
    "nginx, a connection each": partial(_nginx, keeps_connections=False),
    SQLITE: _tarazu_on_sqlite,
    POSTGRESQL: _tarazu_on_postgresql,
    "LiteLLM": _litellm,
    "Portkey": _portkey,
}


def missing(names: Collection[str]) -> dict[str, str]:
    """Tell what these need and is not installed, and how it would be."""
    needed = {Path(nginx.COMMAND): "apt-get install nginx-light", Path(wrk.COMMAND): "apt-get install wrk"}
    if "LiteLLM" in names:
        needed[LITELLM] = "make bench"
    if "Portkey" in names:
        needed[PORTKEY] = "make bench"
    return {str(path): how for path, how in needed.items() if not path.exists()}
