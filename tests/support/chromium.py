"""Where Chromium is: the system's where it has one, else that of the npm package @sparticuz/chromium.

`python -m tests.support.chromium` tells by its status whether the system has one; with `inflate` it makes the package's
ready, as `make test` does.
"""

import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree, which
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

from msgspec import Struct

from tests.support.node import find_node

NAMES = ("chromium", "chromium-browser", "google-chrome")
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
    if system := _of_the_system():
        return Chromium(system, {})
    if not INFLATED.is_dir():
        raise FileNotFoundError(MISSING)
    return Chromium(str(INFLATED / "chromium"), {"LD_LIBRARY_PATH": str(INFLATED / "al2023" / "lib")})


def _of_the_system() -> str | None:
    return next(filter(None, map(which, NAMES)), None)


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
    """Tell whether the system has one, or make the package's ready."""
    if sys.argv[1:] == ["inflate"]:
        _inflate()
        return 0
    return 0 if _of_the_system() else 1


if __name__ == "__main__":
    sys.exit(main())
