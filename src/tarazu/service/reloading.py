"""Put a changed configuration in force in all workers while the service runs; a bad one is refused, the old stays."""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog
from msgspec import Struct
from msgspec.structs import asdict, replace

from tarazu.backends.local import LOAD_TIMEOUT_S, LocalModels
from tarazu.backends.local_model import LocalModelError
from tarazu.service.advice import advice
from tarazu.service.configuration import Configuration, ConfigurationError, load
from tarazu.service.configuration.problems import listed
from tarazu.service.configuration.schema import TIMEOUT_S_MAX
from tarazu.service.pools import local_paths
from tarazu.service.workers import Published, Workers
from tarazu.store.availability import reason_of

log = structlog.get_logger()


class Reloaded(Struct, frozen=True):
    """What became of a reload: in force in all workers, unless there are problems. Each problem or note is a line."""

    workers: int = 0
    models: int = 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def done(self) -> str:
        """What is in force, for people."""
        if self.problems:
            return ""
        models = f"{self.models:,} model{'' if self.models == 1 else 's'}"
        return f"{models}, in force in {self.workers:,} worker{'' if self.workers == 1 else 's'}"


class Reloader:
    """Reads the configuration again when it is asked to.

    `started` is the configuration as it stood in the file when the service started: some of it holds until it ends.
    `on_change` is called with each configuration before it comes into force.
    """

    def __init__(
        self,
        started: Configuration,
        workers: Workers,
        local_models: LocalModels,
        *,
        on_change: Callable[[Configuration], None],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._started = started
        self._workers = workers
        self._local_models = local_models
        self._on_change = on_change
        self._environ = environ
        self._asked = threading.Event()
        self._reloading = threading.Lock()
        self._drop: threading.Timer | None = None

    def __repr__(self) -> str:
        return f"<Reloader of {self._started.path}>"

    def start(self) -> None:
        """Begin to wait for being asked."""
        threading.Thread(target=self._run, name="reload", daemon=True).start()

    def ask(self) -> None:
        """Have the configuration read again, soon. It may be called in a signal handler."""
        self._asked.set()

    def reload(self) -> Reloaded:
        """Read the configuration, put it in force in all workers, and say in the log what became of it."""
        with self._reloading:
            try:
                return self._reload()
            except Exception as error:  # noqa: BLE001 - the service goes on as it is
                log.error("reload_failed", reason=reason_of(error))  # noqa: TRY400 - a trace may quote values
                return Reloaded(problems=("the reload failed; the log of the service says why",))

    def _reload(self) -> Reloaded:
        path = self._started.path
        if path is None:
            log.warning("nothing_to_reload", reason="the built-in demo catalogue does not change")
            return Reloaded(problems=("there is nothing to reload: the built-in demo catalogue does not change",))
        try:
            read = load(path, self._environ)
            self._local_models.add(local_paths(read.catalogue))
            self._local_models.wait_ready(LOAD_TIMEOUT_S)
        except (ConfigurationError, LocalModelError) as error:
            problems = tuple(str(error).splitlines())
            for problem in problems:
                log.error("configuration_refused", problem=problem)  # noqa: TRY400 - the problem says it all
            self._drop_unused_later()
            return Reloaded(problems=problems)
        waiting = _waiting(read, self._started)
        if waiting is not None:
            log.warning("restart_needed", reason=waiting)
        published = self._put_in_force(read)
        warnings = advice(read) if published.is_done else ()
        for line in warnings:
            log.warning("configuration_advice", advice=line)
        models = len(read.catalogue.models)
        say = log.info if published.is_done else log.error
        say(
            "configuration_reloaded" if published.is_done else "configuration_not_reloaded",
            path=str(path),
            models=models,
            workers=f"{published.workers} of {published.of}",
        )
        return Reloaded(
            workers=published.workers,
            models=models,
            problems=() if published.is_done else (_shortfall(published),),
            notes=(() if waiting is None else (waiting,)) + warnings,
        )

    def _put_in_force(self, read: Configuration) -> Published:
        in_force = self._workers.setup
        changed = replace(in_force.configuration, catalogue=read.catalogue)
        self._on_change(changed)
        published = self._workers.publish(
            replace(in_force, configuration=changed, local_addresses=dict(self._local_models.addresses))
        )
        if published.is_undone:
            self._on_change(in_force.configuration)
        self._drop_unused_later()
        return published

    def _drop_unused_later(self) -> None:
        """End local models that are no longer named, once the requests that are with them have had their time."""
        if self._drop is not None:
            self._drop.cancel()
        self._drop = threading.Timer(
            TIMEOUT_S_MAX, lambda: self._local_models.keep(local_paths(self._workers.setup.configuration.catalogue))
        )
        self._drop.daemon = True
        with suppress(RuntimeError):  # no room for one more thread: the next reload does it
            self._drop.start()

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            self.reload()


def _waiting(read: Configuration, started: Configuration) -> str | None:
    """Name the settings that hold as long as the service runs, and are others now than at its start."""
    before, now = _fixed(started), _fixed(read)
    names = [name for name, value in now.items() if value != before[name]]
    if not names:
        return None
    verbs = ("is", "waits") if len(names) == 1 else ("are", "wait")
    return f"{listed(names)} {verbs[0]} not as at the start, and {verbs[1]} for a restart"


def _fixed(configuration: Configuration) -> dict[str, object]:
    """Take what holds as long as the service runs, each setting by its name."""
    sections = {"server": configuration.server, "operators": configuration.operators, "logs": configuration.logs}
    return {
        "database.url": configuration.database_url,
        **{f"{name}.{field}": value for name, section in sections.items() for field, value in asdict(section).items()},
    }


def _shortfall(published: Published) -> str:
    if published.is_undone:
        return "a worker could not take the configuration, so that the one before is in force; the log says why"
    return f"only {published.workers} of {published.of} workers serve by it; the others are being started anew"
