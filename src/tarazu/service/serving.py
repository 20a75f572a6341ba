"""Run the service: local models and worker processes, from the first to the last moment."""

import errno
import gc
import http.client
import math
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import structlog
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer
from msgspec.structs import replace

from tarazu.backends.local import LOAD_TIMEOUT_S, LocalModels
from tarazu.backends.local_model import LocalModelError
from tarazu.domain.calendar import Clock
from tarazu.service.broadcast import Broadcast
from tarazu.service.configuration import Configuration, ServerSettings
from tarazu.service.crowds import Crowds
from tarazu.service.listening import TooFewFilesError, fitted, run_worker
from tarazu.service.logs import configure_logs
from tarazu.service.pools import local_paths
from tarazu.service.reloading import Reloader
from tarazu.service.running import Setup
from tarazu.service.worker import become_worker, signals_held

APPLICATION_MODULE = "tarazu.application"
HEADERS_TIMEOUT_S = 10
"""For the head of a request, as for its body."""
CONNECTION_BUFFER_BYTES = 32 * 1024
"""Read ahead of a connection: a longer head than the application takes is refused without it."""
GRACE_S = 10
"""Beyond the longest time-out of a request: after that, a worker that has been told to stop is killed."""
TELL_AGAIN_S = 1.0
"""How often a worker that has not stopped yet is told to again."""
BACKLOG = 2_048
COLLECT_AFTER_OBJECTS = 20_000
"""New objects that may be garbage in cycles; some megabytes."""
PORT_LOCK = "\0tarazu takes a port"
PORT_LOCK_TIMEOUT_S = 5.0
"""Far longer than whoever has it needs it."""
PORT_LOCK_POLL_S = 0.001
READY_TIMEOUT_S = 60
READY_POLL_S = 0.02

log = structlog.get_logger()


class ServingError(Exception):
    """The service cannot start. The message says why and what to do."""


def serve(read: Configuration, server: ServerSettings, clock: Clock, *, on_ready: Callable[[str], None]) -> int:
    """Serve until SIGINT or SIGTERM; answer with the exit status. SIGHUP has the configuration read again.

    `read` is the configuration as it stands in the file, `server` what is in force of its [server].
    `on_ready` is called once with the base address, when requests are answered and the local models are loaded.

    Raises:
        ServingError: the port is taken, too few files may be open, or a local model cannot be started.
    """
    configure_logs()
    try:
        server, connections = fitted(server)
    except TooFewFilesError as error:
        raise ServingError(str(error)) from None
    with _hold_port(server) as held, _local_models(read) as local_models, closing(Broadcast()) as broadcast:
        server = replace(server, port=held.getsockname()[1])
        setup = Setup(replace(read, server=server), clock, local_models.addresses, broadcast.channel)
        granian = _Granian(setup, connections)
        reloader = Reloader(read, setup, local_models, broadcast, on_change=granian.give_time)
        granian.on_hangup = reloader.ask
        ready = threading.Thread(target=_when_ready, args=(server, local_models, on_ready), name="ready", daemon=True)

        def begin() -> None:
            local_models.start()
            broadcast.start(setup)
            reloader.start()
            ready.start()

        def close_in_fork() -> None:
            held.close()  # or the port would stay taken as long as a worker finishes what it serves
            broadcast.close()  # or a worker would hear itself where the parent is no more

        granian.on_workers_started = begin
        granian.close_in_fork = close_in_fork
        try:
            load = partial(_load, setup, connections)
            granian.serve(spawn_target=run_worker, target_loader=load, wrap_loader=False)
        except SystemExit as exit_:
            return exit_.code if isinstance(exit_.code, int) else 1
    return 0


@contextmanager
def _local_models(configuration: Configuration) -> Iterator[LocalModels]:
    """Have the local models ready to be started, and end their processes afterwards."""
    try:
        local_models = LocalModels(local_paths(configuration.catalogue))
    except LocalModelError as error:
        raise ServingError(str(error)) from None
    try:
        yield local_models
    finally:
        local_models.stop()


