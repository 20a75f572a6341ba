"""The operators' pages over HTTP, by forms alone: what each act does to the books, and that it stands in the trail."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec import Struct
from sqlalchemy import text
from starlette.routing import Mount, Route

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.calendar import day_of
from tarazu.panel.formats import LEFT_TO_RIGHT
from tarazu.store.engine import transaction
from tarazu.store.trail import Act
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, answers
from tests.support.books import postgresql_only
from tests.support.patience import PATIENCE_S
from tests.support.routes import routed
from tests.support.service import BACKEND_KEY, CHAT, Answer, Customer, RunningService
from tests.support.visitor import PASSWORD, Operator, Page, Visitor, holder, operator

KEY = re.compile(r"trz_[0-9A-Za-z]{50}")
LINK = re.compile(r"http://\S+/panel/invitation/[0-9A-Za-z]{43}")
FORMS = {
    "/accounts/new": {"name": "Eve", "plan": "", "status": "active"},
    "/accounts/new/invited": {"name": "Eve", "email": "eve@example.com", "plan": "", "status": "active"},
    "/accounts/ACCOUNT/name": {"name": "not ours"},
    "/accounts/ACCOUNT/terms": {"plan": "basic", "plan_before": "large"},
    "/accounts/ACCOUNT/status": {"status": "blocked"},
    "/accounts/ACCOUNT/email": {"email": "stolen@example.com"},
    "/accounts/ACCOUNT/invite": {},
    "/accounts/ACCOUNT/invitation": {},
    "/accounts/ACCOUNT/sign-out": {},
    "/accounts/ACCOUNT/credits/add": {"credits": "5", "reference": "not ours"},
    "/accounts/ACCOUNT/credits/correct": {"credits": "5", "why": "not ours"},
    "/accounts/ACCOUNT/keys/new": {"name": "stolen"},
    "/accounts/ACCOUNT/keys/KEY/replace": {"grace": "0"},
    "/accounts/ACCOUNT/keys/KEY/shown": {},
    "/accounts/ACCOUNT/keys/KEY/edit": {"name": "job"},
    "/accounts/ACCOUNT/keys/KEY/pause": {},
    "/accounts/ACCOUNT/keys/KEY/resume": {},
    "/accounts/ACCOUNT/keys/KEY/revoke": {},
    "/intake/stop": {"retry_after_s": "60"},
    "/intake/resume": {},
    "/audit": {},
}
"""Every form of the operators' pages, and what would do something."""
PAGES = (
    "/",
    "/?span=day",
    "/accounts",
    "/accounts.csv",
    "/accounts/new",
    "/accounts/ACCOUNT",
    "/accounts/ACCOUNT/credits",
    "/accounts/ACCOUNT/keys",
    "/accounts/ACCOUNT/keys/new",
    "/accounts/ACCOUNT/keys/KEY",
    "/accounts/ACCOUNT/requests",
    "/accounts/ACCOUNT/requests.csv",
    "/accounts/ACCOUNT/credits.csv",
    "/accounts/ACCOUNT/usage.csv",
    "/accounts/ACCOUNT/trail",
    "/accounts/ACCOUNT/trail.csv",
    "/intake",
    "/catalogue",
    "/audit",
    "/trail",
    "/trail.csv",
)
OF_BOTH_SITES = {"/settings", "/sign-in", "/sign-out", "/invitation", "/language", "/static"}
"""Beginnings of pages that holders have too, with tests of their own."""


class Shop(Struct, frozen=True):
    """A service, an operator who is signed in, and a customer with an email."""

    service: RunningService
    operator: Operator
    customer: Customer

    @property
    def visitor(self) -> Visitor:
        """The operator's browser."""
        return self.operator.visitor

    @property
    def account(self) -> str:
        """The path of the customer's pages."""
        return f"/admin/accounts/{self.customer.account_id}"

    def path(self, page: str) -> str:
        """Write the whole path of a page."""
        return "/admin" + page.replace("ACCOUNT", self.customer.account_id).replace("KEY", self.customer.key_id)

    def newest_act(self) -> Act:
        """Read the newest row of the trail."""
        return self.service.provisioning.trail(limit=1).acts[0]

    def said(self) -> tuple[str, str, str, str | None]:
        """Tell what was done last, by whom, by what way, and to which account."""
        act = self.newest_act()
        return act.act, act.made_by, act.via, act.account_id

    def did(self, act: str) -> tuple[str, str, str, str | None]:
        """Tell what `said` must tell after the operator has done something to the customer."""
        return act, self.operator.email, "operator", self.customer.account_id


@pytest.fixture(scope="module")
def clerk(service: RunningService) -> Operator:
    """An operator, for the module."""
    return operator(service)


