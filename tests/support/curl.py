"""Have a `curl` where the system has none: this module, with exactly the options that the product's lines use."""

import getopt
import os
import shlex
import sys
from http.client import HTTPConnection
from pathlib import Path
from shutil import which
from urllib.parse import urlsplit

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
EXIT_USAGE = 2
GLOBBING = "{}[] "
"""What curl expands in an address, or takes for no address."""


class UsageError(Exception):
    """The line is none that this curl knows; the real one may know it."""


def with_curl(folder: Path) -> dict[str, str]:
    """Answer with what makes a shell find a `curl`: nothing, where it finds the real one."""
    return {} if which("curl") else with_own_curl(folder)


def with_own_curl(folder: Path) -> dict[str, str]:
    """Answer with what makes a shell find this one, by way of the folder."""
    program = folder / "curl"
    command = f"PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m {__spec__.name}"
    program.write_text(f'#!/bin/sh\n{command} "$@"\n', "utf-8")
    program.chmod(0o700)
    return {"PATH": os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])}


def run(arguments: list[str]) -> bytes:
    """Send what the arguments say, and answer with the body that comes, whatever its status.

    Raises:
        UsageError: there is anything in them that the product's lines have not.
    """
    try:
        options, addresses = getopt.gnu_getopt(arguments, "X:H:d:")
    except getopt.GetoptError as error:
        raise UsageError(str(error)) from None
    headers = dict(_header(value) for option, value in options if option == "-H")
    (method, body) = (_only(options, option) for option in ("-X", "-d"))
    if len(addresses) != 1 or set(addresses[0]) & set(GLOBBING):
        raise UsageError(f"not one plain address: {addresses}")
    address = urlsplit(addresses[0])
    if address.scheme != "http" or not address.netloc:
        raise UsageError(f"not an http address: {addresses[0]}")
    if body is not None:
        if body.startswith("@"):
            raise UsageError("-d names a file")
        headers = {"Content-Type": "application/x-www-form-urlencoded"} | headers
    connection = HTTPConnection(address.netloc, timeout=PATIENCE_S)
    try:
        connection.request(
            method or ("GET" if body is None else "POST"),
            (address.path or "/") + (f"?{address.query}" if address.query else ""),
            None if body is None else body.encode(),
            {"Accept": "*/*", "User-Agent": "curl/8"} | headers,
        )
        return connection.getresponse().read()
    finally:
        connection.close()


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(": ")
    if not colon or not name or not value:
        raise UsageError(f"not a header: {line}")
    return name, value


def _only(options: list[tuple[str, str]], option: str) -> str | None:
    values = [value for name, value in options if name == option]
    if len(values) > 1:
        raise UsageError(f"{option} more than once")
    return values[0] if values else None


def main() -> int:
    """Print what comes."""
    try:
        sys.stdout.buffer.write(run(sys.argv[1:]))
    except UsageError as error:
        sys.stderr.write(f"curl: {error}\n")
        return EXIT_USAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
