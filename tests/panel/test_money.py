"""What holders are told of their credits, and how the shop is paid and asked, on every page that it concerns."""

from collections.abc import Iterator

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.service import CATALOGUE, CHAT, Answer, RunningService, checked
from tests.support.visitor import Holder, Visitor, holder

PAYMENT = "https://pay.example.com/top-up?shop=7"
CONTACT = "help@example.com"
SHOP = f"""
[plans.tiny]
monthly_credits = 5
models = ["test/one"]

[plans.tiny-and-free]
monthly_credits = 5
models = ["test/one", "test/free"]

[shop]
name = "Acme"
payment_url = "{PAYMENT}"
contact = "{CONTACT}"
"""
PAGES = ("/", "/keys", "/keys/new", "/models", "/playground", "/history", "/credits", "/settings")
LOW = "80% of your quota is used, or more, and your balance adds little"
NONE = "Your credits do not pay for any model now: requests are refused."
FREE_ONLY = "only free models answer"
NO_OFFER = "neither a plan nor a balance"


@pytest.fixture(scope="module")
def shop(module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose shop has a name, a page for payments and a contact."""
    folder = tmp_path_factory.mktemp("shop")
    with checked(RunningService(folder, module_backend.url, catalogue=CATALOGUE + SHOP)) as running:
        yield running


def spend(service: RunningService, person: Holder, times: int) -> list[Answer]:
    """Send requests of one credit."""
    key = service.provisioning.create_key(person.account_id, name="spender").secret
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = '{"prompt": "Hello", "model": "test/one"}'
    return [service.request("POST", CHAT, body, headers) for _ in range(times)]


@pytest.mark.parametrize(
    ("plan", "balance", "spent", "said"),
    [
        ("tiny", 0, 3, None),
        ("tiny", 0, 4, LOW),
        ("tiny", 0, 5, NONE),
        ("tiny", 5, 5, None),
        ("tiny", 1, 5, LOW),
        ("tiny-and-free", 0, 5, FREE_ONLY),
        (None, 2, 1, None),
        (None, 2, 2, NO_OFFER),
    ],
)
def test_every_page_tells_when_credits_are_low_or_used_up(
    shop: RunningService, plan: str | None, balance: int, spent: int, said: str | None
) -> None:
    """With the day on which the quota is new and the ways to pay and to ask; nothing while there is enough."""
    person = holder(shop, plan, balance=balance)
    assert [answer.status for answer in spend(shop, person, spent)] == [200] * spent
    for path in PAGES:
        page = person.visitor.get(f"/panel{path}")
        assert page.html is not None
        told = [words for words in (LOW, NONE, FREE_ONLY, NO_OFFER) if words in page.text]
        assert told == ([] if said is None else [said]), path
        assert said is None or {PAYMENT, f"mailto:{CONTACT}"} <= set(page.html.values("href")), path
        assert said is None or plan is None or "The quota is full again on 1 " in page.text, path


def test_the_overview_tells_what_is_used_while_there_is_more(shop: RunningService) -> None:
    """Four fifths of the quota while the balance goes on, or of the last top-up; and always when the quota is new."""
    person = holder(shop, "tiny", balance=50)
    assert "Full again on 1 " in person.visitor.get("/panel/").text
    spend(shop, person, 4)
    assert "requests are paid from your balance" in person.visitor.get("/panel/").text
    person = holder(shop, None, balance=5)
    spend(shop, person, 3)
    assert "of your last top-up" not in person.visitor.get("/panel/").text
    spend(shop, person, 1)
    assert "80% of your last top-up is used" in person.visitor.get("/panel/").text


def test_a_refusal_for_lack_of_credits_leads_to_the_payment(shop: RunningService) -> None:
    """In the API's text, whose code and details stay, and in the playground."""
    person = holder(shop, "tiny")
    *_, exhausted = spend(shop, person, 6)
    error = exhausted.json["error"]
    assert (exhausted.status, error["code"], error["details"]["limit"]) == (402, "api_credits_exhausted", 5)
    assert error["message"].endswith(f"Pay here: {PAYMENT}")
    (upgrade,) = spend(shop, holder(shop, None), 1)
    assert (upgrade.status, upgrade.json["error"]["code"]) == (402, "upgrade_required")
    assert upgrade.json["error"]["message"].endswith(f"Pay here: {PAYMENT}")
    person.visitor.get("/panel/playground")
    (key,) = shop.provisioning.active_keys(person.account_id, limit=1)
    refused = person.visitor.send("/panel/playground", prompt="Hello", model="test/one", key=key.id)
    problem = refused.answer.body.decode().split('id="problem"')[1].split("<form")[0]
    assert PAYMENT in problem
    assert "Top up, or choose a cheaper one" in problem


@pytest.mark.parametrize("path", ["/panel/sign-in", "/admin/sign-in", f"/panel/invitation/{'x' * 43}"])
@pytest.mark.parametrize("language", ["en", "fa"])
def test_who_is_not_signed_in_sees_whose_service_it_is(shop: RunningService, path: str, language: str) -> None:
    """Its name and its contact."""
    page = Visitor(shop, language=language).get(path)
    assert page.html is not None
    assert "Acme" in page.text
    assert f"mailto:{CONTACT}" in page.html.values("href")


def test_a_shop_that_says_nothing_of_itself_is_the_operator(service: RunningService) -> None:
    """Its pages have no link that leads nowhere."""
    page = Visitor(service).get("/panel/sign-in")
    assert "Ask the operator of this service for an invitation" in page.text
    person = holder(service, None)
    page = person.visitor.get("/panel/models")
    assert "Ask the operator of this service for a plan or a top-up" in page.text
    assert "Top up" not in page.text
