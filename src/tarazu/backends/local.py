"""Start the process of each local model, watch it, start it again when it dies, and end it with this one."""

import http.client
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import IO

import msgspec
import structlog
from msgspec import Struct

from tarazu.backends.local_libraries import SEARCH_PATH, library_path
from tarazu.backends.local_model import LocalModelError, find_model
from tarazu.backends.local_server import HEALTH_PATH, HOST, Answer, Order

COMMAND = (sys.executable, "-P", "-m", "tarazu.backends.local_server")
LOAD_TIMEOUT_S = 600
"""A large model from a slow disk takes minutes."""
PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 30.0
"""Between the end of a process and its next start: doubled each time, from the minimum on after STABLE_S of work."""
STABLE_S = 60.0
PROBE_PAUSE_S = 5.0
PROBE_TIMEOUT_S = 5.0
SILENT_PROBES = 3
"""So many probes in a row that are not answered, and a process hangs: that is 30 s after its last answer."""
STOP_TIMEOUT_S = 5.0
API_KEY_BYTES = 32
PROBLEM_CHARACTERS_MAX = 500
MESSAGES_BYTES_MAX = 16_384
LOAD_ERROR = "error loading model: "
"""After this llama.cpp says why."""

ENVIRONMENT = frozenset({"HOME", "LANG", "PATH", "TMPDIR", "TZ", "VIRTUAL_ENV"})
ENVIRONMENT_PREFIXES = ("CUDA_", "DYLD_", "GGML_", "LC_", "LD_", "OMP_", "PYTHON")
"""What a process gets of the environment, which also holds the keys of other backends."""

log = structlog.get_logger()


class LocalAddress(Struct, frozen=True):
    """Where a local model is asked: `url` up to and with its `/v1`, and the key that it asks for."""

    url: str
    api_key: str

    def __repr__(self) -> str:
        """Name the address without its key."""
        return f"LocalAddress({self.url})"

    @property
    def headers(self) -> dict[str, str]:
        """Make the headers that a request carries."""
        return {"authorization": f"Bearer {self.api_key}"}


class State(StrEnum):
    """What a local model's process is doing."""

    NEW = "new"
    LOADING = "loading"
    READY = "ready"
    PAUSED = "paused"
    STOPPED = "stopped"


