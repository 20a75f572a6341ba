"""What a process becomes that serves."""

import subprocess
import sys

import pytest

PRINTS_DUMPABLE = """
import ctypes
from tarazu.service.{module} import {function}
PR_GET_DUMPABLE = 3
before = ctypes.CDLL(None).prctl(PR_GET_DUMPABLE)
{function}()
print(before, ctypes.CDLL(None).prctl(PR_GET_DUMPABLE))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a matter of Linux")
@pytest.mark.parametrize(("module", "function"), [("worker", "become_worker"), ("kernel", "forbid_core_dumps")])
def test_the_memory_of_a_process_with_keys_is_shown_to_none(module: str, function: str) -> None:
    """Neither in a core dump nor to another process of the same user."""
    code = PRINTS_DUMPABLE.format(module=module, function=function)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1", "0"]
