"""The names under which browsers may open the pages: a foreign name that leads here by DNS opens nothing."""

from urllib.parse import urlsplit

from tarazu.service.configuration.schema import ServerSettings
from tarazu.service.forwarding import Origin, host_name, is_loopback


class KnownHosts:
    """Those of the public address, of the address that is listened at, of this machine, and those of the setting."""

    def __init__(self, server: ServerSettings) -> None:
        listening = f"[{server.host}]" if ":" in server.host else server.host
        names = (urlsplit(server.base_url).netloc, f"{listening}:{server.port}", *server.hosts)
        self._names = frozenset(name.lower() for name in names)

    def __repr__(self) -> str:
        return f"<KnownHosts {', '.join(sorted(self._names))} and this machine's>"

    def include(self, origin: Origin) -> bool:
        """Tell whether every host that a request has named is known, and there is one."""
        return bool(origin.hosts) and all(map(self._is_known, origin.hosts))

    def _is_known(self, host: str) -> bool:
        name = host_name(host)
        return host in self._names or name in self._names or is_loopback(name)