@pytest.fixture
def shop(service: RunningService, clerk: Operator, backend: ScriptedBackend) -> Shop:
    """The shop with a customer of this test's own, and a model that answers."""
    assert backend.received == []
    provisioning = service.provisioning
    name = f"Customer {len(provisioning.accounts())}"
    account = provisioning.create_account(name=name, email=f"{name.replace(' ', '')}@example.com", plan="large")
    issued = provisioning.create_key(account.id, name="laptop")
    clerk.visitor.get("/admin/settings")
    return Shop(service, clerk, Customer(account.id, issued.key.id, issued.secret))


def call(service: RunningService, secret: str, model: str = "test/one") -> Answer:
    """Send a request with a key."""
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    return service.request("POST", CHAT, f'{{"prompt": "Hello", "model": "{model}"}}', headers)


def clean(page: Page) -> str:
    """Read a page without the marks that keep a sign before its digits."""
    return page.text.replace(LEFT_TO_RIGHT, "")


async def own_routes() -> list[Route]:
    """List the routes of the operators' pages in an application on the demo catalogue, with books in this folder."""
    starlette = routed()
    async with starlette.router.lifespan_context(starlette):
        mounted: dict[str, Any] = {each.path: each.app for each in starlette.routes if isinstance(each, Mount)}
        pages = mounted["/admin"]._app
        return [route for route in pages.routes if "/" + route.path.split("/")[1] not in OF_BOTH_SITES]


