"""The service on PostgreSQL: the same books, shared by several processes and several services."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tarazu.domain.accounts import AccountStatus
from tarazu.store.engine import transaction
from tests.support.answers import statuses
from tests.support.at_once import at_once, wait_until
from tests.support.backend import ScriptedBackend, answers
from tests.support.service import USAGE, Customer, RunningService
from tests.support.stores import PostgresqlStore
from tests.support.windows import within_one_minute


class TwoServices:
    """Two services on one database; the first has two worker processes."""

    def __init__(self, first: RunningService, second: RunningService) -> None:
        self.first = first
        self.both = (first, second)

    def ask_all(self, customers: list[Customer], times: int) -> list[int]:
        """Ask through both services with each customer's key, all at once."""
        calls = [
            partial(service.chat, customer) for _ in range(times) for service in self.both for customer in customers
        ]
        return statuses(at_once(calls))


@pytest.fixture(scope="module")
def services(
    postgresql_store: PostgresqlStore, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TwoServices]:
    """Two services; at the end their books must balance."""
    url = postgresql_store.new_books(tmp_path_factory.mktemp("unused"))
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                RunningService(tmp_path_factory.mktemp("service"), module_backend.url, server=server, database_url=url)
            )
            for server in ("workers = 2", "")
        ]
        yield TwoServices(*running)
        audit = running[0].run("audit")
        assert audit.returncode == 0, audit.stdout + audit.stderr


def test_a_reply_is_charged_whichever_service_gives_it(services: TwoServices, backend: ScriptedBackend) -> None:
    """What one service has charged, the other shows."""
    customer = services.first.customer("three")
    for service in services.both:
        assert service.chat(customer).status == 200
    for service in services.both:
        assert service.get(USAGE, customer).json["api_credits"] == {"used": 2, "limit": 3, "remaining": 1}
    assert len(backend.received) == 2


def test_three_credits_serve_three_of_sixty_over_all_processes(services: TwoServices, backend: ScriptedBackend) -> None:
    """5 keys, 3 processes, 60 requests at once on 3 credits: exactly 3 replies, and nothing is left."""
    customer = services.first.customer("three")
    keys = [customer, *(services.first.another_key(customer) for _ in range(4))]
    found = services.ask_all(keys, times=6)
    assert (found.count(200), found.count(402)) == (3, 57)
    assert len(backend.received) == 3
    assert services.first.account(customer).used == 3


def test_a_limit_of_three_a_minute_is_three_over_all_processes(services: TwoServices) -> None:
    """40 requests at once on a limit of 3: exactly 3 are served."""

    def scenario() -> list[int]:
        return services.ask_all([services.first.customer("large", limit_per_minute=3)], times=20)

    found = within_one_minute(scenario)
    assert (found.count(200), found.count(429)) == (3, 37)


def test_a_failed_reply_gives_its_credits_back(services: TwoServices, backend: ScriptedBackend) -> None:
    """The release reaches the books that all share."""
    backend.behaviour = answers(b"no", status=500)
    customer = services.first.customer("three")
    assert set(services.ask_all([customer], times=10)) <= {402, 502}  # three at a time fit into the quota
    backend.reset()
    wait_until(lambda: services.first.account(customer).used == 0)
    for _ in range(3):
        assert services.both[1].chat(customer).status == 200
    assert services.both[0].chat(customer).code == "api_credits_exhausted"


def test_what_an_operator_changes_holds_everywhere_from_the_next_request(services: TwoServices) -> None:
    """A block, a revocation and a stop of intake, each made through one service's books, hold in all processes."""
    provisioning = services.first.provisioning
    blocked, revoked, stopped = (services.first.customer() for _ in range(3))
    provisioning.set_account(blocked.account_id, status=AccountStatus.BLOCKED)
    provisioning.revoke_key(revoked.key_id)
    assert services.ask_all([blocked], times=4) == [403] * 8
    assert services.ask_all([revoked], times=4) == [401] * 8
    provisioning.stop_intake()
    try:
        assert services.ask_all([stopped], times=4) == [503] * 8
    finally:
        provisioning.resume_intake()
    assert services.ask_all([stopped], times=1) == [200] * 2


def test_months_are_cut_ahead(services: TwoServices) -> None:
    """This month's requests and those of the next two have partitions of their own."""
    with transaction(services.first.engine) as connection:
        names = connection.exec_driver_sql("SELECT relname FROM pg_class WHERE relname ~ '^requests_[0-9_]+$'").all()
    assert len(names) == 3


def test_books_that_are_not_there_are_told_with_the_next_step(
    services: TwoServices, postgresql_store: PostgresqlStore, tmp_path: Path
) -> None:
    """On PostgreSQL nothing is migrated by the way: serve says which command does it, or that a newer release has."""
    config = tmp_path / "tarazu.toml"
    empty = postgresql_store.new_database("empty_books")
    config.write_text(services.first.config.read_text().replace(services.first.configuration.database_url, empty))
    refused = services.first.run("serve", config=config)
    assert refused.returncode == 1
    assert "Make or migrate the books with: tarazu db upgrade" in refused.stderr
    assert services.first.run("db", "upgrade", config=config).returncode == 0
    assert services.first.run("account", "list", config=config).returncode == 0
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    refused = services.first.run("serve", config=config)
    assert refused.returncode == 1
    assert "revision 9999, which this release does not know. Run the newer release" in refused.stderr
