"""Where Chromium is: a headless shell, the system's or the npm package @sparticuz/chromium's, else a whole browser.

A shell draws no windows, not even for itself, and so takes half of a whole browser's processor time.
`python -m tests.support.chromium` tells by its status whether the system has a shell; with `inflate` it makes the
package's ready, as `make test` does; with `any` it tells whether there is anything.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree, which
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

from msgspec import Struct

from tests.support.node import find_node

SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
WHOLE = ("chromium", "chromium-browser", "google-chrome")
PACKAGE = Path(__file__).parents[1] / "npm" / "chromium"
INFLATED = PACKAGE / "inflated"
PERSIAN_LETTERS = "fontpkg_noto_sans_arabic"
MISSING = "There is no Chromium here; `make test` installs one for the tests."
FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  {folders}
  <cachedir>{cache}</cachedir>
</fontconfig>
"""


class Chromium(Struct, frozen=True):
    """The program, and what it needs in its environment."""

    program: str
    environ: dict[str, str]


@cache
def find_chromium() -> Chromium:
    """Find it.

    Raises:
        FileNotFoundError: it is not there.
    """
    if shell := _of_the_system(SHELLS):
        return Chromium(shell, {})
    if INFLATED.is_dir():
        return Chromium(str(INFLATED / "chromium"), {"LD_LIBRARY_PATH": str(INFLATED / "al2023" / "lib")})
    if whole := _of_the_system(WHOLE):
        return Chromium(whole, {})
    raise FileNotFoundError(MISSING)


def _of_the_system(names: Sequence[str]) -> str | None:
    return next(filter(None, map(which, names)), None)


def with_letters(folder: Path) -> dict[str, str]:
    """Let a browser find the system's letters and Persian ones: a file in the folder tells where they are."""
    spec = find_spec(PERSIAN_LETTERS)
    assert spec is not None
    folders = [*(spec.submodule_search_locations or ()), INFLATED / "fonts"]
    listed = "".join(f"<dir>{escape(str(each))}</dir>" for each in folders)
    file = folder / "fonts.conf"
    file.write_text(FONTS.format(folders=listed, cache=escape(str(folder / "cache"))), "utf-8")
    return {"FONTCONFIG_FILE": str(file)}


def _inflate() -> None:
    with TemporaryDirectory(dir=PACKAGE, prefix="inflated.") as name:
        # The package looks there whether to inflate its libraries too.
        environ = os.environ | {"TMPDIR": name, "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs20.x"}
        subprocess.run([find_node().program, PACKAGE / "inflate.mjs"], env=environ, check=True)
        rmtree(INFLATED, ignore_errors=True)
        Path(name).rename(INFLATED)
        Path(name).mkdir()  # for the removal


def main() -> int:
    """Tell what there is, or make the package's ready."""
    if sys.argv[1:] == ["inflate"]:
        _inflate()
        return 0
    return 0 if _of_the_system(SHELLS if sys.argv[1:] != ["any"] else (*SHELLS, *WHOLE)) else 1


if __name__ == "__main__":
    sys.exit(main())