def test_every_page_and_form_is_tried_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A route that is added must be added to FORMS or PAGES too."""
    monkeypatch.chdir(tmp_path)
    found: dict[str, set[str]] = {
        route.path.replace("{account_id}", "ACCOUNT").replace("{key_id}", "KEY"): route.methods or set()
        for route in asyncio.run(own_routes())
    }
    assert {path for path, methods in found.items() if "POST" in methods} == set(FORMS)
    assert {path for path, methods in found.items() if "POST" not in methods} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_for_operators_alone(shop: Shop, page: str) -> None:
    """Nobody else gets further than the door, and no holder by any cookie; in both languages it can be shown."""
    assert shop.visitor.get(shop.path(page)).status == 200
    assert shop.visitor.get(shop.path(page), **{"Accept-Language": "fa"}).status == 200
    assert Visitor(shop.service).get(shop.path(page)).leads_to.startswith("/admin/sign-in")


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_taken_from_operators_alone(shop: Shop, form: str) -> None:
    """Not without a session, not with a holder's, not without what the session's pages put into their forms."""
    before = shop.newest_act()
    path, fields = shop.path(form), FORMS[form]
    assert Visitor(shop.service).send(path, **fields).leads_to.startswith("/admin/sign-in")
    assert shop.visitor.send(path, csrf="", **fields).status == 403
    assert shop.visitor.send_body(path, "", Origin="https://evil.example").status == 403
    assert shop.newest_act() == before


def test_a_holders_session_does_nothing_here(shop: Shop) -> None:
    """Also where its cookie is sent under the operators' name, with the form's secret that belongs to it."""
    person = holder(shop.service)
    person.visitor.get("/panel/settings")
    person.visitor.cookies["tarazu_admin"] = person.visitor.cookies["tarazu_panel"]
    before = shop.newest_act()
    for form, fields in FORMS.items():
        assert person.visitor.send(shop.path(form), **fields).leads_to.startswith("/admin/sign-in")
    assert shop.newest_act() == before


def test_an_account_is_opened(shop: Shop) -> None:
    """With name, email, plan and status; its page says so."""
    sent = {"name": "Noor", "email": "Noor@Example.com", "plan": "basic", "status": "unverified"}
    opened = shop.visitor.send("/admin/accounts/new", **sent)
    account = shop.service.provisioning.account(opened.leads_to.partition("?")[0].rpartition("/")[2])
    assert (account.name, account.email, account.plan) == ("Noor", "noor@example.com", "basic")
    assert account.status is AccountStatus.UNVERIFIED
    act = shop.newest_act()
    assert (act.act, act.made_by, act.account_id) == ("account.create", shop.operator.email, account.id)
    page = shop.visitor.follow(opened)
    assert "The account is created." in page.text
    assert "noor@example.com" in page.text


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"name": " "}, 422, "The name is missing. Write one."),
        ({"email": "nowhere"}, 422, "is no email address"),
        ({"email": "taken@example.com"}, 409, "There is an account with the email taken@example.com already"),
        ({"plan": "no/such"}, 422, "There is no plan"),
    ],
)
def test_an_account_that_cannot_be_is_refused_in_words(
    shop: Shop, fields: dict[str, str], status: int, said: str
) -> None:
    """What was written stays in the form, and nothing is opened."""
    if shop.visitor.get("/admin/accounts?search=taken@example.com").text.count("taken@example.com") == 0:
        shop.service.provisioning.create_account(name="Taken", email="taken@example.com")
    before = shop.newest_act()
    refused = shop.visitor.send("/admin/accounts/new", **{"name": "kept", "status": "active", **fields})
    assert refused.status == status
    assert said in refused.text
    assert refused.field("name") == fields.get("name", "kept")
    assert shop.newest_act() == before
    assert shop.visitor.send("/admin/accounts/new", name="x", status="dead").status == 400


def test_an_account_is_opened_and_its_holder_invited_at_once(shop: Shop) -> None:
    """By one form, whose link is shown; one without an email, or blocked, is refused before anything is opened."""
    sent = {"name": "Nika", "email": "nika@example.com", "plan": "basic", "status": "active"}
    before = shop.newest_act()
    for wrong, said in (
        ({"email": " "}, "An invitation needs an email."),
        ({"status": "blocked"}, "cannot be invited"),
    ):
        refused = shop.visitor.send("/admin/accounts/new/invited", **{**sent, **wrong})
        assert (refused.status, said in refused.text, refused.field("name")) == (422, True, "Nika")
    assert shop.newest_act() == before
    shown = shop.visitor.send("/admin/accounts/new/invited", **sent)
    (link,) = LINK.findall(shown.text)
    opened, invited = shop.service.provisioning.trail(limit=2).acts[::-1]
    assert (opened.act, invited.act, opened.account_id) == ("account.create", "account.invite", invited.account_id)
    guest = Visitor(shop.service)
    path = link.removeprefix(f"http://127.0.0.1:{shop.service.port}")
    assert guest.get(path).status == 200
    assert guest.follow(guest.send(path, password=PASSWORD)).status == 200


def test_an_account_is_renamed(shop: Shop) -> None:
    """Its page says so, and tells when it was opened and when its last request came."""
    assert "Last request none so far" in shop.visitor.get(shop.account).text
    renamed = shop.visitor.send(f"{shop.account}/name", name="Zeynab")
    assert shop.said() == shop.did("account.set")
    assert shop.newest_act().detail["name"][1] == "Zeynab"
    assert "The account has its new name." in shop.visitor.follow(renamed).text
    assert call(shop.service, shop.customer.secret).status == 200
    assert re.search(r"Opened \d+ \w+ \d{4}, \d\d:\d\d Last request \d+ \w+ \d{4}", shop.visitor.get(shop.account).text)
    refused = shop.visitor.send(f"{shop.account}/name", name=" ")
    assert (refused.status, "The name is missing" in refused.text) == (422, True)
    assert shop.service.account(shop.customer).name == "Zeynab"


def test_accounts_are_found_by_what_is_known_of_them(shop: Shop) -> None:
    """By id, by email, by a part of the name; and it is said where there is none."""
    account = shop.service.account(shop.customer)
    for search in (account.id, (account.email or "").upper(), account.name.upper()):
        assert account.id in shop.visitor.get(f"/admin/accounts?search={search.replace(' ', '+')}").text
    assert "No such account" in shop.visitor.get("/admin/accounts?search=no+such+one").text


def test_long_lists_of_accounts_have_pages(shop: Shop) -> None:
    """Each account stands on one of them."""
    for number in range(30):
        shop.service.provisioning.create_account(name=f"Paged {number}")
    first = shop.visitor.get("/admin/accounts?search=Paged&order=name")
    assert first.html is not None
    assert "30 accounts" in first.text
    assert "1 to 25 of 30" in first.text
    to_last = first.html.values("href", "a")
    last = shop.visitor.get(next(link for link in to_last if "page=2" in link))
    assert last.html is not None
    assert "26 to 30 of 30" in last.text
    shown = [link for page in (first.html, last.html) for link in page.values("href", "a") if "/accounts/acc_" in link]
    assert len(shown) == len(set(shown)) == 30
    beyond = shop.visitor.get("/admin/accounts?search=Paged&order=name&page=99")
    assert "26 to 30 of 30" in beyond.text
    first_again = shop.visitor.get("/admin/accounts?search=Paged&order=name&page=none&status=none")
    assert "1 to 25 of 30" in first_again.text


def test_accounts_come_as_a_file(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are looked for, however many, with what each has left; one that is named alone."""
    monkeypatch.setattr("tarazu.service.csv_files.PART_LINES", 3)
    books = shop.service.provisioning
    opened = [books.create_account(name=f"=Filed {number}", plan="basic").id for number in range(7)]

    def lines(query: str) -> list[str]:
        return shop.visitor.get(f"/admin/accounts.csv?{query}").answer.body.decode("utf-8-sig").splitlines()[1:]

    found = lines("search=filed&order=name")
    assert [line.split(",")[:2] for line in found] == [[id_, f"'=Filed {n}"] for n, id_ in enumerate(opened)]
    assert all(",basic,active," in line and ",0,10,0," in line for line in found)
    assert lines("search=filed&status=blocked") == lines("search=filed&plan=large") == []
    assert call(shop.service, shop.customer.secret).status == 200
    (one,) = lines(f"search={shop.customer.account_id}")
    assert re.search(r",1,1000000,0,\S+Z,\S+Z$", one)


