"""Put a changed configuration in force while the service runs; a bad one is refused, and the old one stays."""

import os
import threading
from collections.abc import Callable, Mapping

import structlog
from msgspec.structs import replace

from tarazu.backends.local import LOAD_TIMEOUT_S, LocalModels
from tarazu.backends.local_model import LocalModelError
from tarazu.service.broadcast import Broadcast
from tarazu.service.configuration import Configuration, ConfigurationError, load
from tarazu.service.configuration.schema import TIMEOUT_S_MAX
from tarazu.service.pools import local_paths
from tarazu.service.running import Setup

log = structlog.get_logger()


class Reloader:
    """Reads the configuration again when it is asked to, in a thread of its own.

    `read` is the configuration as it stood in the file, `setup` what was made of it. `on_change` is called with each
    configuration before it comes into force.
    """

    def __init__(
        self,
        read: Configuration,
        setup: Setup,
        local_models: LocalModels,
        broadcast: Broadcast,
        *,
        on_change: Callable[[Configuration], None],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._read = read
        self._setup = setup
        self._local_models = local_models
        self._broadcast = broadcast
        self._on_change = on_change
        self._environ = environ
        self._asked = threading.Event()
        self._drop: threading.Timer | None = None

    def __repr__(self) -> str:
        return f"<Reloader of {self._setup.configuration.path}>"

    def start(self) -> None:
        """Begin to wait for being asked."""
        threading.Thread(target=self._run, name="reload", daemon=True).start()

    def ask(self) -> None:
        """Have the configuration read again, soon. It may be called in a signal handler."""
        self._asked.set()

    def reload(self) -> bool:
        """Read the configuration and put it in force in all workers; tell whether that was done."""
        path, in_force = self._read.path, self._setup.configuration
        if path is None:
            log.warning("nothing_to_reload", reason="the built-in demo catalogue does not change")
            return False
        try:
            read = load(path, self._environ)
            self._local_models.add(local_paths(read.catalogue))
            self._local_models.wait_ready(LOAD_TIMEOUT_S)
        except (ConfigurationError, LocalModelError) as error:
            for problem in str(error).splitlines():
                log.error("configuration_refused", problem=problem)  # noqa: TRY400 - the problem says it all
            self._drop_unused_later()
            return False
        if _fixed(read) != _fixed(self._read):
            log.warning("restart_needed", reason="changes of [server], [operators] and [database] wait for a restart")
        self._read = read
        changed = replace(in_force, catalogue=read.catalogue)
        self._on_change(changed)
        self._setup = replace(self._setup, configuration=changed, local_addresses=dict(self._local_models.addresses))
        workers = self._broadcast.publish(self._setup)
        self._drop_unused_later()
        log.info("configuration_reloaded", path=str(path), models=len(read.catalogue.models), workers=workers)
        return True

    def _drop_unused_later(self) -> None:
        """End local models that are no longer named, once the requests that are with them have had their time."""
        if self._drop is not None:
            self._drop.cancel()
        self._drop = threading.Timer(
            TIMEOUT_S_MAX, lambda: self._local_models.keep(local_paths(self._setup.configuration.catalogue))
        )
        self._drop.daemon = True
        self._drop.start()

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            try:
                self.reload()
            except Exception as error:  # noqa: BLE001 - the service goes on as it is
                log.error("reload_failed", reason=repr(error))  # noqa: TRY400 - a trace may quote values


def _fixed(configuration: Configuration) -> tuple[object, ...]:
    """Take what holds as long as the service runs."""
    return configuration.server, configuration.operators, configuration.database_url