class LocalModel:
    """One local model, in a process of its own. `address` stays over all restarts, so it can be handed out at once."""

    def __init__(self, name: str, order: Order, reservation: socket.socket) -> None:
        self.address = LocalAddress(f"http://{HOST}:{order.port}/v1", order.api_key)
        self._name = name
        self._order = order
        self._reservation = reservation
        self._changed = threading.Condition()
        self._state = State.NEW
        self._problem: str | None = None
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        # Linux ends the process with the thread that started it, so that thread stays as long as the process.
        self._thread = threading.Thread(target=self._watch, name=f"local model {name}", daemon=True)

    def __repr__(self) -> str:
        return f"<LocalModel {self._name}, {self._state}, process {self.process_id}>"

    @property
    def state(self) -> State:
        """What the process is doing now."""
        return self._state

    @property
    def process_id(self) -> int | None:
        """The process of this moment, if there is one; another after each restart."""
        process = self._process
        return None if process is None else process.pid

    def start(self) -> None:
        """Begin to load the model, unless that has begun. Returns at once."""
        if self._thread.ident is None:
            self._thread.start()

    def wait_ready(self, timeout_s: float) -> None:
        """Return when the model can be asked.

        Raises:
            LocalModelError: it could not be loaded, or not in time, or it was stopped. Unless that is so, it is tried
                again all the same.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._state in {State.READY, State.STOPPED} or self._problem is not None, timeout_s
            )
            if self._state is not State.READY:
                stopped = self._state is State.STOPPED
                problem = "it was stopped" if stopped else self._problem or f"it is not loaded after {timeout_s:g} s"
                raise LocalModelError(f"The model {self._order.path} cannot be started: {problem}.")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the process, whatever it is doing, and wait until it is gone, at most `timeout_s`."""
        with self._changed:
            self._stopping.set()
            if self._process is not None:
                self._process.kill()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        self._reservation.close()
        self._become(State.STOPPED)

    def _watch(self) -> None:
        pause_s = PAUSE_MIN_S
        while not self._stopping.is_set():
            began_s = time.monotonic()
            try:
                problem = self._run()
            except Exception as error:  # noqa: BLE001 - whatever it was, the next start may do better
                problem = f"{type(error).__name__}: {error}"
            if self._stopping.is_set():
                return
            if time.monotonic() - began_s >= STABLE_S:
                pause_s = PAUSE_MIN_S
            log.warning("local_model_ended", model=self._name, problem=problem, restart_in_s=pause_s)
            self._become(State.PAUSED, problem=problem if self._state is State.LOADING else None)
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _run(self) -> str:
        """Run the process once, to its end; answer with the reason of that."""
        self._become(State.LOADING, problem=self._problem)
        with tempfile.TemporaryFile() as messages, self._begin(messages) as process:
            try:
                problem = _load(process, self._order, messages)
                if problem is None:
                    self._become(State.READY)
                    log.info("local_model_ready", model=self._name)
                    self._watch_over(process)
            finally:
                process.kill()
        _forget(process.pid)
        with self._changed:
            self._process = None
        return problem or _ending(process)

    def _watch_over(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait for the process's end, and bring it about where the process answers nothing any more."""
        end = select.poll()
        end.register(process.stdin or -1, 0)  # that nobody can read what is written there is always told
        silent = 0
        while not end.poll(PROBE_PAUSE_S * 1_000):
            silent = 0 if _answers(self.address) else silent + 1
            if silent == SILENT_PROBES:
                log.error("local_model_hangs", model=self._name, model_pid=process.pid)
                process.kill()
        process.wait()

    def _begin(self, messages: IO[bytes]) -> "subprocess.Popen[bytes]":
        with self._changed:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                COMMAND, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages, env=_environment()
            )
            if self._stopping.is_set():
                self._process.kill()
            return self._process

    def _become(self, state: State, *, problem: str | None = None) -> None:
        with self._changed:
            self._state = state
            self._problem = problem
            self._changed.notify_all()


class LocalModels:
    """The local models of a configuration: one process for each file, also where several backends name it."""

    def __init__(self, paths: Iterable[str | None]) -> None:
        """Check the files (None: the embedded model's) and reserve an address for each. No process is started yet.

        Raises:
            LocalModelError: a file is missing or no model, or a package is not installed.
        """
        self._models: dict[tuple[Path, bool], LocalModel] = {}
        self.addresses: dict[str | None, LocalAddress] = {}
        self._make(paths)

    def __repr__(self) -> str:
        return f"<LocalModels {list(self)}>"

    def __iter__(self) -> Iterator[LocalModel]:
        """Go through the models, each once."""
        return iter(self._models.values())

    def start(self) -> None:
        """Begin to load the models. Returns at once."""
        for model in self:
            model.start()

    def add(self, paths: Iterable[str | None]) -> None:
        """Begin to load the models of these paths too, those that are not there yet.

        Raises:
            LocalModelError: as when they are made; then none is added.
        """
        self._make(paths)
        self.start()

    def keep(self, paths: Iterable[str | None]) -> None:
        """End the processes of all models but those of these paths."""
        kept = {path: self.addresses[path] for path in paths}
        for which, model in list(self._models.items()):
            if model.address not in kept.values():
                del self._models[which]
                model.stop()
        self.addresses = kept

    def wait_ready(self, timeout_s: float) -> None:
        """Return when all models can be asked.

        Raises:
            LocalModelError: one could not be loaded, or not in time.
        """
        until_s = time.monotonic() + timeout_s
        for model in self:
            model.wait_ready(max(until_s - time.monotonic(), 0))

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End all processes."""
        until_s = time.monotonic() + timeout_s
        for model in self:
            model.stop(max(until_s - time.monotonic(), 0))

    def _make(self, paths: Iterable[str | None]) -> None:
        files = {path: find_model(path) for path in paths}
        for path, file in files.items():
            which = (file.resolve(), path is None)
            if which not in self._models:
                self._models[which] = _make_model(file, embedded=path is None)
            self.addresses[path] = self._models[which].address


def _make_model(file: Path, *, embedded: bool) -> LocalModel:
    reservation = _reserve_port()
    order = Order(
        path=str(file.absolute()),
        port=reservation.getsockname()[1],
        api_key=secrets.token_urlsafe(API_KEY_BYTES),
        embedded=embedded,
    )
    return LocalModel("embedded" if embedded else order.path, order, reservation)


def _reserve_port() -> socket.socket:
    """Keep a free port: bound here without ever listening, shared with the model's process, given to nobody else."""
    reservation = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reservation.bind((HOST, 0))
    return reservation