def test_accounts_are_narrowed_and_ordered(shop: Shop) -> None:
    """By plan, also by that of none, by status, and as the operator likes."""
    books = shop.service.provisioning
    rich = books.create_account(name="Narrowed b", plan="basic")
    poor = books.create_account(name="narrowed A", status=AccountStatus.BLOCKED)
    books.add_credit(rich.id, 5_000, reference="narrowed")

    def listed(query: str) -> list[str]:
        html = shop.visitor.get(f"/admin/accounts?search=narrowed&{query}").html
        assert html is not None
        return [link.rpartition("/")[2] for link in html.values("href", "a") if "/accounts/acc_" in link]

    assert listed("order=newest") == listed("order=name") == [poor.id, rich.id]
    assert listed("order=oldest") == listed("order=balance") == [rich.id, poor.id]
    assert listed("plan=basic") == listed("status=active") == [rich.id]
    assert listed("plan=none") == listed("status=blocked") == [poor.id]
    assert listed("plan=basic&status=blocked") == []


def test_plan_and_status_are_changed(shop: Shop) -> None:
    """They hold from the next request on."""
    changed = shop.visitor.send(f"{shop.account}/terms", plan="basic", plan_before="large")
    assert shop.said() == shop.did("account.set")
    assert shop.newest_act().detail == {"plan": ["large", "basic"]}
    assert "The account is changed." in shop.visitor.follow(changed).text
    stopped = shop.visitor.send(f"{shop.account}/status", status="blocked")
    account = shop.service.account(shop.customer)
    assert (account.plan, account.status) == ("basic", AccountStatus.BLOCKED)
    assert call(shop.service, shop.customer.secret).status == 403
    assert shop.newest_act().detail == {"status": ["active", "blocked"]}
    assert "The account is not active any more." in shop.visitor.follow(stopped).text
    started = shop.visitor.send(f"{shop.account}/status", status="active")
    assert "The account is changed." in shop.visitor.follow(started).text
    assert call(shop.service, shop.customer.secret).status == 200


def test_an_email_is_changed_and_shuts_out_who_had_the_old_one(shop: Shop) -> None:
    """Who signed in with it is out; one that another account has is refused, and stays in the form."""
    person = holder(shop.service)
    path = f"/admin/accounts/{person.account_id}"
    changed = shop.visitor.send(f"{path}/email", email=f"new-{person.email}")
    assert "The email is changed." in shop.visitor.follow(changed).text
    assert shop.service.provisioning.account(person.account_id).email == f"new-{person.email}"
    assert person.visitor.get("/panel/").leads_to.startswith("/panel/sign-in")
    assert person.visitor.send("/panel/sign-in", email=f"new-{person.email}", password=PASSWORD).status == 422
    other = shop.service.account(shop.customer).email
    refused = shop.visitor.send(f"{path}/email", email=str(other))
    assert (refused.status, refused.field("email")) == (409, other)
    assert "already" in refused.text
    nameless = shop.service.provisioning.create_account(name="Nameless")
    shop.visitor.send(f"/admin/accounts/{nameless.id}/email", email="named@example.com")
    assert shop.visitor.send(f"/admin/accounts/{nameless.id}/invite").status == 200


def test_a_change_leaves_alone_what_the_form_has_not_changed(shop: Shop) -> None:
    """Somebody else may have changed it since the form was opened."""
    shop.service.provisioning.set_account(shop.customer.account_id, plan="basic")
    shop.visitor.send(f"{shop.account}/terms", plan="large", plan_before="large")
    shop.visitor.send(f"{shop.account}/status", status="inactive")
    account = shop.service.account(shop.customer)
    assert (account.plan, account.status) == ("basic", AccountStatus.INACTIVE)


def test_credits_are_added_once_for_a_reference(shop: Shop) -> None:
    """The same form again adds nothing, and says so."""
    sent = {"credits": "۱٬۵۰۰", "reference": f"invoice of {shop.customer.account_id}", "why": "card"}
    added = shop.visitor.send(f"{shop.account}/credits/add", **sent)
    assert shop.said() == shop.did("credit.add")
    assert "Credits added: 1,500. The balance is now 1,500." in shop.visitor.follow(added).text
    again = shop.visitor.follow(shop.visitor.send(f"{shop.account}/credits/add", **sent))
    assert "A top-up of 1,500 with this reference was there already; nothing was added again." in again.text
    assert "+1,500" in again.text
    assert shop.service.account(shop.customer).balance == 1500
    taken = shop.visitor.send(f"{shop.account}/credits/add", **{**sent, "credits": "7"})
    assert taken.status == 409
    assert "was used before, for 1,500 credits" in taken.text


