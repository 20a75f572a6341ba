"""Who runs a command: the name that the books keep with what they did."""

import getpass
import os
from collections.abc import Mapping

OPERATOR_VARIABLE = "TARAZU_OPERATOR"


def operator_name(environ: Mapping[str, str] = os.environ) -> str:
    """Tell $TARAZU_OPERATOR, else who has called sudo, else the login name."""
    return environ.get(OPERATOR_VARIABLE, "").strip() or environ.get("SUDO_USER", "").strip() or _login_name()


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container a number may be all that there is
        return f"user {os.getuid()}"
