"""A second factor, sessions and the password that is asked for again, as people meet them on both sites."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarazu.domain.second_factor import code_at, secret_of, step_at
from tarazu.domain.sessions import CONFIRMED_MS
from tests.support.backend import ScriptedBackend
from tests.support.service import CATALOGUE, RunningService, checked
from tests.support.stores import Store
from tests.support.visitor import PASSWORD, Holder, Operator, Page, Visitor, holder, operator

SITES: dict[str, Callable[[RunningService], Holder | Operator]] = {"/panel": holder, "/admin": operator}
of_both = pytest.mark.parametrize("site", SITES)


def code_of(page_secret: str, later: int = 0) -> str:
    """Make the code of now as a telephone would."""
    secret = secret_of(page_secret)
    assert secret is not None
    return code_at(secret, step_at(int(time.time() * 1_000)) + later)


def set_up(visitor: Visitor, site: str) -> tuple[str, list[str]]:
    """Set a second factor up; answer with its secret, and the recovery codes."""
    page = visitor.get(f"{site}/settings/second-factor")
    secret = page.field("secret")
    done = visitor.send(f"{site}/settings/second-factor", secret=secret, code=code_of(secret))
    assert done.status == 200
    codes = re.findall(r"\b[0-9A-Za-z]{4}-[0-9A-Za-z]{4}-[0-9A-Za-z]{4}\b", done.text)
    assert len(codes) == 10
    return secret, codes


def sign_in(service: RunningService, site: str, email: str) -> tuple[Visitor, Page]:
    """Give the password in a new browser."""
    visitor = Visitor(service)
    return visitor, visitor.send(f"{site}/sign-in", email=email, password=PASSWORD, next=f"{site}/settings")


@of_both
def test_a_second_factor_is_set_up_used_and_turned_off(service: RunningService, site: str) -> None:
    """By a picture or its text; then a code is asked for after the password, and a wrong one opens nothing."""
    person = SITES[site](service)
    visitor = person.visitor
    asked = visitor.get(f"{site}/settings/second-factor")
    assert asked.html is not None
    assert "qr" in asked.html.values("class", "svg")
    secret = asked.field("secret")
    assert asked.html.values("href", "a")[-1].startswith("otpauth://totp/Tarazu%3A")
    wrong = visitor.send(f"{site}/settings/second-factor", secret=secret, code="000000")
    assert (wrong.status, wrong.field("secret")) == (422, secret)
    _, codes = set_up(visitor, site)
    assert "On: signing in" in visitor.get(f"{site}/settings").text

    other, halfway = sign_in(service, site, person.email)
    assert halfway.status == 200
    assert "tarazu" not in str(other.cookies)
    ticket = halfway.field("ticket")
    refused = other.send(f"{site}/sign-in/code", ticket=ticket, code="000000", next=f"{site}/settings")
    assert (refused.status, refused.field("ticket")) == (422, ticket)
    assert "wrong, or was used" in refused.text
    entered = other.send(f"{site}/sign-in/code", ticket=ticket, code=codes[0], next=f"{site}/settings")
    assert entered.leads_to == f"{site}/settings"
    assert other.follow(entered).status == 200
    again = Visitor(service).send(f"{site}/sign-in/code", ticket=ticket, code=codes[1])
    assert again.status == 422
    assert "Start again with your password" in again.text

    visitor.get(f"{site}/settings/second-factor")
    off = f"{site}/settings/second-factor/remove"
    assert visitor.send(off, password="wrong" * 3, code=codes[1]).status == 422
    assert visitor.send(off, password=PASSWORD, code="").status == 422
    removed = visitor.send(off, password=PASSWORD, code=codes[1])
    assert "The second factor is off" in visitor.follow(removed).text
    assert sign_in(service, site, person.email)[1].leads_to == f"{site}/settings"


@of_both
def test_it_is_set_up_once(service: RunningService, site: str) -> None:
    """A form that comes a second time changes nothing."""
    visitor = SITES[site](service).visitor
    secret, _ = set_up(visitor, site)
    visitor.get(f"{site}/settings/second-factor")
    twice = visitor.send(f"{site}/settings/second-factor", secret=secret, code=code_of(secret, 1))
    assert twice.status == 409
    assert "already" in twice.text


@of_both
def test_sessions_are_listed_and_ended(service: RunningService, site: str) -> None:
    """Each alone, and all others at once; with its own the person leaves."""
    person = SITES[site](service)
    visitor, others = person.visitor, [sign_in(service, site, person.email)[0] for _ in range(3)]
    page = visitor.get(f"{site}/settings")
    assert page.text.count("last seen") == 4
    assert page.text.count("this one") == 1
    mine = _sessions(visitor.get(f"{site}/settings"), is_this=True)
    theirs = _sessions(visitor.get(f"{site}/settings"), is_this=False)
    assert "is signed out" in visitor.follow(visitor.send(f"{site}/settings/sessions/end", session=theirs[0])).text
    assert [each.get(f"{site}/settings").status for each in others].count(200) == 2
    visitor.get(f"{site}/settings")
    for nonsense in ("", "x" * 64, "é"):
        assert visitor.send(f"{site}/settings/sessions/end", session=nonsense).status == 303
    visitor.follow(visitor.send(f"{site}/settings/sessions/end-others"))
    assert [each.get(f"{site}/settings").status for each in others] == [303] * 3
    assert visitor.get(f"{site}/settings").status == 200
    assert visitor.send(f"{site}/settings/sessions/end", session=mine[0]).leads_to.startswith(f"{site}/sign-in")
    assert visitor.get(f"{site}/settings").status == 303


@of_both
def test_nobody_ends_another_persons_session(service: RunningService, site: str) -> None:
    """Also who knows how it is named."""
    one, other = SITES[site](service), SITES[site](service)
    (hers,) = _sessions(one.visitor.get(f"{site}/settings"), is_this=True)
    other.visitor.get(f"{site}/settings")
    other.visitor.send(f"{site}/settings/sessions/end", session=hers)
    assert one.visitor.get(f"{site}/settings").status == 200


@of_both
def test_a_changed_password_gives_the_browser_another_cookie(service: RunningService, site: str) -> None:
    """What was in the old one opens nothing any more, and the page's word is another."""
    visitor = SITES[site](service).visitor
    before, word = dict(visitor.cookies), visitor.get(f"{site}/settings").field("csrf")
    changed = visitor.send(f"{site}/settings/password", old=PASSWORD, new="another sentence to remember")
    assert "is changed" in visitor.follow(changed).text
    assert visitor.get(f"{site}/settings").field("csrf") != word
    visitor.cookies = before
    assert visitor.get(f"{site}/settings").status == 303