def _forget(process_id: int) -> None:
    """Remove what the OpenMP library of cmeel-libomp leaves in shared memory where its process has been killed."""
    with suppress(OSError):
        Path(f"/dev/shm/__KMP_REGISTERED_LIB_{process_id}_{os.getuid()}").unlink()  # noqa: S108 - its own name


def _environment() -> dict[str, str]:
    passed_on = {
        name: value
        for name, value in os.environ.items()
        if name in ENVIRONMENT or name.startswith(ENVIRONMENT_PREFIXES)
    }
    if (path := library_path()) is not None:
        passed_on[SEARCH_PATH] = path
    # Threads that wait for each other must sleep. Spinning, they take the cores from the API and from one another:
    # with two other busy processes on two cores it made the model 6 to 25 times slower.
    return {"OMP_WAIT_POLICY": "passive", **passed_on}


def _load(process: "subprocess.Popen[bytes]", order: Order, messages: IO[bytes]) -> str | None:
    """Have the process load the model; answer with None when it has, otherwise with the reason."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(msgspec.json.encode(order) + b"\n")
    answered = select.poll()
    answered.register(process.stdout, select.POLLIN)
    if not answered.poll(LOAD_TIMEOUT_S * 1_000):
        return f"it is not loaded after {LOAD_TIMEOUT_S} s"
    line = process.stdout.readline()
    if line:
        problem = msgspec.json.decode(line, type=Answer).problem
        return problem and (_first_error(messages) or problem)
    process.wait()
    return f"{_ending(process)} while loading it; {_first_error(messages) or 'it left no message'}"


def _answers(address: LocalAddress) -> bool:
    """Ask whether the model is well; whatever is answered, the process does not hang."""
    connection = http.client.HTTPConnection(address.url.split("/")[2], timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", f"/v1{HEALTH_PATH}", headers=address.headers)
        connection.getresponse()
    except TimeoutError:
        return False
    except (OSError, http.client.HTTPException):
        return True  # it has just ended, or is about to
    finally:
        connection.close()
    return True


def _ending(process: "subprocess.Popen[bytes]") -> str:
    status = process.returncode
    return (
        f"its process was ended by {signal.Signals(-status).name}"
        if status < 0
        else f"its process exited with {status}"
    )


def _first_error(messages: IO[bytes]) -> str:
    """Take the first line of what llama.cpp or Python complained about: the following ones are its consequences."""
    text = os.pread(messages.fileno(), MESSAGES_BYTES_MAX, 0).decode(errors="replace")
    line = next((line for line in text.splitlines() if LOAD_ERROR in line), "") or (text.splitlines() or [""])[-1]
    return line.rpartition(LOAD_ERROR)[2].strip()[:PROBLEM_CHARACTERS_MAX]
