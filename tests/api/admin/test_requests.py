"""One request, by the id that its caller was given."""

import pytest

from tarazu.service.identifiers import request_id_of
from tests.support.admin import AdminClient
from tests.support.backend import ScriptedBackend, answers
from tests.support.service import RunningService

pytestmark = pytest.mark.both_stores


def test_an_answer_leads_to_its_request(
    service: RunningService, admin: AdminClient, module_backend: ScriptedBackend
) -> None:
    """By either id, for a program and for a command: whose it was, what it cost, and what has become of it."""
    module_backend.reset()
    customer = service.customer()
    served = service.chat(customer, model="test/two")
    module_backend.behaviour = answers(b"{}", 500)
    failed = service.chat(customer)
    module_backend.reset()
    for answer, expected in (
        (
            served,
            {"model": "test/two", "credits": 2, "credits_charged": 2, "state": "charged", "tries": 1, "source": "plan"},
        ),
        (failed, {"model": "test/one", "credits": 1, "credits_charged": 0, "state": "released", "source": "plan"}),
    ):
        request_id = answer.headers["x-request-id"]
        found = admin.get(f"/requests/{request_id}")
        assert found["request_id"] == request_id
        assert admin.get(f"/requests/{found['id']}") == found
        assert found | expected == found
        assert (found["account_id"], found["key_id"]) == (customer.account_id, customer.key_id)
        assert service.json("request", request_id) == service.json("request", found["id"]) == found
    assert served.json["id"] == admin.get(f"/requests/{request_id_of(served.json['id'])}")["id"]


@pytest.mark.parametrize("request_id", ["req_none", "chatcmpl_none", "acc_1"])
def test_what_is_no_request_is_not_there(service: RunningService, admin: AdminClient, request_id: str) -> None:
    """The command says where to look on."""
    answer = admin.ask("GET", f"/requests/{request_id}")
    assert (answer.status, answer.code) == (404, "not_found")
    ran = service.run("request", request_id)
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"tarazu: There is no request '{request_id}'.")
    assert "log" in ran.stderr
