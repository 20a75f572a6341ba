"""What holds for every test, how they are shared out, and the databases that they share."""

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.support")

from tests.support import stores  # noqa: E402 - after the line above
from tests.support.durations import write_durations  # noqa: E402
from tests.support.lazily import SLOW  # noqa: E402
from tests.support.patience import PATIENCE_S  # noqa: E402
from tests.support.scale import EVERYTHING, SCALE, SCALE_VARIABLE, scaled  # noqa: E402
from tests.support.seeds import SEED_VARIABLE, session_seed  # noqa: E402
from tests.support.stores import STORES, PostgresqlStore, SqliteStore, Store, postgresql_server  # noqa: E402

EXAMPLES = 20
"""Of a property, at scale 1."""

# Property tests have no time limit of their own: a busy machine is no counterexample.
settings.register_profile(
    "tarazu",
    deadline=None,
    max_examples=scaled(EXAMPLES, least=5),
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("tarazu")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the closing lines tell where the time went."""
    parser.addoption("--slowest-files", type=int, default=0, help="list the slowest N files, and the sum by folder")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Seed chance, keep the folders of tests in memory, and let Ctrl-C be heard.

    Books need no disk here, where memory has room; `--basetemp` overrides. A command in the background of a script
    ignores SIGINT, and so would each process that a test starts.
    """
    if config.getoption("randomly_seed", "default") == "default":
        config.option.randomly_seed = session_seed()
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(session_seed())
    if (memory := stores.memory_with_room()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Share out the making of the tests' code too, where several processes are about to collect them."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        from tests.support.sharing import make_share_of_code  # noqa: PLC0415 - imports xdist

        number = int(worker["workerid"].removeprefix("gw"))
        make_share_of_code(session.config.args, number=number, of=worker["workercount"])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run the tests in one process more than there are cores, and what waits for time-outs in another."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the tests out by file and kind of database, the longest first."""
    from xdist.workermanage import NodeManager  # noqa: PLC0415 - xdist may be switched off

    from tests.support.sharing import LongestFirst  # noqa: PLC0415 - as above

    NodeManager.EXIT_TIMEOUT = PATIENCE_S  # what was measured is written at the end of a process
    return LongestFirst(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on SQLite; on PostgreSQL too if it is marked `both_stores`, or if everything is tried."""
    if "store_kind" in metafunc.fixturenames and not _names_its_store(metafunc.definition):
        both = EVERYTHING or metafunc.definition.get_closest_marker("both_stores")
        metafunc.parametrize("store_kind", STORES if both else STORES[:1], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is tried nightly; mark each test that PostgreSQL is started for, beside those that say so."""
    left_out = [item for item in items if not EVERYTHING and item.get_closest_marker("nightly")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if isinstance(item, pytest.Function):
            kind = item.callspec.params.get("store_kind") if hasattr(item, "callspec") else None
            if kind == "postgresql" or "postgresql_store" in item.fixturenames:
                item.add_marker(pytest.mark.postgresql)


def pytest_collection_finish() -> None:
    """See that none of what is slow to import has been imported for collecting the tests."""
    if imported := SLOW & sys.modules.keys():
        raise pytest.UsageError(f"Slow to import, and collecting has: {imported}. See tests/support/lazily.py.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let no test start PostgreSQL that is not marked `postgresql`: leaving those out leaves it out."""
    stores.may_start_postgresql = item.get_closest_marker("postgresql") is not None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how to repeat what failed, and where the time went."""
    failed = {
        report.nodeid
        for kind in ("failed", "error")
        for report in terminalreporter.stats.get(kind, ())
        if report.nodeid
    }
    if failed:
        terminalreporter.section("to repeat what failed")
        chance = f"{SEED_VARIABLE}={session_seed()} {SCALE_VARIABLE}={SCALE:g}"
        for nodeid in sorted(failed):
            terminalreporter.line(f"{chance} {shlex.quote(sys.executable)} -m pytest {shlex.quote(nodeid)}")
    write_durations(terminalreporter, config.getoption("slowest_files"))


@pytest.fixture(scope="session")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    """Migrate one file, to be copied."""
    return SqliteStore(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def postgresql_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresqlStore]:
    """Run one server, and migrate a database on it, to be copied."""
    with postgresql_server(tmp_path_factory.mktemp("server"), in_memory=True) as url:
        yield PostgresqlStore(url)


@pytest.fixture(scope="session")
def store_kind(request: pytest.FixtureRequest) -> str:
    """The kind of database that the test is run on, from `pytest_generate_tests` or the test's own parameters."""
    kind: str = request.param
    return kind


@pytest.fixture(scope="module")
def store(store_kind: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Have the whole module on the one kind of database, and then on the other."""
    store: Store = request.getfixturevalue(f"{store_kind}_store")
    yield store
    store.remove_books()


def _names_its_store(test: pytest.Item) -> bool:
    return any("store_kind" in mark.args[0] for mark in test.iter_markers("parametrize"))


@pytest.fixture
def row(request: pytest.FixtureRequest) -> str:
    """The rows that a test holds, for its name alone."""
    rows: str = request.param
    return rows