@pytest.mark.parametrize("written", ["1,5", "1,00", "12,34", "1 5", "۱،۵", ",,5", "0,500"])
def test_a_fraction_with_a_comma_adds_nothing(shop: Shop, written: str) -> None:
    """It is refused in both forms, shown as it was written, and the balance stays."""
    for path in ("add", "correct"):
        sent = {"credits": written, "reference": f"{written} {path} {shop.customer.account_id}", "why": "a slip"}
        refused = shop.visitor.send(f"{shop.account}/credits/{path}", **sent)
        assert refused.status == 422
        assert "The number of credits must be a whole number." in refused.text
        assert written in refused.answer.body.decode()
    assert shop.service.account(shop.customer).balance == 0


def test_a_balance_is_corrected_but_not_below_zero(shop: Shop) -> None:
    """Up or down, with its reason; with a reference once."""
    path = f"{shop.account}/credits/correct"
    corrected = shop.visitor.send(path, credits="+40", why="goodwill")
    assert shop.said() == shop.did("credit.adjust")
    assert "Balance corrected by +40. It is now 40." in clean(shop.visitor.follow(corrected))
    for said in (
        "Balance corrected by −15. It is now 25.",
        "A correction of −15 with this reference was there already",
    ):
        sent = {"credits": "-15", "why": "too much", "reference": f"once {shop.customer.account_id}"}
        assert said in clean(shop.visitor.follow(shop.visitor.send(path, **sent)))
    assert shop.service.account(shop.customer).balance == 25
    refused = shop.visitor.send(path, credits="-26", why="too much again")
    assert refused.status == 409
    assert "may not be below zero" in refused.text
    assert shop.service.account(shop.customer).balance == 25


@pytest.mark.parametrize(
    ("form", "fields", "said"),
    [
        ("add", {"credits": "", "reference": "r"}, "Write how many credits."),
        ("add", {"credits": "many", "reference": "r"}, "The number of credits must be a whole number."),
        ("add", {"credits": "9" * 5000, "reference": "r"}, "The number of credits must be a whole number."),
        ("add", {"credits": "-5", "reference": "r"}, "The amount must be a whole number from 1"),
        ("add", {"credits": "5", "reference": " "}, "The reference is missing. Write one."),
        ("correct", {"credits": "0", "why": "w"}, "but 0, not 0"),
        ("correct", {"credits": "5", "why": ""}, "The reason is missing. Write one."),
    ],
)
def test_credits_that_cannot_be_are_refused_in_words(shop: Shop, form: str, fields: dict[str, str], said: str) -> None:
    """What was written stays in the form that it was written into, and the balance as it was."""
    refused = shop.visitor.send(f"{shop.account}/credits/{form}", **fields)
    assert refused.status == 422
    assert said in refused.text
    assert refused.html is not None
    written = [a["value"] for _, a in refused.html.elements if a.get("id") == f"{form}-credits"]
    assert written == [fields["credits"]]
    assert shop.service.account(shop.customer).balance == 0


def test_a_holder_is_invited_by_a_link_that_is_shown_once(shop: Shop) -> None:
    """It lets the holder in; the account's page does not show it again."""
    shown = shop.visitor.send(f"{shop.account}/invite")
    (link,) = LINK.findall(shown.text)
    assert shop.said() == shop.did("account.invite")
    assert "/panel/invitation/" not in shop.visitor.get(shop.account).answer.body.decode()
    guest = Visitor(shop.service)
    path = link.removeprefix(f"http://127.0.0.1:{shop.service.port}")
    assert guest.get(path).status == 200
    assert guest.follow(guest.send(path, password=PASSWORD)).status == 200


def test_who_cannot_sign_in_is_not_invited(shop: Shop) -> None:
    """Without an email there is no form for it; a blocked account's is refused in words."""
    nameless = shop.service.provisioning.create_account(name="No email")
    assert "has no email address" in shop.visitor.get(f"/admin/accounts/{nameless.id}").text
    assert shop.visitor.send(f"/admin/accounts/{nameless.id}/invite").status == 409
    shop.service.provisioning.set_account(shop.customer.account_id, status=AccountStatus.BLOCKED)
    refused = shop.visitor.send(f"{shop.account}/invite")
    assert refused.status == 409
    assert "is blocked" in refused.text


def test_a_holder_is_signed_out_everywhere(shop: Shop) -> None:
    """From the next page on."""
    person = holder(shop.service)
    assert person.visitor.get("/panel/").status == 200
    out = shop.visitor.send(f"/admin/accounts/{person.account_id}/sign-out")
    act = shop.newest_act()
    assert (act.act, act.account_id, act.detail) == ("account.sign_out", person.account_id, {"sessions": 1})
    assert "signed out everywhere" in shop.visitor.follow(out).text
    assert person.visitor.get("/panel/").leads_to.startswith("/panel/sign-in")