@of_both
def test_a_poor_password_is_refused_with_the_reason(service: RunningService, site: str) -> None:
    """In words that help, in the settings."""
    visitor = SITES[site](service).visitor
    visitor.get(f"{site}/settings")
    for new, words in (("password123", "commonest"), ("1234567890", "run of digits"), ("abcabcabcabc", "again and")):
        refused = visitor.send(f"{site}/settings/password", old=PASSWORD, new=new)
        assert refused.status == 422
        assert words in refused.text


def _sessions(page: Page, *, is_this: bool) -> list[str]:
    """Tell how the sessions on the page are named: that of this browser, or the others."""
    assert page.html is not None
    source = page.answer.body.decode()
    rows = source.split('<ul class="rows">')[1].split("</ul>")[0].split("<li>")[1:]
    named = [(re.findall(r'name="session" value="([0-9a-f]{64})"', row)[0], "this one" in row) for row in rows]
    return [name for name, is_mine in named if is_mine is is_this]


def _age(service: RunningService, person: Operator) -> None:
    """Let a quarter of an hour pass since the operator has given the password."""
    with service.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE sessions SET confirmed_at_ms = confirmed_at_ms - {CONFIRMED_MS} "  # noqa: S608 - ids of our own
            f"WHERE operator_id = '{person.operator_id}'"
        )


