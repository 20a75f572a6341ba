"""The documents: their links lead somewhere, what they show works, and they leave out nothing that the code has."""

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct
from msgspec.structs import fields

from tarazu.api import body, content_type, head
from tarazu.api.admin.routes import ROUTES
from tarazu.backends import health, http_client, http_route, local, local_backend, local_server, pool
from tarazu.backends.local import ENVIRONMENT, ENVIRONMENT_PREFIXES
from tarazu.cli.app import whole_app
from tarazu.domain import attempts, prompt, refused
from tarazu.domain.admission import SETTLING_S
from tarazu.domain.bounds import Bounds
from tarazu.domain.calendar import MILLISECONDS_PER_DAY as DAY_MS
from tarazu.domain.calendar import MILLISECONDS_PER_MINUTE as MINUTE_MS
from tarazu.domain.errors import Error
from tarazu.domain.sessions import CONFIRMED_MS
from tarazu.panel import forms, kept, markdown
from tarazu.panel.history_filters import KEYS_OFFERED_MAX
from tarazu.service import (
    back_office,
    books,
    completion,
    control,
    crowds,
    link,
    listening,
    own_access,
    packet_filters,
    passwords,
    people_acts,
    personal_acts,
    pulse,
    readiness,
    running,
    serving,
    stopping,
    upkeep,
    workers,
)
from tarazu.service.checks import HISTORY_LENGTH, HISTORY_LENGTH_MAX
from tarazu.service.configuration import load
from tarazu.service.configuration.addresses import ADMIN_API_PATH, ADMIN_PATH, API_PATH, PANEL_PATH
from tarazu.service.configuration.schema import SECTIONS, BackendSection
from tarazu.store import (
    audit,
    backend_rests,
    devices,
    ended,
    idempotency,
    ledger,
    pending_sign_ins,
    postgresql,
    restore,
    sessions,
    sqlite,
    sums,
)
from tarazu.store.newest import LOOKED_AT_MAX
from tests.cli.commands import clean_environ, run_process
from tests.cli.commands_page import command_paths
from tests.support.routes import all_places

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "tests").glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
"""All that people read."""
REFERENCE = (README, *sorted((ROOT / "docs").glob("*.md")))
"""The pages that operators and callers read: what they need stands on one of these."""
TEXT = "\n".join(page.read_text("utf-8") for page in REFERENCE)
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MIB = 1024 * 1024
PLACEHOLDER = re.compile(r"(?P<prefix>[a-z]+_)…")
SOURCE_FILE = re.compile(r"`([\w/]+\.(?:py|js|css|po))`")
NOT_FOR_TESTS = ("tarazu serve", "tarazu backend test")
"""One does not end, the other asks a server on the internet."""
SECTION_KINDS: dict[str, type[Struct]] = {**SECTIONS, "backends": BackendSection}

_markdown = MarkdownIt("commonmark").enable("table")


def tokens(page: Path) -> list[Token]:
    """Read a page; tokens inside a line stand in the one of their line."""
    return _markdown.parse(page.read_text("utf-8"))


def links(page: Path) -> list[str]:
    """List where the links of a page lead, other hosts left out."""
    inline = (child for token in tokens(page) for child in token.children or ())
    targets = (str(token.attrGet("href")) for token in inline if token.type == "link_open")
    return [unquote(target) for target in targets if "://" not in target]


def anchors(page: Path) -> set[str]:
    """Tell the names that the headings of a page have in addresses."""
    read = tokens(page)
    titles = (read[place + 1].content for place, token in enumerate(read) if token.type == "heading_open")
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def code_blocks(page: Path, language: str) -> list[str]:
    """List the blocks of code in one language."""
    return [token.content for token in tokens(page) if token.type == "fence" and token.info == language]


def mentions(words: str) -> bool:
    """Tell whether a page has these words, whole."""
    return re.search(rf"(?<![\w/]){re.escape(words)}(?![\w/{{])", TEXT) is not None


def is_broken(page: Path, target: str) -> bool:
    """Tell whether a link of a page leads to no file, or to no heading of it."""
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    return not file.is_file() or bool(anchor and anchor not in anchors(file))