def test_a_key_is_created_replaced_and_revoked(shop: Shop) -> None:
    """Each whole key is shown once; what has ended is refused from the next request on."""
    path = f"{shop.account}/keys"
    shown = shop.visitor.send(f"{path}/new", name="job", limit="5", models="test/two")
    (first,) = KEY.findall(shown.text)
    first_id = "key_" + first[4:16]
    assert shop.said() == shop.did("key.create")
    assert shop.service.provisioning.key(first_id).models == ("test/two",)
    assert call(shop.service, first, "test/two").status == 200
    (second,) = KEY.findall(shop.visitor.send(f"{path}/{first_id}/replace", grace="0").text)
    second_id = "key_" + second[4:16]
    assert shop.said() == shop.did("key.replace")
    assert [call(shop.service, each, "test/two").status for each in (first, second)] == [401, 200]
    assert shop.visitor.send(f"{path}/{first_id}/replace", grace="0").status == 409
    revoked = shop.visitor.follow(shop.visitor.send(f"{path}/{second_id}/revoke"))
    assert shop.said() == shop.did("key.revoke")
    assert "The key is revoked." in revoked.text
    assert KEY.search(revoked.answer.body.decode()) is None
    assert call(shop.service, second, "test/two").status == 401


def test_a_key_that_cannot_be_is_refused_in_words(shop: Shop) -> None:
    """What was written stays in the form."""
    refused = shop.visitor.send(f"{shop.account}/keys/new", name="kept", days="day", until="soon")
    assert refused.status == 422
    assert "Write dates as year, month and day" in refused.text
    assert (refused.field("name"), refused.field("until")) == ("kept", "soon")


def test_a_key_under_another_account_does_not_exist(shop: Shop) -> None:
    """So nobody revokes the wrong one by an address that was put together wrongly."""
    other = shop.service.customer()
    for path in (f"{shop.account}/keys/{other.key_id}", "/admin/accounts/acc_0", "/admin/accounts/acc_0/credits"):
        assert shop.visitor.get(path).status == 404
    assert shop.visitor.send(f"{shop.account}/keys/{other.key_id}/revoke").status == 404
    assert shop.visitor.send(f"{shop.account}/keys/{other.key_id}/replace", grace="0").status == 404
    assert shop.service.provisioning.key(other.key_id).revoked_at_ms is None


@pytest.fixture
def switch(shop: Shop) -> Iterator[Shop]:
    """A shop whose intake runs again after the test."""
    yield shop
    shop.service.provisioning.resume_intake()


def test_intake_is_stopped_and_resumed(switch: Shop) -> None:
    """Callers are told when to come again; the first page and the switch say how it stands."""
    stopped = switch.visitor.send("/admin/intake/stop", retry_after_s="120")
    assert switch.said() == ("intake.stop", switch.operator.email, "operator", None)
    assert "120 seconds" in switch.visitor.follow(stopped).text
    refused = call(switch.service, switch.customer.secret)
    assert (refused.status, refused.headers["retry-after"]) == (503, "120")
    assert "Traffic is off" in switch.visitor.get("/admin/").text
    resumed = switch.visitor.send("/admin/intake/resume")
    assert switch.said() == ("intake.resume", switch.operator.email, "operator", None)
    assert "Requests are accepted again." in switch.visitor.follow(resumed).text
    assert call(switch.service, switch.customer.secret).status == 200


@pytest.mark.parametrize("seconds", ["", "0", "86401", "soon"])
def test_a_retry_time_that_cannot_be_is_refused_in_words(switch: Shop, seconds: str) -> None:
    """The switch stays as it was."""
    refused = switch.visitor.send("/admin/intake/stop", retry_after_s=seconds)
    assert refused.status == 422
    assert refused.field("retry_after_s") == seconds
    assert not switch.service.provisioning.intake().stopped


def test_the_shop_shows_what_has_happened(shop: Shop, backend: ScriptedBackend) -> None:
    """Requests, failures, times and the accounts that spent most, as soon as they are in the books."""
    assert call(shop.service, shop.customer.secret, "test/two").status == 200
    backend.behaviour = answers(b"{}", 500)
    assert call(shop.service, shop.customer.secret, "test/two").status == 502
    wait_until(lambda: shop.service.account(shop.customer).used == 2)  # the other hold is released after its answer
    for path in ("/admin/", "/admin/?span=day"):
        page = shop.visitor.get(path).text
        assert re.search(r"test/two \d+ [1-9]\d* \d+ [\d.]+ m?s [\d.]+ m?s", page), page
        assert shop.service.account(shop.customer).name in page
        assert "test/one#1" in page
    requests = shop.visitor.get(f"{shop.account}/requests").text
    assert "succeeded" in requests
    assert "failed, not charged" in requests


