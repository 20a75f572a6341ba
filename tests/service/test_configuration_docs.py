"""docs/configuration.md and the example, held against the code."""

import re
import tomllib
from pathlib import Path

import pytest
import trustme
from msgspec import Struct, convert
from msgspec.structs import FieldInfo, fields

from tarazu.domain.catalogue import Capabilities
from tarazu.service.configuration import load
from tarazu.service.configuration.loading import CONFIGURATION_VARIABLE, DEMO_FILE
from tarazu.service.configuration.schema import REQUIRED, SECTIONS, BackendSection, ModelSection, PlanSection
from tests.support.configuration_files import MODEL, load_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "configuration.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
HEADERS: dict[str, type[Struct]] = {
    "[plans.NAME]": PlanSection,
    '[models."ID"]': ModelSection,
    '[[models."ID".backends]]': BackendSection,
}
HEADERS.update({f"[{name}]": kind for name, kind in SECTIONS.items() if name not in {"plans", "models"}})
SETTINGS = [
    pytest.param(header, field, id=f"{header} {field.name}")
    for header, kind in HEADERS.items()
    for field in fields(kind)
]


EXAMPLE_KEYS = {"OPENAI_API_KEY": "k", "EXAMPLE_API_KEY": "k", "OTHER_API_KEY": "k", "GATEWAY_KEY": "k"}
EXAMPLE_FILES = {
    "models/small.gguf": b"",
    "secrets/openai": b"k",
    "certificates/ca.pem": trustme.CA().cert_pem.bytes(),
}


def chapter(header: str) -> str:
    """Cut out what the page says of one section of the file."""
    return PAGE.split(f"\n## `{header}`\n")[1].split("\n## ")[0]


def row(header: str, name: str) -> tuple[str, str, str]:
    """Read the row of a setting: type, default and meaning."""
    (cells,) = re.findall(rf"^\| `{name}` \|(.*)\|$", chapter(header), re.MULTILINE)
    kind, default, meaning = (cell.strip() for cell in cells.split("|"))
    return kind, default, meaning


@pytest.mark.parametrize(("header", "field"), SETTINGS)
def test_every_setting_has_its_row_with_its_default(header: str, field: FieldInfo) -> None:
    """The chapter of its section tells type, default and meaning of each setting."""
    kind, default, meaning = row(header, field.name)
    assert kind
    assert meaning
    if field.default is REQUIRED:
        assert default == "*required*"
    elif field.default is None:
        assert default
    else:
        written = tomllib.loads(f"default = {default.strip('`')}")["default"]
        assert convert(written, field.type) == field.default


@pytest.mark.parametrize("header", HEADERS)
def test_every_row_is_of_a_setting(header: str) -> None:
    """The page names no setting that does not exist any more."""
    names = re.findall(r"^\| `(\w+)` \|", chapter(header), re.MULTILINE)
    assert sorted(names) == sorted(HEADERS[header].__struct_fields__)


def load_example(folder: Path, text: str) -> None:
    """Load what a page shows, with the files that it names; without a model it is completed with one."""
    for name, content in EXAMPLE_FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    load_text(folder, text if "[models." in text else text + MODEL, EXAMPLE_KEYS)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_the_page_loads(tmp_path: Path, text: str) -> None:
    """What the page shows can be pasted."""
    load_example(tmp_path, text)


def test_the_example_file_loads() -> None:
    """examples/tarazu.toml is right, once its key is in the environment."""
    load(ROOT / "examples" / "tarazu.toml", EXAMPLE_KEYS)


def test_the_commented_part_of_the_demo_loads(tmp_path: Path) -> None:
    """The demo catalogue is a starting point: with its last comments taken away it sells one model more."""
    text = (ROOT / "src" / "tarazu" / "service" / DEMO_FILE).read_text("utf-8")
    start = text.index('# [models."')
    uncommented = text[:start] + re.sub(r"^# ?", "", text[start:], flags=re.MULTILINE)
    assert len(load_text(tmp_path, uncommented, EXAMPLE_KEYS).catalogue.models) == 2


def test_the_page_names_the_variable_and_the_capabilities() -> None:
    """What is no setting but can be written is on the page too."""
    assert f"`{CONFIGURATION_VARIABLE}`" in PAGE
    capabilities = set(Capabilities.__struct_fields__) - {"streaming"}
    assert set(re.findall(r"`(\w+)`", row('[models."ID"]', "capabilities")[2])) == capabilities
