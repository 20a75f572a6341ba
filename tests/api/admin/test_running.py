"""What operators look at and switch: intake, catalogue, backends, audit, trail, and the books when they are away."""

from functools import partial

import pytest

from tarazu.service.configuration.addresses import ADMIN_API_PATH
from tarazu.store.trail import Via
from tests.support.admin import AdminClient, admin_client, intake_as_before
from tests.support.answers import look
from tests.support.at_once import at_once
from tests.support.envelopes import assert_domain_error, assert_own_error
from tests.support.processes import books_being_written, books_out_of_reach
from tests.support.service import BACKEND_KEY, RunningService


def test_intake_is_stopped_and_resumed(service: RunningService, admin: AdminClient) -> None:
    """From the next request on; both are acts."""
    customer = service.customer()
    with intake_as_before(service):
        switched = admin.ask("PUT", "/intake", {"stopped": True, "retry_after_s": 120})
        assert switched.json == admin.get("/intake") == {"stopped": True, "retry_after_s": 120}
        answer = service.chat(customer)
        assert_domain_error(answer, 503, "system_stopped")
        assert answer.headers["retry-after"] == "120"
        assert admin.ask("PUT", "/intake", {"stopped": False}).json == {"stopped": False, "retry_after_s": 300}
        assert service.chat(customer).status == 200
    assert [act.act for act in admin.acts()[:2]] == ["intake.resume", "intake.stop"]


def test_the_catalogue_is_shown_without_what_is_behind_it(service: RunningService, admin: AdminClient) -> None:
    """Plans, prices and models as configured; no address and no secret of a backend."""
    answer = admin.ask("GET", "/catalogue")
    found = answer.json
    configured = service.configuration.catalogue
    assert [plan["name"] for plan in found["plans"]] == list(configured.plans)
    assert [(model["id"], model["credits"]) for model in found["models"]] == [
        (model.id, model.credits) for model in configured.models.values()
    ]
    assert (found["default_model"], found["currency"], found["time_zone"]) == ("test/one", "IRT", "UTC")
    assert found["payg"] == {"requests_per_minute": 500, "models": ["test/one", "test/two"]}
    assert_tells_nothing_of_servers(answer.body)


def test_the_backends_are_shown_as_the_command_shows_them(service: RunningService, admin: AdminClient) -> None:
    """Member for member, but without addresses."""
    answer = admin.ask("GET", "/backends")
    shown = service.json("backend", "list")
    hidden = {"url", "host"}
    assert answer.json["data"] == [{name: of[name] for name in of if name not in hidden} for of in shown]
    assert {of["health"] for of in answer.json["data"]} == {"ready"}
    assert_tells_nothing_of_servers(answer.body)


def assert_tells_nothing_of_servers(body: bytes) -> None:
    """Assert that neither an address nor a key nor the name of a key's variable is in it."""
    for secret in ("127.0.0.1", "http", BACKEND_KEY, "BACKEND_KEY"):
        assert secret.encode() not in body


def test_the_audit_finds_what_is_there(service: RunningService, admin: AdminClient) -> None:
    """Books that balance, a figure that was changed by hand, and books that balance again."""
    account_id = admin.new_account()
    assert admin.ask("POST", "/audit").json["balanced"] is True
    set_balance(service, account_id, 5)
    try:
        found = admin.ask("POST", "/audit").json
    finally:
        set_balance(service, account_id, 0)
    assert (found["balanced"], found["found"]) == (False, 1)
    assert found["differences"] == [
        {"account_id": account_id, "figure": "balance", "subject": "", "booked": 5, "computed": 0}
    ]


def set_balance(service: RunningService, account_id: str, balance: int) -> None:
    """Change a figure by hand."""
    with service.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE accounts SET balance = {balance} WHERE id = '{account_id}'")  # noqa: S608 - own words


def test_audits_at_once_are_done_or_refused(admin: AdminClient) -> None:
    """One at a time: each is answered in full, or told that another is running."""
    for answer in at_once([partial(admin.ask, "POST", "/audit")] * 8):
        if answer.status == 200:
            assert answer.json["balanced"] is True
        else:
            assert assert_domain_error(answer, 409, "audit_running") == {}
    assert admin.ask("POST", "/audit").status == 200


