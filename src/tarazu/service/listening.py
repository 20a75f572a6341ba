"""The socket at which a worker takes connections, and how many open files it may have for them.

Granian takes connections by itself. What it has no setting for is set at the socket, from which each connection
inherits it.
"""

import resource
import socket
from contextlib import suppress
from typing import Any

import structlog
from granian._granian import SocketHolder
from granian.server.mp import MPServer
from msgspec import Struct
from msgspec.structs import replace

from tarazu.service.configuration import ServerSettings
from tarazu.service.connections import borrowed

UNREAD_TIMEOUT_S = 30
"""So long an answer may make no progress: after that the kernel ends a connection whose client does not read."""
CONNECTIONS_MAX = 8_192
"""Connections that one worker keeps open; the next ones wait to be accepted."""
OPEN_FILES_KEPT = 128
"""For all but callers and backends: books, logs, libraries, what the event loop needs."""
IN_FLIGHT_MIN = 8

log = structlog.get_logger()


class TooFewFilesError(Exception):
    """The system lets a process open so few files that there is no serving with them."""


class Room(Struct, frozen=True):
    """What fits into the open files that a worker may have."""

    max_in_flight: int
    connections: int


def fitted(server: ServerSettings) -> tuple[ServerSettings, int]:
    """Raise the limit of open files as far as it goes; answer with what fits: the settings, and connections.

    Raises:
        TooFewFilesError: even the least does not fit.
    """
    limit = _raised_limit()
    room = room_in(limit, server.max_in_flight)
    if room.max_in_flight < min(server.max_in_flight, IN_FLIGHT_MIN):
        raise TooFewFilesError(
            f"A process may open {limit} files here, and needs {OPEN_FILES_KEPT + 2 * IN_FLIGHT_MIN} at least. "
            "Raise the limit (`ulimit -n`, or LimitNOFILE= of a systemd unit)."
        )
    if room.max_in_flight < server.max_in_flight or room.connections < CONNECTIONS_MAX:
        log.warning(
            "open_files_limited",
            limit=limit,
            max_in_flight=room.max_in_flight,
            connections=room.connections,
            needed=OPEN_FILES_KEPT + server.max_in_flight + CONNECTIONS_MAX,
            advice="raise the limit: ulimit -n, or LimitNOFILE= of a systemd unit",
        )
    return replace(server, max_in_flight=room.max_in_flight), room.connections


def room_in(limit: int, max_in_flight: int) -> Room:
    """Share so many open files out: a completion needs its caller's connection and one to a backend."""
    left = max(0, limit - OPEN_FILES_KEPT)
    in_flight = min(max_in_flight, left // 2)
    return Room(in_flight, min(CONNECTIONS_MAX, left - in_flight))


def _raised_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # macOS has a limit of its own below "unlimited"
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return CONNECTIONS_MAX * 2 if soft == resource.RLIM_INFINITY else soft


def run_worker(worker_id: int, name: str | None, load: Any, sock: Any, *more: Any) -> None:
    """Run granian's worker at a socket that we have made."""
    (spec, holder), shared = sock
    if holder is None:  # else it is shared by the workers: where the system cannot give each its own
        holder = spec.build()
    _end_unread(holder)
    MPServer._spawn_asgi_lifespan_worker(worker_id, name, load, ((None, holder), shared), *more)  # noqa: SLF001


def _end_unread(holder: SocketHolder) -> None:
    """Have connections end whose peer takes nothing for UNREAD_TIMEOUT_S, where the system knows how."""
    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        return
    with borrowed(holder.get_fd()) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_TIMEOUT_S * 1_000)
