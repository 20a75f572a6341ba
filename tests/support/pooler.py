"""PgBouncer before a PostgreSQL server, as operators run it."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL

from sqlalchemy import make_url

from tests.support.left_behind import end_process_with_us
from tests.support.missing import cannot_try
from tests.support.patience import PATIENCE_S

POLL_S = 0.01


@contextmanager
def pooler(folder: Path, database_url: str, *, pool_mode: str, **settings: str) -> Iterator[str]:
    """Run PgBouncer on a free port of 127.0.0.1; answer with the URL that leads through it to the same database."""
    program = shutil.which("pgbouncer", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin")))
    if program is None:
        cannot_try("PgBouncer is not installed. Get it with: apt-get install pgbouncer")
    server = make_url(database_url)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder.mkdir(exist_ok=True)
    configuration = folder / "pgbouncer.ini"
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": pool_mode,
        **settings,
    }
    configuration.write_text(
        f"[databases]\n{server.database} = host={server.query['host']} user={server.username}\n"
        "[pgbouncer]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())
    )
    # It refuses to run as root. The user of the server may open its socket.
    as_user = ["-u", "pgserver"] if os.getuid() == 0 else []
    process = subprocess.Popen([program, *as_user, str(configuration)], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    end_process_with_us(process.pid)
    try:
        _wait_until_it_listens(process, port)
        through = server.set(host="127.0.0.1", port=port, query={})
        yield through.render_as_string(hide_password=False)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _wait_until_it_listens(process: "subprocess.Popen[bytes]", port: int) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
        except ConnectionRefusedError:
            assert process.poll() is None, "PgBouncer has ended"
            assert time.monotonic() < until_s
            time.sleep(POLL_S)
        else:
            return