def test_the_trail_comes_in_pages(service: RunningService, admin: AdminClient) -> None:
    """Newest first, each act once, with who, when and what; of one account alone if asked for."""
    account_id = admin.new_account(name="trail")
    for status in ("blocked", "active"):
        admin.ask("PATCH", f"/accounts/{account_id}", {"status": status})
    path = f"/trail?account_id={account_id}&limit=2"
    first = admin.get(path)
    second = admin.get(f"{path}&before={first['data'][-1]['id']}")
    assert (first["limit"], first["more"], second["more"]) == (2, True, False)
    acts = first["data"] + second["data"]
    assert [act["act"] for act in acts] == ["account.set", "account.set", "account.create"]
    assert acts[0]["detail"] == {"status": ["blocked", "active"]}
    assert {(act["made_by"], act["via"], act["account_id"]) for act in acts} == {(admin.name, Via.TOKEN, account_id)}
    assert len({act["id"] for act in acts}) == 3
    newest = admin.get("/trail?limit=1")["data"]
    assert [act["id"] for act in newest] == [row for (row,) in look(service, "SELECT max(id) FROM acts")]


def test_looking_leaves_no_act(service: RunningService) -> None:
    """Neither do requests that are refused."""
    program = admin_client(service)
    for path in ("/accounts", "/trail", "/intake", "/backends", "/catalogue"):
        program.get(path)
    program.ask("POST", "/accounts", {"name": ""})
    program.ask("POST", "/audit")
    assert program.acts() == []


def test_the_contract_needs_no_token(service: RunningService) -> None:
    """It and its page are there for everybody; the page loads nothing."""
    contract = service.request("GET", f"{ADMIN_API_PATH}/openapi.json")
    assert contract.json["servers"] == [{"url": f"http://127.0.0.1:{service.port}{ADMIN_API_PATH}"}]
    page = service.request("GET", "/docs/admin")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert contract.json["info"]["title"].encode() in page.body


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/intake/", "/intake%0A", "/Intake", "/accounts/acc_1/nothing"])
def test_a_path_that_there_is_not(admin: AdminClient, path: str) -> None:
    """Paths are matched to the last character."""
    assert_own_error(admin.ask("GET", path), 404)


def test_a_method_that_a_path_does_not_take(admin: AdminClient) -> None:
    """405, with all methods that it does take."""
    for path, methods in {"/accounts": {"GET", "HEAD", "POST"}, "/intake": {"GET", "HEAD", "PUT"}}.items():
        answer = admin.ask("DELETE", path)
        assert_own_error(answer, 405)
        assert set(answer.headers["allow"].split(", ")) == methods


def test_head_is_get_without_a_body(admin: AdminClient) -> None:
    """With the same status and headers."""
    answer = admin.ask("HEAD", "/intake")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) == len(admin.ask("GET", "/intake").body)


def test_while_the_books_are_out_of_reach_everything_is_503(service: RunningService, admin: AdminClient) -> None:
    """Also for a token that is no good, since nobody can tell; and well again right after."""
    calls = [
        partial(admin.ask, "GET", "/accounts"),
        partial(admin.ask, "POST", "/accounts", {"name": "x"}),
        partial(admin.ask, "POST", "/audit"),
        partial(admin_client(service).ask, "GET", "/catalogue"),
    ]
    with books_out_of_reach(service):
        answers = at_once(calls)
    for answer in answers:
        assert_domain_error(answer, 503, "unavailable")
    assert [call().status for call in calls] == [200, 201, 200, 200]


def test_while_the_books_are_written_completions_are_in_nobodys_way(
    service: RunningService, admin: AdminClient
) -> None:
    """An act that waits for the books in vain is 503, and the event loop serves others meanwhile."""
    with books_being_written(service):
        waiting, health = at_once(
            [
                partial(admin.ask, "POST", "/accounts", {"name": "waits"}),
                partial(admin.ask, "GET", "/openapi.json"),
            ]
        )
    assert_domain_error(waiting, 503, "unavailable")
    assert health.status == 200
    assert admin.get("/accounts?search=waits")["data"] == []
