"""The load generator wrk: asks one thing over many connections at once, and says how that went."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

COMMAND = "/usr/bin/wrk"
TIMEOUT_S = 30
"""For one answer: a slow service is to be measured, not counted as failing."""
END_TIMEOUT_S = 60
"""For wrk to come to its end after the load."""
_MS = {"us": 0.001, "ms": 1.0, "s": 1_000.0, "m": 60_000.0}


class Load(Struct, frozen=True):
    """What one run of wrk has measured."""

    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float


class LoadError(Exception):
    """Not every request was answered well, so the figures mean nothing."""


def write_script(path: Path, headers: Mapping[str, str], body: bytes, *, keys: Sequence[str] = ()) -> None:
    """Write the Lua script by which wrk posts this JSON with these headers, and each time with another of the keys."""
    lines = [
        'wrk.method = "POST"',
        f"wrk.body = {_lua(body.decode())}",
        *(f"wrk.headers[{_lua(name)}] = {_lua(value)}" for name, value in headers.items()),
    ]
    if keys:
        file = path.with_suffix(".keys")
        file.write_text("\n".join(keys), "utf-8")  # a script may not hold so many
        lines.append(_ANY_KEY.replace("FILE", _lua(str(file))))
    path.write_text("\n".join(lines) + "\n", "utf-8")


_ANY_KEY = """
math.randomseed(tonumber(tostring({}):match("%x+$"), 16))  -- an address: two loads do not ask for the same keys in turn
local keys = {}
for key in io.lines(FILE) do keys[#keys + 1] = key end
function request()
    wrk.headers["Authorization"] = "Bearer " .. keys[math.random(#keys)]
    return wrk.format()
end"""


def _lua(text: str) -> str:
    """Write a text of ASCII as Lua does, which for that is as JSON does."""
    assert text.isascii(), text
    return json.dumps(text)


def drive(url: str, script: Path, *, connections: int, seconds: int) -> Load:
    """Ask as fast as the answers come.

    Raises:
        LoadError: a request has failed.
    """
    command = (
        *(COMMAND, "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"),
        *("--timeout", f"{TIMEOUT_S}s", "--latency", "--script", str(script), url),
    )
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + END_TIMEOUT_S)
    return read(ended.stdout + ended.stderr)


def read(output: str) -> Load:
    """Read what wrk prints at its end.

    Raises:
        LoadError: it tells of an answer that is not 2xx or 3xx, of an error on a connection, or of no answer.
    """
    requests = re.search(r"^ *(\d+) requests in ", output, re.MULTILINE)
    rate = re.search(r"^Requests/sec: +([\d.]+)$", output, re.MULTILINE)
    percentiles = dict(re.findall(r"^ +(50|99)% +(\S+) *$", output, re.MULTILINE))
    failed = re.search(r"^ *(Non-2xx or 3xx responses|Socket errors): .*$", output, re.MULTILINE)
    if failed or not requests or not rate or int(requests[1]) == 0:
        raise LoadError(output)
    return Load(int(requests[1]), float(rate[1]), _in_ms(percentiles["50"]), _in_ms(percentiles["99"]))


def _in_ms(written: str) -> float:
    """Read a time such as 612.00us, 1.05ms or 2.10s."""
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", written).groups()  # type: ignore[union-attr]  # wrk writes so
    return float(number) * _MS[unit]


def version() -> str:
    """Name the installed release."""
    ended = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=False)  # its status is 1
    return " ".join(ended.stdout.split()[:2])
