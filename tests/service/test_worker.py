"""What a process becomes that serves."""

import subprocess
import sys

import pytest

PRINTS_LIMIT = """
import resource
from tarazu.service.{module} import {function}
{function}()
print(*resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.parametrize(("module", "function"), [("worker", "become_worker"), ("kernel", "forbid_core_dumps")])
def test_no_core_dump_shows_the_memory_of_a_process_with_keys(module: str, function: str) -> None:
    """Neither one in a file, nor one that Linux hands to a program that collects them."""
    code = PRINTS_LIMIT.format(module=module, function=function)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1", "1"]
