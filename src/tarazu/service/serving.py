"""Run the service: local models and worker processes, from the first to the last moment."""

import errno
import gc
import http.client
import math
import multiprocessing
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from multiprocessing import Pipe
from multiprocessing.connection import Connection
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
from tarazu.service.configuration import Configuration, ServerSettings
from tarazu.service.configuration.listening_host import listening_address
from tarazu.service.configuration.schema import LogSettings
from tarazu.service.control import Ask, Control, Told
from tarazu.service.crowds import Crowds
from tarazu.service.fork_server import ForkServer
from tarazu.service.kernel import forbid_core_dumps
from tarazu.service.link import Link
from tarazu.service.listening import TooFewFilesError, fitted, run_worker
from tarazu.service.log_lines import LineWriter
from tarazu.service.logs import logs_written, trace_of
from tarazu.service.pools import local_paths
from tarazu.service.reloading import Reloader
from tarazu.service.running import Setup
from tarazu.service.stopping import Departure
from tarazu.service.worker import become_worker, end_without_parent
from tarazu.service.workers import Workers

APPLICATION_MODULE = "tarazu.application"
HEADERS_TIMEOUT_S = 10
"""For the head of a request, as for its body."""
CONNECTION_BUFFER_BYTES = 32 * 1024
"""Read ahead of a connection: a longer head than the application takes is refused without it."""
GRACE_S = 10
"""Beyond the longest time-out of a request: after that, a worker that has been told to stop is killed."""
BACKLOG = 2_048
COLLECT_AFTER_OBJECTS = 20_000
"""New objects that may be garbage in cycles; some megabytes."""
PORT_LOCK = f"\0tarazu takes a port/{os.getuid()}"
"""A name of this user's own: a name that another user holds must keep nothing from starting."""
PORT_LOCK_TIMEOUT_S = 5.0
"""Far longer than whoever has it needs it."""
PORT_LOCK_POLL_S = 0.001
OTHER_ADDRESS = "Choose another with --host and --port, or in the [server] section."
READY_TIMEOUT_S = 60
READY_POLL_S = 0.02

log = structlog.get_logger()


class ServingError(Exception):
    """The service cannot start. The message says why and what to do."""


def serve(
    read: Configuration, server: ServerSettings, clock: Clock, *, on_ready: Callable[[ServerSettings], None]
) -> int:
    """Serve until SIGINT or SIGTERM; answer with the exit status. SIGHUP has the configuration read again.

    `read` is the configuration as it stands in the file, `server` what is in force of its [server].
    `on_ready` is called once, when requests are answered and the local models are loaded, with the port as it is.

    Raises:
        ServingError: the port is taken, too few files may be open, or a local model cannot be started.
    """
    with logs_written(read.logs) as lines:
        status = _serve(read, server, clock, on_ready, lines)
        log.info("stopped", status=status)
        return status


def _serve(
    read: Configuration,
    server: ServerSettings,
    clock: Clock,
    on_ready: Callable[[ServerSettings], None],
    lines: LineWriter,
) -> int:
    forbid_core_dumps()
    try:
        server, connections = fitted(server)
    except TooFewFilesError as error:
        raise ServingError(str(error)) from None
    with _hold_port(server) as held, _local_models(read) as local_models:
        if unbounded := read.catalogue.unbounded_models():
            log.warning("replies_unbounded", models=unbounded, advice="give each max_output_tokens")
        if server.workers > (cores := os.cpu_count() or 1):
            log.warning("more_workers_than_cores", workers=server.workers, cores=cores)
        server = replace(server, port=held.getsockname()[1])
        log.info(
            "starting",
            release=version("tarazu"),
            configuration=str(read.path) if read.path else "demo",
            host=server.host,
            port=server.port,
            workers=server.workers,
        )
        granian = _Granian(Setup(replace(read, server=server), clock, local_models.addresses), held, connections)
        reloader = Reloader(read, granian.crew, local_models, on_change=granian.give_time)
        granian.on_hangup = reloader.ask
        ready = threading.Thread(target=_when_ready, args=(server, local_models, on_ready), name="ready", daemon=True)

        def answer(ask: Ask) -> Told:
            if ask.act == "drain":
                return granian.departure.drain(ask.for_s)
            reloaded = reloader.reload()
            return Told(reloaded.done, reloaded.notes, reloaded.problems)

        def begin() -> None:
            lines.start()
            local_models.start()
            reloader.start()
            Control(read.path, server.base_url, answer).start()
            ready.start()

        granian.on_workers_started = begin
        try:
            granian.serve(spawn_target=run_worker, target_loader=partial(_load, connections), wrap_loader=False)
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
    """Granian as we run it: what one of its workers does is its own, the workers' lives are ours (`crew`).

    `held` keeps the port. Granian's own answer to SIGHUP, new workers for old, would cut connections.
    """

    on_hangup: Callable[[], None]
    on_workers_started: Callable[[], None]

    def __init__(self, setup: Setup, held: socket.socket, connections: int) -> None:
        configuration = setup.configuration
        self._log_settings = configuration.logs
        super().__init__(
            APPLICATION_MODULE,
            address=held.getsockname()[0],
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
        )
        self.crew = Workers(configuration.server.workers, self._start_process, setup)
        self.departure = Departure(self.crew, configuration.server.port)
        self._held = held
        self._fork_server: ForkServer | None = None
        self._ends_with_failure = False
        self.give_time(configuration)

    def give_time(self, configuration: Configuration) -> None:
        """Let workers that have been told to stop end the longest request of this configuration."""
        self._stop_timeout_s = _stop_timeout_s(configuration)

    def signal_handler_reload(self, *_: object) -> None:
        """Take note of SIGHUP."""
        self.on_hangup()

    def signal_handler_interrupt(self, *_: object) -> None:
        """Take note of SIGINT or SIGTERM; of a second one too, which wants it done sooner."""
        self.crew.leave()
        self.departure.hear_signal()

    def _spawn_workers(self, spawn_target: Any, target_loader: Any) -> None:
        import_module(APPLICATION_MODULE)
        gc.freeze()  # what all share is not to be copied for the garbage collector's marks
        self._worker_arguments = spawn_target, target_loader
        self._fork_server = ForkServer(self._become_worker, forget=self._held.close)
        try:
            self.crew.start()
            self.on_workers_started()
        except BaseException:
            self._stop_workers()
            raise

    def _serve_loop(self, *_: object) -> None:
        self._ends_with_failure = not self.crew.keep()

    def _stop_workers(self) -> None:
        log.info("stopping", timeout_s=self._stop_timeout_s)
        self.departure.leave()
        self.crew.stop(self._stop_timeout_s)
        if self._fork_server is not None:
            self._fork_server.close()

    def shutdown(self, exit_code: int = 0) -> None:
        """Stop the workers, and end with status 1 where they died faster than starting them again helped."""
        super().shutdown(exit_code or int(self._ends_with_failure))  # type: ignore[no-untyped-call]

    def _start_process(self, index: int) -> tuple[int, "Connection[Any, Any]"]:
        """Have a worker forked; where the fork server is no more, begin a process afresh."""
        if self._fork_server is not None:
            try:
                return self._fork_server.fork(index)
            except TimeoutError as error:
                log.warning("fork_server_late", reason=str(error), instead="this worker starts afresh")
            except ConnectionError as error:
                log.warning("fork_server_lost", reason=str(error), instead="workers start afresh, which takes longer")
                self._fork_server.close()
                self._fork_server = None
        ours, theirs = Pipe()
        with theirs:
            process: Any = self._worker_process("spawn", index, theirs)
            process.start()
        multiprocessing.process._children.discard(process)  # type: ignore[attr-defined]  # noqa: SLF001 - its end is awaited by `crew` alone
        return int(process.pid), ours

    def _become_worker(self, index: int, connection: "Connection[Any, Any]") -> int:
        """Be a worker, in a process that has just been forked; answer with its exit status."""
        return int(self._worker_process("fork", index, connection)._bootstrap())  # noqa: SLF001 - as multiprocessing does

    def _worker_process(self, method: str, index: int, connection: "Connection[Any, Any]") -> Any:
        spawn_target, load = self._worker_arguments
        multiprocessing.set_start_method(method, force=True)
        target = partial(_logged_worker, self._log_settings, spawn_target)
        worker: Any = self._spawn_worker(index, target, partial(load, connection))
        worker.inner.name = f"worker {index + 1}"
        return worker.inner