def name_of(page: Path) -> str:
    """Name a page by its path from the root."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    """The file is there, and the heading in it."""
    broken = [target for target in links(page) if is_broken(page, target)]
    assert not broken, broken


def test_every_page_can_be_reached_from_the_readme() -> None:
    """No page stands alone."""
    seen: set[Path] = set()
    ahead = [README]
    while ahead:
        page = ahead.pop()
        seen.add(page)
        targets = {(page.parent / target.partition("#")[0]).resolve() for target in links(page)}
        ahead += [target for target in targets & set(PAGES) if target not in seen]
    assert seen == set(PAGES)


def test_the_commands_of_the_readme_work(tmp_path: Path) -> None:
    """They can be pasted, in their order; an id that is left out is the one that a command before has printed."""
    lines = [line for block in code_blocks(README, "sh") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("tarazu ") and not line.startswith(NOT_FOR_TESTS)]
    commands.insert(0, "tarazu db upgrade")  # the books, which `tarazu serve` makes
    (tmp_path / "tarazu.toml").write_bytes((ROOT / "examples" / "tarazu.toml").read_bytes())
    environ = clean_environ(OPENAI_API_KEY="k")
    printed = ""
    for line in commands:
        filled = PLACEHOLDER.sub(lambda found: re.findall(rf"\b{found['prefix']}\w+", printed)[-1], line)  # noqa: B023 - called at once
        ran = run_process(*shlex.split(filled, comments=True)[1:], folder=tmp_path, environ=environ)
        assert ran.status == 0, (line, ran.err)
        printed += ran.out
    assert len(commands) >= 5
    assert "The books balance." in printed


def test_the_python_of_the_readme_asks_for_a_model_of_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is Python, and the model that it names is for sale where it is pasted: at the first start."""
    monkeypatch.chdir(tmp_path)
    (source,) = code_blocks(README, "python")
    tree = ast.parse(source)
    models = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "model"]
    assert [ast.literal_eval(model) in load(environ={}).catalogue.models for model in models] == [True]