class _Granian(MPServer):
    """Granian as we run it. Its own answer to SIGHUP, new workers for old, would cut connections.

    The first workers are forked, with all that is imported: a start takes half as long. No other thread may be there
    yet, which a fork would stop in the middle of anything. Whoever takes a dead worker's place starts afresh.
    """

    on_hangup: Callable[[], None]
    on_workers_started: Callable[[], None]
    close_in_fork: Callable[[], None]
    """Closes what a worker must not keep open of its parent's."""

    def __init__(self, setup: Setup, connections: int) -> None:
        configuration = setup.configuration
        super().__init__(
            APPLICATION_MODULE,
            address=configuration.server.host,
            port=configuration.server.port,
            interface=Interfaces.ASGI,
            loop=Loops.uvloop,  # named, so that an installation without it does not serve by another one in silence
            workers=configuration.server.workers,
            http=HTTPModes.http1,  # to tell HTTP/2 apart granian would wait for its first bytes without a time-out
            http1_settings=HTTP1Settings(
                header_read_timeout=HEADERS_TIMEOUT_S * 1_000, max_buffer_size=CONNECTION_BUFFER_BYTES
            ),
            websockets=False,
            backlog=BACKLOG,
            backpressure=connections,
            log_level=LogLevels.warning,
            log_dictconfig=_LOGS,
            respawn_failed_workers=True,
        )
        self.give_time(configuration)

    def give_time(self, configuration: Configuration) -> None:
        """Let workers that have been told to stop end the longest request of this configuration."""
        self.workers_kill_timeout = _stop_timeout_s(configuration)

    def signal_handler_reload(self, *_: object) -> None:
        """Take note of SIGHUP."""
        self.on_hangup()

    def _spawn_workers(self, spawn_target: Any, target_loader: Any) -> None:
        import_module(APPLICATION_MODULE)
        gc.freeze()  # what all share is not to be copied for the garbage collector's marks
        try:
            self._fork_workers(spawn_target, partial(_load_in_fork, self.close_in_fork, target_loader))
            self.on_workers_started()
        except BaseException:
            self._stop_workers()  # type: ignore[no-untyped-call]
            raise

    def _fork_workers(self, spawn_target: Any, target_loader: Any) -> None:
        assert threading.active_count() == 1, "a fork would stop the others in the middle of anything"
        multiprocessing.set_start_method("fork", force=True)
        try:
            with signals_held():
                for index in range(self.workers):
                    worker: Any = self._spawn_worker(index, spawn_target, target_loader)
                    worker.inner.start()
                    self.wrks.append(worker)
        finally:
            multiprocessing.set_start_method("spawn", force=True)
            for worker in self.wrks:
                worker._watch()  # noqa: SLF001 - in a thread of its own, so not before the last fork

    def _spawn_worker(self, idx: int, target: Any, callback_loader: Any) -> Any:  # type: ignore[override]
        """Make a worker whose end one thread waits for, and who asks about it asks that thread.

        Granian lets two threads wait for the process. The system tells only one of them of the end, and if that one
        is slow to pass it on, the other takes the worker for alive, warns of killing it, and signals a number that
        may be another process by then.
        """
        worker: Any = super()._spawn_worker(idx, target, callback_loader)
        watcher = threading.Thread(target=worker._watcher, name=f"worker {idx + 1}")  # noqa: SLF001
        worker._watch = watcher.start  # noqa: SLF001
        worker.join = partial(self._join, watcher)
        worker.is_alive = watcher.is_alive
        return worker

    def _join(self, watcher: threading.Thread, timeout: float | None = None) -> None:
        """Wait for a worker's end. All that have been told to stop are told again and again meanwhile.

        A signal that comes while granian has its event loop paused, between the application's start and the first
        request, is forgotten by uvloop until the next one. A worker that has missed it takes requests while another
        one is waited for, which may end a long one.
        """
        workers: list[Any] = self.wrks
        until_s = math.inf if timeout is None else time.monotonic() + timeout
        while watcher.is_alive() and (left_s := until_s - time.monotonic()) > 0:
            watcher.join(min(left_s, TELL_AGAIN_S))
            for worker in workers:
                if worker.is_alive() and worker.interrupt_by_parent:
                    worker.terminate()


def _stop_timeout_s(configuration: Configuration) -> int:
    """Tell how long a worker that has been told to stop may take."""
    longest_s = max(model.timeout_s for model in configuration.catalogue.models.values())
    return math.ceil(max(longest_s, HEADERS_TIMEOUT_S)) + GRACE_S


_LOGS = {
    "handlers": {
        "console": {"formatter": "generic", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"},
        "access": {"formatter": "access", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"},
    },
}


def _load_in_fork(close_in_fork: Callable[[], None], load: Callable[[], Any]) -> Any:
    close_in_fork()
    return load()


def _load(setup: Setup, connections: int) -> Any:
    """Make the application; runs in each worker process."""
    become_worker(_stop_timeout_s(setup.configuration))
    configure_logs()
    server = setup.configuration.server
    Crowds(
        server.port,
        connections=connections,
        of_address=server.connections_per_address,
        trusted=server.trusted_proxies,
    ).start()
    application = import_module(APPLICATION_MODULE).make_application(setup)
    _collect_seldom()
    return application


def _collect_seldom() -> None:
    """Let the garbage collector pass by all that stays until the end, and look at the rest less often.

    Requests leave few cycles behind, and its usual pace, every 700 new objects, took a tenth of a busy worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER_OBJECTS)


def _hold_port(server: ServerSettings) -> socket.socket:
    """Take the address for this service alone, port 0 being any free one, until the socket is closed.

    The workers share the port by SO_REUSEPORT, and so would a second `serve`, in silence. Therefore the first bind
    shares with nobody; only then are the workers let in. This socket itself never listens.
    """
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    holder = socket.socket(family, socket.SOCK_STREAM)
    try:
        with _one_at_a_time():
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # over what a stopped service left behind
            holder.bind((server.host, server.port))
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError as error:
        holder.close()
        raise ServingError(
            f"Cannot listen on {server.host}:{server.port}: {error.strerror}. "
            "Choose another with --host and --port, or in the [server] section."
        ) from None
    return holder


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let no other service of this machine take a port meanwhile: two that bind with SO_REUSEADDR would both get it.

    The lock is a name that Linux gives to one socket at a time, and takes back when its process ends.
    """
    until_s = time.monotonic() + PORT_LOCK_TIMEOUT_S
    with socket.socket(socket.AF_UNIX) as lock:
        while True:
            try:
                lock.bind(PORT_LOCK)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() >= until_s:
                    raise
                time.sleep(PORT_LOCK_POLL_S)
            else:
                break
        yield


def _when_ready(server: ServerSettings, local_models: LocalModels, on_ready: Callable[[str], None]) -> None:
    """Wait until a worker answers and the local models are loaded, then say so."""
    until_s = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < until_s:
        if _answers(server.reachable_host, server.port):
            _wait_for(local_models)
            on_ready(server.base_url)
            return
        time.sleep(READY_POLL_S)
    log.error("not_ready", waited_s=READY_TIMEOUT_S)


def _wait_for(local_models: LocalModels) -> None:
    try:
        local_models.wait_ready(LOAD_TIMEOUT_S)
    except LocalModelError as error:
        log.error("local_model_not_ready", reason=str(error))  # noqa: TRY400 - the other models are served


def _answers(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=1)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