def _stop_timeout_s(configuration: Configuration) -> int:
    """Tell how long a worker that has been told to stop may take."""
    longest_s = max(model.timeout_s for model in configuration.catalogue.models.values())
    return math.ceil(max(longest_s, HEADERS_TIMEOUT_S)) + GRACE_S


_LOGS: dict[str, Any] = {"handlers": {}, "formatters": {}, "loggers": {}}
"""Granian's lines are left to the root of Python's logging, and so to our log."""


def _logged_worker(logs: LogSettings, target: Callable[..., None], *arguments: Any) -> None:
    """Run a worker process to its end; why it cannot is in the log, and nowhere else."""
    become_worker()  # before its first thread, which is to have its turns as all others
    with logs_written(logs) as lines:
        try:
            lines.start()
            target(*arguments)
        except Exception as error:  # noqa: BLE001 - here the process begins
            log.critical("worker_failed", **trace_of(error))
            sys.exit(1)


def _load(connections: int, connection: "Connection[Any, Any]") -> Any:
    """Make the application; runs in each worker process."""
    link = Link(connection, on_parent_end=lambda: end_without_parent(_stop_timeout_s(setup.configuration)))
    setup: Setup = link.begin()
    server = setup.configuration.server
    crowds = Crowds(
        server.port,
        connections=connections,
        of_address=server.connections_per_address,
        trusted=server.trusted_proxies,
    )
    crowds.start()
    application = import_module(APPLICATION_MODULE).make_application(setup, link, crowds)
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
    try:
        address = listening_address(server.host)
    except LookupError as error:
        raise ServingError(f"Cannot listen: {error}. {OTHER_ADDRESS}") from None
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    holder = socket.socket(family, socket.SOCK_STREAM)
    try:
        with _one_at_a_time():
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # over what a stopped service left behind
            holder.bind((address, server.port))
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError as error:
        holder.close()
        raise ServingError(f"Cannot listen on {server.host}:{server.port}: {error.strerror}. {OTHER_ADDRESS}") from None
    return holder


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let no other service of this user take a port meanwhile: two that bind with SO_REUSEADDR would both get it.

    The lock is a name that Linux gives to one socket at a time, and takes back when its process ends. Where it cannot
    be had, the log says so, and the port is taken all the same.
    """
    until_s = time.monotonic() + PORT_LOCK_TIMEOUT_S
    with socket.socket(socket.AF_UNIX) as lock:
        while True:
            try:
                lock.bind(PORT_LOCK)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() >= until_s:
                    log.warning("port_lock_not_had", reason=error.strerror)
                    break
            time.sleep(PORT_LOCK_POLL_S)
        yield


def _when_ready(server: ServerSettings, local_models: LocalModels, on_ready: Callable[[ServerSettings], None]) -> None:
    """Wait until a worker answers and the local models are loaded, then say so."""
    until_s = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < until_s:
        if _answers(server.reachable_host, server.port):
            log.info("listening", host=server.host, port=server.port, url=server.base_url)
            _wait_for(local_models)
            on_ready(server)
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