def test_every_route_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each path that programs call stands on a page with its method, or by itself in full; pages are for people."""
    monkeypatch.chdir(tmp_path)
    found = [place for place in all_places() if not place.path.startswith((PANEL_PATH + "/", ADMIN_PATH + "/"))]
    assert len(found) >= 8 + len({route.path for route in ROUTES})
    for place in found:
        within = place.path.removeprefix(API_PATH).removeprefix(ADMIN_API_PATH)
        names = (f"{place.method} {within}", f"`{place.path}`")
        assert any(map(mentions, names)), names


def test_every_command_is_described() -> None:
    """Each command stands on a page by its whole name."""
    missing = [path for path in command_paths(whole_app()) if not mentions(" ".join(("tarazu", *path)))]
    assert missing == []


def test_every_setting_is_described() -> None:
    """Each setting of tarazu.toml, and each of its sections, stands on a page."""
    sections = [f"[{name}" for name in SECTIONS]
    settings = [f"`{field.name}`" for kind in SECTION_KINDS.values() for field in fields(kind)]
    assert [name for name in sections + settings if name not in TEXT] == []


def test_every_error_code_is_described() -> None:
    """Each code of a domain error stands on a page."""
    assert [error.value.code for error in Error if not mentions(error.value.code)] == []


def test_every_environment_variable_is_described() -> None:
    """Each variable that the code reads by a name of its own, or passes on, stands on a page."""
    read = {name for source in SOURCES for name in variables(ast.parse(source.read_text("utf-8")))}
    assert read >= {"TARAZU_CONFIG", "TARAZU_API_KEY", "TARAZU_URL"}
    assert [name for name in sorted(read | ENVIRONMENT | set(ENVIRONMENT_PREFIXES)) if f"`{name}`" not in TEXT] == []


NUMBERS = {2: "two", 3: "three", 10: "ten"}
FIGURES = {
    "books": (
        f"at most {ledger.BATCH_MAX} operations",
        f"more than {ledger.CROWD} operations",
        f"the first {audit.LISTED_MAX:,} differences",
        f"in slices of {sums.SLICE:,} requests",
        f"{postgresql.LONG_STATEMENT_MEMORY_KIB // 1024} MiB a sort",
        f"the file to {sqlite.LOG_BYTES_KEPT_MAX // MIB} MiB",
        f"asked for again for {completion.CHARGE_RETRY_S:g} s",
        f"waits for {ledger.WAIT_MAX_S:g} s",
    ),
    "bounds": (
        f"{kept.COOKIE_CHARACTERS_MAX:,} characters, compressed, for {kept.KEPT_S // 60} minutes",
        f"| {serving.HEADERS_TIMEOUT_S} s each |",
        (
            f"| {body.BODY_BYTES_MAX // MIB} MiB; {body.BUFFERED_BYTES_MAX // MIB} MiB; "
            f"{body.ACCOUNT_BYTES_MAX // MIB} MiB |"
        ),
        f"| {body.SMALL_BYTES_MAX // 1024} KiB, {body.EARLY_S:g} s; {body.UNKNOWN_BYTES_MAX // MIB} MiB |",
        f"| a connection to a backend | {http_route.CONNECT_TIMEOUT_S} s |",
        f"| {http_client.REPLY_BYTES_MAX // MIB} MiB, the model's `timeout_s` |",
        f"| {pool.AGAIN_TRIES_MAX}, or the number of backends up to {pool.TRIES_MAX} |",
        f"| operations waiting for the books | {ledger.QUEUE_MAX:,} |",
        f"| {ledger.WAIT_MAX_S:g} s; {ledger.AWAY_WAIT_S:g} s |",
        f"| {completion.CHARGE_RETRY_S:g} s from the first failure |",
        f"| `timeout_s` + {SETTLING_S} s | swept within {ledger.SWEEP_INTERVAL_S} s |",
        f"| replies that are read again for one batch | {idempotency.REPLIES_BYTES_MAX // MIB} MiB, or one |",
        f"| {backend_rests.RESTS_MAX:,}, once a second |",
        (
            f"of strangers, of one of them | {back_office.WAITING_MAX}, {back_office.OF_KNOWN_MAX}; "
            f"{back_office.STRANGERS_WAITING_MAX}, {back_office.OF_STRANGER_MAX} |"
        ),
        f"second factors set up; each | {own_access.OWN_CHANGES_HOURLY_MAX} in an hour |",
        f"in the trail | {personal_acts.OFTEN_HOURLY_MAX} in an hour |",
        f"looks at for a key, a model or an outcome | {LOOKED_AT_MAX:,} |",
        f"kinds in a process | {refused.KEPT_MS // DAY_MS} days; {refused.MODELS_MAX}; {refused.KINDS_MAX:,} |",
        f"keys to choose from in the history | the newest {KEYS_OFFERED_MAX} |",
        f"| {HISTORY_LENGTH}, at most {HISTORY_LENGTH_MAX:,} | refused; the next page",
        (
            f"| {head.HEAD_BYTES_MAX // 1024} KiB; {head.HEADER_BYTES_MAX // 1024} KiB; {head.PARAMETERS_MAX}; "
            f"{content_type.CONTENT_TYPE_BYTES_MAX} bytes |"
        ),
        f"| {prompt.MESSAGES_MAX}; {prompt.ITEMS_MAX:,}; {prompt.STOP_CHARACTERS_MAX} characters |",
        f"| passwords that wait behind the one that is compared | {passwords.WAITING_MAX} in each of",
        f"rooms, {passwords.OF_LINE_MAX} of one who asks |",
        f"| wrong passwords of strangers | {attempts.BY_EMAIL_AND_ADDRESS.failures_max} by email and address,",
        f"{attempts.BY_ADDRESS.failures_max} by address in {attempts.BY_ADDRESS.window_ms // MINUTE_MS} minutes;",
        f"{attempts.BY_EMAIL.failures_max} by email in an hour |",
        (
            f"| {sessions.SESSIONS_MAX}; {devices.DEVICES_MAX}; {pending_sign_ins.PENDING_MAX}, "
            f"for {pending_sign_ins.PENDING_MS // MINUTE_MS} minutes |"
        ),
        f"| {attempts.BY_DEVICE.failures_max} in {attempts.BY_DEVICE.window_ms // MINUTE_MS} minutes | one more a",
        f"| {attempts.BY_CODE.failures_max} in a day by person, or by known browser | one more an hour |",
        f"| a password that was given again | {CONFIRMED_MS // MINUTE_MS} minutes in its session |",
        f"is no trusted proxy | {listening.CONNECTIONS_MAX:,}; `connections_per_address` |",
        f"the newest are cut off, a few after {crowds.CALM_S:g} s, a crowd within {crowds.LOOK_S:g} s;",
        (
            f"for {crowds.SHUT_S:g} s after that, on Linux, no new ones are made from there "
            f"(of {packet_filters.SHUT_OUT_MAX} addresses at once) |"
        ),
        f"was answered before its end | {crowds.LEAVING_S:g} s |",
        f"a body or a form may come | {body.PIECES_MAX:,}, and one more for each {body.BYTES_OF_PIECE_LEAST} bytes |",
        f"because its client does not read | {listening.UNREAD_TIMEOUT_S} s, on Linux |",
        f"callers, backends, and {listening.OPEN_FILES_KEPT} for the rest |",
        (
            f"at the start of `tarazu serve`; of a worker later | {books.AWAY_S} s; {running.WORKER_AWAY_S} s, "
            f"tried every {books.AWAY_PAUSE_S:g} s; a try takes up to {postgresql.CONNECT_TIMEOUT_S} s,"
        ),
        (
            f"| {Bounds().account_reply_bytes // MIB} MiB; {Bounds().reply_bytes // MIB:,} MiB, "
            f"looked at every {upkeep.REPLIES_INTERVAL_S} s (`[idempotency]`) |"
        ),
        f"| a restore that waits to write | {restore.LOCK_TIMEOUT_S} s |",
        f"once a long reader has ended | {sqlite.LOG_BYTES_KEPT_MAX // MIB} MiB |",
        f"(at least {serving.HEADERS_TIMEOUT_S} s) + {serving.GRACE_S} s",
        f"| {stopping.TELL_S:g} s; {stopping.EMPTY_TIMEOUT_S:g} s | the stop goes on |",
        f"| {workers.STUCK_TURNS * workers.TURN_S:g} s; {link.LOAD_TIMEOUT_S:g} s | it is killed and replaced |",
        f"| their number + {workers.DEATHS_MORE} within {workers.DEATHS_WITHIN_S:g} s |",
        f"| a new setup in all workers | {workers.PUBLISH_TIMEOUT_S:g} s |",
        f"| {control.ASK_TIMEOUT_S:g} s; {control.ASK_BYTES_MAX // 1024} KiB | the connection is closed |",
        f"| {readiness.LOOK_TIMEOUT_S:g} s each, every {readiness.FRESH_S:g} s at most |",
        f"| {local.SILENT_PROBES} times {local.PROBE_TIMEOUT_S:g} s | it is killed and started again |",
        f"| {markdown.MARKDOWN_CHARACTERS_MAX:,} characters together, the newest; {markdown.NESTING_MAX} levels |",
        f"| {forms.OPEN_FORM_BYTES_MAX // 1024} KiB; {forms.OPEN_BUFFERED_BYTES_MAX // MIB} MiB |",
        (
            f"| {forms.FORM_BYTES_MAX // 1024} KiB; {forms.LARGE_FORM_BYTES_MAX // MIB} MiB; "
            f"{forms.BUFFERED_BYTES_MAX // MIB} MiB, {forms.FORM_TIMEOUT_S:g} s |"
        ),
    ),
    "libraries": (f"older ones than {'.'.join(map(str, sqlite.LEAST_VERSION))} are refused",),
    "pages": (
        f"Each holds {passwords.WAITING_MAX}, {passwords.OF_LINE_MAX} of one who asks, and they are served in turn",
        f"in the books for {devices.DEVICE_DAYS} days after the",
        (
            f"{attempts.BY_DEVICE.failures_max} wrong passwords in "
            f"{attempts.BY_DEVICE.window_ms // MINUTE_MS} minutes, then one a minute"
        ),
        (
            f"by email and address ({attempts.BY_EMAIL_AND_ADDRESS.failures_max} in "
            f"{attempts.BY_EMAIL_AND_ADDRESS.window_ms // MINUTE_MS} minutes, then one in "
            f"{attempts.BY_EMAIL_AND_ADDRESS.pace_ms // MINUTE_MS} minutes)"
        ),
        f"{passwords.LENGTH_MIN} to {passwords.LENGTH_MAX} characters",
        f"valid for {people_acts.INVITATION_DAYS} days",
        f"every {upkeep.ENDED_INTERVAL_S // 60} minutes, at most {ended.ENDED_MAX:,} rows",
        f"A person has {sessions.SESSIONS_MAX} sessions at most",
        f"({back_office.WAITING_MAX} calls",
        f"has {personal_acts.OFTEN_HOURLY_MAX} sign-ins and ended sessions",
    ),
    "pools": (
        f"rests for {health.REST_MIN_S:g} s",
        f"of requests for {pool.BOUNDED_TOKENS_MAX} tokens at most",
        f"up to {health.REST_MAX_S:g} s, less up to a fifth",
        f"{pool.AGAIN_TRIES_MAX} tries in all, with many backends as many as there are, at most {pool.TRIES_MAX}",
        f"the free ones for {http_route.IDLE_TIMEOUT_S} s",
    ),
    "processes": (
        f"(at least {serving.HEADERS_TIMEOUT_S} s) + {serving.GRACE_S} s",
        f"After {NUMBERS[workers.STUCK_TURNS]} turns of the parent, a second each,",
        f"an order for {NUMBERS[workers.STUCK_TURNS]} turns",
        f"for longer than {link.LOAD_TIMEOUT_S:g} s stands still",
        f"less than {workers.YOUNG_S:g} s after their start",
        f"more than {NUMBERS[workers.DEATHS_MORE]} deaths beyond the number of workers within",
        f"For {pulse.DOUBT_S:g} s after its loop",
        f"a request waits for {pulse.SETTLE_S:g} s",
        f"for {stopping.TELL_S:g} s at most",
        f"every {local.PROBE_PAUSE_S:g} s, {NUMBERS[local.SILENT_PROBES]} times in a row for",
        f"started again after {local.PAUSE_MIN_S:g} s,",
        f"pauses of up to {local.PAUSE_MAX_S:g} s, and a request waits up to {local_backend.START_WAIT_S:g} s for it",
        f"up to {local_server.CONTEXT_TOKENS_MAX:,} tokens",
    ),
}
"""Of each page in docs the words that hold a figure, with the figure that is in force."""


def test_every_file_that_is_named_is_there() -> None:
    """Each source file that a page names, by its path or its end. Changelog and decisions may name what has been."""
    files = [
        f"/{file.relative_to(ROOT).as_posix()}"
        for folder in ("src", "tests", "bench")
        for file in (ROOT / folder).rglob("*.*")
    ]
    pages = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "adr"]
    named = {(name_of(page), file) for page in pages for file in SOURCE_FILE.findall(page.read_text("utf-8"))}
    assert len(named) >= 50
    assert [(page, file) for page, file in sorted(named) if not any(each.endswith(f"/{file}") for each in files)] == []


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_of_a_page_are_those_of_the_code(name: str) -> None:
    """Each bound stands there as it is in force."""
    text = " ".join((ROOT / "docs" / f"{name}.md").read_text("utf-8").split())
    assert [figure for figure in FIGURES[name] if figure not in text] == []
    assert body.BODY_TIMEOUT_S == serving.HEADERS_TIMEOUT_S


def test_every_library_has_its_reason() -> None:
    """The page of the libraries tells of each dependency, of the product and of its tests, what it is for."""
    page = (ROOT / "docs" / "libraries.md").read_text("utf-8").lower()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    files = [path for path in (ROOT / "requirements").glob("*.in") if not path.name.startswith("bench-")]
    lines = [line for path in files for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    python = [re.split(r"[^\w-]", line)[0] for line in (*project["dependencies"], *lines)]
    packages = [
        json.loads(path.read_text("utf-8"))
        for path in (ROOT / "tests" / "npm").glob("**/package.json")
        if "node_modules" not in path.parts
    ]
    npm = [
        name for package in packages for kind in ("dependencies", "devDependencies") for name in package.get(kind, ())
    ]
    assert len(npm) >= 4
    assert [name for name in (*python, *npm) if not re.search(rf"[ `]{re.escape(name)}\b", page)] == []


def test_every_decision_says_when_why_and_what_was_rejected() -> None:
    """Each record has its status and date, and the same four headings."""
    records = sorted((ROOT / "docs" / "adr").glob("0*.md"))
    assert len(records) >= 11
    for record in records:
        text = record.read_text("utf-8")
        assert re.search(r"^- \*\*Status:\*\* (in force|replaced by)", text, re.MULTILINE), record
        assert re.search(r"^- \*\*Date:\*\* \d{4}-\d\d-\d\d, commit", text, re.MULTILINE), record
        assert re.findall(r"^## (.*)", text, re.MULTILINE) == ["Context", "Decision", "Rejected", "Consequences"], (
            record
        )


def variables(module: ast.Module) -> Iterator[str]:
    """List the environment variables that a module names: in `environ`, or as the `env_var` of an option."""
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        match node:
            case ast.Subscript(value=place, slice=name) if ast.unparse(place).endswith("environ"):
                pass
            case ast.Call(func=ast.Attribute(value=place), args=[name, *_]) if ast.unparse(place).endswith("environ"):
                pass
            case ast.Call(func=ast.Attribute(attr="getenv"), args=[name, *_]):
                pass
            case ast.keyword(arg="env_var", value=name):
                pass
            case _:
                continue
        named = constants.get(name.id, name) if isinstance(name, ast.Name) else name
        if isinstance(named, ast.Constant):
            yield str(named.value)