def test_the_first_page_begins_with_what_needs_care(switch: Shop) -> None:
    """Before all figures, each with a way to where it is seen to; backends that are ready are counted, and folded."""
    books = switch.service.provisioning
    books.create_account(name="Unverified", status=AccountStatus.UNVERIFIED)
    books.stop_intake(retry_after_s=60)
    page = switch.visitor.get("/admin/")
    assert page.html is not None
    assert page.text.index("Needs attention") < page.text.index("Last hour")
    assert re.search(r"\d+ accounts? (is|are) not verified", page.text)
    assert "/admin/accounts?status=unverified" in page.html.values("href", "a")
    assert "Traffic is off" in page.text
    assert re.search(r"\d+ ready", page.text)
    assert page.text.index("Last 24 hours by hour") < page.text.rindex("By model")
    week = switch.visitor.get("/admin/?range=7").text
    assert "credits in 7 days" in week
    assert "Write dates" in switch.visitor.get("/admin/?until=x").text


def test_a_request_is_found_by_what_its_caller_was_told(shop: Shop) -> None:
    """By the id of its answer or its own: it leads to the account, and on its page to the request."""
    answer = call(shop.service, shop.customer.secret, "test/two")
    name = shop.service.account(shop.customer).name
    for id_ in (answer.json["id"], answer.headers["x-request-id"]):
        assert name in shop.visitor.get(f"/admin/accounts?search={id_}").text
        assert "test/two" in shop.visitor.get(f"{shop.account}/requests?id={id_}").text
    nothing = shop.visitor.get(f"{shop.account}/requests?id=req_none")
    assert nothing.status == 404
    assert "No such request" in nothing.text


def test_the_catalogue_shows_prices_and_servers_but_no_key(shop: Shop) -> None:
    """Credits and tomans; a host, and nothing that opens it."""
    page = shop.visitor.get("/admin/catalogue")
    for shown in ("Test One", "test/one#1", "backend-name", "150 toman", "2,000,000 credits", "narrow"):
        assert shown in page.text
    assert BACKEND_KEY not in page.answer.body.decode()
    assert "BACKEND_KEY" not in page.answer.body.decode()


def test_the_catalogue_says_how_the_file_stands_to_it(shop: Shop) -> None:
    """Nothing while it is in force; that there are changes, or problems, where a reload would find some."""
    file = shop.service.config
    before = file.read_text()
    assert "tarazu reload" not in shop.visitor.get("/admin/catalogue").text
    try:
        file.write_text(before.replace("Test One", "Test Uno"))
        assert "changes that are not in force" in shop.visitor.get("/admin/catalogue").text
        file.write_text(before + "\n[nonsense]\n[more]\n")
        broken = shop.visitor.get("/admin/catalogue")
        assert "has 2 problems, so a reload is refused" in broken.text
        assert "nonsense" not in broken.text
    finally:
        file.write_text(before)
    assert "in force" not in shop.visitor.get("/admin/catalogue").text


def test_the_catalogue_is_searched(shop: Shop) -> None:
    """Models by what they are called, backends by where they are too."""

    def listed(search: str) -> tuple[bool, bool]:
        text = shop.visitor.get(f"/admin/catalogue?search={search}").text
        return "test/one" in text, "test/two" in text

    assert listed("") == (True, True)
    assert listed("TEST/ONE") == (True, False)
    assert listed("127.0.0.1") == (True, True)
    assert listed("nobody") == (False, False)
    assert "No backend matches." in shop.visitor.get("/admin/catalogue?search=nobody").text


def test_the_audit_says_that_the_books_balance_or_what_differs(shop: Shop) -> None:
    """With the account, the figure in the books and the one that its rows come to."""
    assert "The books balance." in shop.visitor.send("/admin/audit").text
    spoil(shop, 3)
    try:
        page = shop.visitor.send("/admin/audit").text
    finally:
        spoil(shop, -3)
    assert "The books do not balance: 1 difference." in page
    assert f"{shop.customer.account_id} balance 3 0" in page
    assert "The books balance." in shop.visitor.send("/admin/audit").text


def test_the_first_page_tells_the_last_audit(shop: Shop) -> None:
    """When it was, and what it has found; it stands in the trail too."""
    shop.visitor.send("/admin/audit")
    assert shop.newest_act().act == "books.audit"
    balanced = shop.visitor.get("/admin/").text
    assert "Last audit from these pages" in balanced
    assert "The books balance." in balanced
    spoil(shop, 1)
    try:
        shop.visitor.send("/admin/audit")
    finally:
        spoil(shop, -1)
    assert shop.newest_act().detail == {"differences": 1}
    assert "The last audit found 1 difference in the books." in shop.visitor.get("/admin/").text
    shop.visitor.send("/admin/audit")
    assert "The books balance." in shop.visitor.get("/admin/").text


