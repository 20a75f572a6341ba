"""Find the caller's API key: in a file, in the environment, or by asking.

It is never an argument: the arguments of a process can be seen by everybody on the machine.
"""

import os
from collections.abc import Mapping
from getpass import getpass
from pathlib import Path

from tarazu.cli.errors import CommandError
from tarazu.cli.output import say_aside
from tarazu.domain.keys import parse
from tarazu.service.private_files import file_advice

KEY_VARIABLE = "TARAZU_API_KEY"
KEY_FILE_BYTES_MAX = 4_096
KEY_ADVICE = f"Set {KEY_VARIABLE}, or name a file with --key-file."


def caller_key(key_file: Path | None, environ: Mapping[str, str] = os.environ) -> str:
    """Take the key from `key_file`, else from the environment, else ask for it on the terminal without an echo.

    Raises:
        CommandError: there is no key, or it is mistyped.
    """
    if key_file is not None:
        key, source = _read(key_file), str(key_file)
    elif environ.get(KEY_VARIABLE, "").strip():
        key, source = environ[KEY_VARIABLE].strip(), KEY_VARIABLE
    else:
        key, source = _ask(), "what was typed"
    if parse(key) is None:
        raise CommandError(
            f"There is no valid API key in {source}. A key is trz_ and 50 letters and digits, exactly as it was shown.",
            KEY_ADVICE,
        )
    if key_file is not None and (advice := file_advice(key_file)):
        say_aside(f"tarazu: {advice}")
    return key


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(KEY_FILE_BYTES_MAX).decode("ascii", "replace").strip()
    except OSError as error:
        raise CommandError(f"The key file {path} cannot be read ({error.strerror}).", KEY_ADVICE) from None


def _ask() -> str:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
        return getpass("API key: ").strip()
    except (OSError, EOFError):  # no terminal, or nothing typed on it
        raise CommandError("There is no API key.", KEY_ADVICE) from None