FORMS = {
    "credits/add": {"credits": "5", "reference": "invoice 7", "why": "é <b>"},
    "credits/correct": {"credits": "7", "why": "goodwill"},
    "invite": {},
    "terms": {"plan": "large", "status": "active"},
    "keys/new": {"name": "laptop"},
}
SHOWN_AT_ONCE = {"invite": "/panel/invitation/", "keys/new": "trz_"}
"""What the answer to the form itself shows."""
BALANCES = {"credits/add": 5, "credits/correct": 7}


@pytest.mark.parametrize(
    ("form", "has_second_factor"), [*((form, False) for form in FORMS), ("credits/add", True), ("invite", True)]
)
def test_the_password_is_asked_for_again_before_what_matters(
    service: RunningService,
    form: str,
    has_second_factor: bool,  # noqa: FBT001 - a case
) -> None:
    """After a quarter of an hour; what was written is kept, and done once the password, and the code, are right."""
    clerk, customer = operator(service), holder(service)
    visitor, path = clerk.visitor, f"/admin/accounts/{customer.account_id}/{form}"
    fields = {
        name: f"{value} {customer.account_id}" if name == "reference" else value for name, value in FORMS[form].items()
    }
    codes = set_up(visitor, "/admin")[1] if has_second_factor else []
    _age(service, clerk)
    visitor.get(f"/admin/accounts/{customer.account_id}")
    before = service.provisioning.account(customer.account_id)
    asked = visitor.send(path, **fields)
    assert (asked.status, service.provisioning.account(customer.account_id).balance) == (200, 0)
    assert "Confirm it is you" in asked.text
    kept = {name: asked.field(name) for name in fields}
    assert kept == fields
    code = {"confirm_code": codes[0]} if codes else {}
    wrong = visitor.send(path, **kept, **code, confirm_password="wrong" * 3)
    assert (wrong.status, service.provisioning.account(customer.account_id).balance) == (422, 0)
    if codes:
        assert visitor.send(path, **kept, confirm_password=PASSWORD).status == 422
    done = visitor.send(path, **kept, **code, confirm_password=PASSWORD)
    assert done.status == (200 if form in SHOWN_AT_ONCE else 303)
    if form in SHOWN_AT_ONCE:
        assert SHOWN_AT_ONCE[form] in done.text
    account = service.provisioning.account(customer.account_id)
    assert account.balance == BALANCES.get(form, 0)
    assert account.plan == ("large" if form == "terms" else before.plan)
    visitor.get(f"/admin/accounts/{customer.account_id}")
    assert "Confirm it is you" not in visitor.send(f"/admin/accounts/{customer.account_id}/invite").text


@pytest.fixture(scope="module")
def strict(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """Run a service whose operators need a second factor."""
    folder: Path = tmp_path_factory.mktemp("strict")
    catalogue = CATALOGUE + '\n[operators]\nsecond_factor = "required"\n'
    running = RunningService(folder, module_backend.url, catalogue=catalogue, database_url=store.new_books(folder))
    with checked(running):
        yield running


def test_where_it_is_required_an_operator_sets_it_up_before_anything_else(strict: RunningService) -> None:
    """Every page and form leads to it; language and the way out are free. Holders choose for themselves."""
    clerk, customer = operator(strict), holder(strict)
    visitor = clerk.visitor
    for path in ("/admin/", "/admin/accounts", f"/admin/accounts/{customer.account_id}", "/admin/settings"):
        assert visitor.get(path).leads_to == "/admin/settings/second-factor"
    visitor.get("/admin/settings/second-factor")
    form = visitor.send(f"/admin/accounts/{customer.account_id}/credits/add", credits="5", reference="r")
    assert form.leads_to == "/admin/settings/second-factor"
    assert strict.provisioning.account(customer.account_id).balance == 0
    assert visitor.send("/admin/language", language="en").status == 303
    assert visitor.get("/admin/settings/second-factor").status == 200
    set_up(visitor, "/admin")
    assert visitor.get("/admin/accounts").status == 200
    assert customer.visitor.get("/panel/").status == 200