@postgresql_only
def test_one_audit_runs_at_a_time(shop: Shop) -> None:
    """Whoever asks meanwhile is told to wait; the one that runs ends as ever."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'accounts'::regclass")
    visitor = Visitor(shop.service)
    visitor.cookies, visitor.csrf = dict(shop.visitor.cookies), shop.visitor.csrf
    with ThreadPoolExecutor(1) as threads:
        with transaction(shop.service.engine) as connection:
            connection.execute(text("LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE"))
            first = threads.submit(visitor.send, "/admin/audit")
            wait_until(lambda: first.done() or connection.execute(waiting).scalar_one() > 0)
            second = shop.visitor.send("/admin/audit")
        assert second.status == 409
        assert "An audit is running already." in second.text
        assert "The books balance." in first.result(PATIENCE_S).text


def spoil(shop: Shop, credits_: int) -> None:
    """Change a balance behind the books' back."""
    statement = text("UPDATE accounts SET balance = balance + :credits WHERE id = :id")
    with transaction(shop.service.engine) as connection:
        connection.execute(statement, {"credits": credits_, "id": shop.customer.account_id})


def test_the_trail_tells_who_did_what_and_when(shop: Shop) -> None:
    """Of all accounts or of one, in words."""
    sent = {"plan": "", "plan_before": "large", "status": "active", "status_before": "active"}
    shop.visitor.send(f"{shop.account}/terms", **sent)
    for path in ("/admin/trail", f"{shop.account}/trail", shop.account):
        page = shop.visitor.get(path).text
        assert f"{shop.operator.email} operators' pages account changed" in page
        assert "plan large → none" in page


def test_the_trail_of_an_account_is_found_by_all_that_it_is_known_by(shop: Shop) -> None:
    """Its id, email or name lead to it; where several are called so they are listed, where none is it is said."""
    books = shop.service.provisioning
    one, two = (books.create_account(name=f"Nadia {n}", email=f"nadia.{n}@example.com").id for n in ("Ray", "Roy"))
    for known_by in (one, "nadia.ray@example.com", "nadia ray"):
        found = shop.visitor.get(f"/admin/trail?{urlencode({'account': known_by})}")
        assert found.leads_to == f"/admin/accounts/{one}/trail"
    several = shop.visitor.get("/admin/trail?account=nadia")
    assert several.html is not None
    assert [f"/admin/accounts/{each}/trail" for each in (one, two)] == [
        link for link in several.html.values("href", "a") if link.endswith("/trail") and "/accounts/" in link
    ]
    missing = shop.visitor.get("/admin/trail?account=nobody")
    assert missing.status == 404
    assert "No account has this id, email or name." in missing.text
    assert missing.field("account") == "nobody"


def test_the_trail_is_narrowed_by_what_who_and_when(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any mixture, for all accounts and for one; the same events come as a file."""
    monkeypatch.setattr("tarazu.service.csv_files.PART_LINES", 2)
    for _ in range(3):
        shop.visitor.send(f"{shop.account}/keys/{shop.customer.key_id}/pause")
        shop.visitor.send(f"{shop.account}/keys/{shop.customer.key_id}/resume")
    shop.service.provisioning.add_credit(shop.customer.account_id, 5, reference=f"of {shop.customer.account_id}")
    today = day_of(shop.service.clock(), shop.service.configuration.catalogue.zone)

    def found(page: str, query: str) -> int:
        lines = shop.visitor.get(f"{page}.csv?{query}").answer.body.decode("utf-8-sig").splitlines()
        shown = shop.visitor.get(f"{page}?{query}").answer.body.decode()
        assert min(25, len(lines) - 1) == shown.count("<time ")
        return len(lines) - 1

    path = f"{shop.account}/trail"
    assert found(path, "act=key.pause") == 3
    assert found(path, "who=TESTS") == 3  # the account, its key, its credits
    assert found(path, f"who={shop.operator.email}&act=key.resume&from={today}") == 3
    assert found(path, "act=no.such") == found(path, "who=nobody") == found(path, "until=2001-01-01") == 0
    assert found("/admin/trail", f"who={shop.operator.email}&act=key.pause&until={today}") >= 3
    assert found("/admin/trail", "act=credit.add&until=1380/01/01") == 0
    for page in (path, "/admin/trail"):
        assert "Write dates as year, month and day" in shop.visitor.get(f"{page}?from=soon").text
        assert shop.visitor.get(f"{page}.csv?from=soon").status == 400


def test_a_long_trail_has_pages(shop: Shop) -> None:
    """Each act of an account stands on one of them."""
    for number in range(30):
        shop.service.provisioning.create_key(shop.customer.account_id, name=f"key number {number}")
    first = shop.visitor.get(f"{shop.account}/trail")
    assert first.html is not None
    (older,) = [link for link in first.html.values("href", "a") if "before=" in link]
    shown = first.text + shop.visitor.get(older).text
    assert [shown.count(f"key number {number} ") for number in range(30)] == [1] * 30


def test_operators_do_not_see_what_opens_anything(shop: Shop) -> None:
    """No page shows a whole key, a digest, or a link that was made before."""
    token = shop.service.provisioning.invite_holder(shop.customer.account_id).token
    for page in PAGES:
        body = shop.visitor.get(shop.path(page)).answer.body.decode()
        assert shop.customer.secret not in body
        assert token not in body
