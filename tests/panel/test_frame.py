"""What holds for every page: who may open it, which forms are taken, and what the browser is told."""

from pathlib import Path

import pytest

from tarazu.panel.headers import CONTENT_SECURITY_POLICY
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend
from tests.support.service import RunningService
from tests.support.visitor import FORM, PASSWORD, Holder, Visitor, holder

PAGES = ("/", "/keys", "/keys/new", "/models", "/playground", "/history", "/credits", "/settings")
"""What the navigation leads to, and where a key is made."""
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


@pytest.fixture(scope="module")
def someone(service: RunningService) -> Holder:
    """A holder who is signed in, for the module."""
    return holder(service)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_for_who_is_signed_in(service: RunningService, someone: Holder, path: str) -> None:
    """Others are led to the door, and from there to the page."""
    assert someone.visitor.get(f"/panel{path}").status == 200
    door = Visitor(service).get(f"/panel{path}")
    assert door.leads_to == "/panel/sign-in" + (f"?next=/panel{path}" if path != "/" else "")


@pytest.mark.parametrize("path", ["/panel", "/admin"])
def test_the_bare_address_leads_to_the_first_page(service: RunningService, path: str) -> None:
    """Also without the slash at its end."""
    page = Visitor(service).get(path)
    assert (page.status, page.answer.headers["location"]) == (307, f"{path}/")


def test_signing_in_leads_to_the_page_that_was_asked_for(service: RunningService, someone: Holder) -> None:
    """With its query; the right password alone opens it."""
    visitor = Visitor(service)
    door = visitor.follow(visitor.get("/panel/history?from=2026-01-01"))
    onward = door.field("next")
    assert onward == "/panel/history?from=2026-01-01"
    wrong = visitor.send("/panel/sign-in", email=someone.email, password="wrong" * 3, next=onward)
    assert wrong.status == 422
    assert wrong.field("email") == someone.email
    assert "Wrong email or password" in wrong.text
    right = visitor.send("/panel/sign-in", email=someone.email.upper(), password=PASSWORD, next=onward)
    assert right.leads_to == onward
    assert visitor.follow(right).status == 200


@pytest.mark.parametrize(
    "onward",
    ["https://evil.example/", "//evil.example/", "/admin/", "/panel/../admin", "/panel//evil", "\\\\evil", "/panelx/"],
)
def test_nobody_is_led_to_a_place_elsewhere(someone: Holder, onward: str) -> None:
    """Whatever stands in an address that somebody was sent."""
    assert someone.visitor.get(f"/panel/sign-in?next={onward}").leads_to == "/panel/"


def test_the_cookie_is_out_of_reach(service: RunningService, someone: Holder) -> None:
    """Of scripts, of other sites' forms, and of every path but the panel's; over HTTPS alone unless on this machine."""
    visitor = Visitor(service)
    visitor.get("/panel/sign-in")
    cookies = visitor.send("/panel/sign-in", email=someone.email, password=PASSWORD).answer.cookies
    for cookie, name in zip(cookies, ("tarazu_panel", "tarazu_panel_device"), strict=True):
        pair, *attributes = cookie.split("; ")
        assert pair.startswith(f"{name}=")
        assert len(pair.partition("=")[2]) == 43
        assert {"HttpOnly", "Path=/panel", "SameSite=lax"} <= set(attributes)
        assert "Secure" not in attributes


def test_who_signs_out_is_out(service: RunningService) -> None:
    """The browser forgets, and so do the books: the same cookie opens nothing any more."""
    visitor = holder(service).visitor
    kept = dict(visitor.cookies)
    visitor.get("/panel/")
    left = visitor.send("/panel/sign-out")
    assert "tarazu_panel" not in visitor.cookies
    assert "You are signed out." in visitor.follow(left).text
    visitor.cookies = kept
    assert visitor.get("/panel/").leads_to.startswith("/panel/sign-in")
    assert visitor.send("/panel/sign-out").leads_to.startswith("/panel/sign-in")


@pytest.mark.parametrize("site", ["/panel", "/admin"])
def test_the_door_and_a_wrong_invitation_can_be_opened_by_anybody(service: RunningService, site: str) -> None:
    """They tell nothing."""
    visitor = Visitor(service)
    assert visitor.get(f"{site}/sign-in").status == 200
    ended = visitor.get(f"{site}/invitation/{'x' * 43}")
    assert ended.status == 404
    assert "no longer valid" in ended.text
    assert visitor.send(f"{site}/invitation/{'x' * 43}", password=PASSWORD).status == 404


def test_a_shop_without_operators_tells_how_the_first_one_is_made(tmp_path: Path) -> None:
    """By a command, on the operators' pages alone; once there is one, by asking for an invitation."""
    command = "tarazu admin operator create"
    with ScriptedBackend() as backend, RunningService(tmp_path, backend.url) as service:
        visitor = Visitor(service)
        assert command in visitor.get("/admin/sign-in").text
        assert command not in visitor.get("/panel/sign-in").text
        service.provisioning.create_operator(email="grace@example.com", name="Grace")
        assert command not in visitor.get("/admin/sign-in").text


def test_an_invitation_works_once_and_wants_a_good_password(service: RunningService) -> None:
    """A password that is too short leaves it as it was."""
    account = service.provisioning.create_account(name="New", email="new@example.com")
    address = f"/panel/invitation/{service.provisioning.invite_holder(account.id).token}"
    visitor = Visitor(service)
    assert "new@example.com" in visitor.get(address).text
    assert visitor.send(address, password="short").status == 422
    welcome = visitor.send(address, password=PASSWORD)
    assert "Your password is set" in visitor.follow(welcome).text
    assert Visitor(service).get(address).status == 404


def test_a_panel_session_opens_nothing_of_the_operators(service: RunningService, someone: Holder) -> None:
    """Also where its cookie is sent under the other's name."""
    other = Visitor(service)
    other.cookies = {"tarazu_admin": someone.visitor.cookies["tarazu_panel"], **someone.visitor.cookies}
    assert other.get("/admin/").leads_to.startswith("/admin/sign-in")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ""},
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "", "Referer": "https://evil.example/panel/"},
        {"Origin": "http://["},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Origin": "", "Referer": "https://127.0.0.1:PORT/panel/settings"},
    ],
)
@pytest.mark.parametrize("path", ["/sign-in", "/language", "/settings/name", "/sign-out"])
def test_a_form_of_another_site_is_refused(
    service: RunningService, someone: Holder, path: str, headers: dict[str, str]
) -> None:
    """Or of another scheme; whatever it holds, and whoever is signed in. The log tells of it."""
    someone.visitor.get("/panel/settings")
    body = f"csrf={someone.visitor.csrf}&name=Mallory&language=fa"
    headers = {name: value.replace("PORT", str(service.port)) for name, value in headers.items()}
    refused = someone.visitor.send_body(f"/panel{path}", body, **headers)
    assert refused.status == 403
    assert "not valid any more" in refused.text
    wait_until(lambda: "form_refused" in service.log.read_text())
    assert someone.visitor.get("/panel/settings").field("name") == "Sara"


def test_a_referer_will_do_where_a_browser_sends_no_origin(service: RunningService, someone: Holder) -> None:
    """Of one of our own pages."""
    someone.visitor.get("/panel/settings")
    own = {"Origin": "", "Referer": f"http://127.0.0.1:{service.port}/panel/settings"}
    body = f"csrf={someone.visitor.csrf}&language=en"
    assert someone.visitor.send_body("/panel/language", body, **own).status == 303


@pytest.mark.parametrize("csrf", ["", "x" * 43, "é"])
def test_a_form_without_this_sessions_word_is_refused(someone: Holder, csrf: str) -> None:
    """None, a wrong one, or an odd one."""
    someone.visitor.get("/panel/settings")
    assert someone.visitor.send("/panel/settings/name", csrf=csrf, name="Mallory").status == 403
    assert someone.visitor.get("/panel/settings").field("name") == "Sara"


def test_the_word_of_another_session_is_refused(service: RunningService, someone: Holder) -> None:
    """Each session has its own."""
    other = holder(service).visitor
    other.get("/panel/settings")
    assert someone.visitor.send("/panel/settings/name", csrf=other.csrf, name="Mallory").status == 403


@pytest.mark.parametrize("path", ["/panel/", "/panel/sign-in", "/panel/nothing", "/admin/sign-in", "/panel/usage.csv"])
def test_every_answer_tells_the_browser_to_be_careful(someone: Holder, path: str) -> None:
    """A page, a redirect, an error, a file: all of them."""
    headers = someone.visitor.get(path).answer.headers
    assert {name: headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_files_are_kept_by_browsers_until_they_change(service: RunningService) -> None:
    """By the address that pages name they never change; a browser that has one is told so in few bytes."""
    visitor = Visitor(service)
    html = visitor.get("/panel/sign-in").html
    assert html is not None
    addresses = [*html.values("href", "link"), *html.values("src", "script")]
    assert len(addresses) == 3
    for address in addresses:
        file = visitor.get(address).answer
        assert file.status == 200
        assert "immutable" in file.headers["cache-control"]
        assert visitor.get(address.partition("?")[0]).answer.headers["cache-control"] == "no-cache"
        again = visitor.get(address, **{"If-None-Match": file.headers["etag"]}).answer
        assert (again.status, again.body) == (304, b"")
    assert visitor.get("/panel/static/secrets.txt").status == 404


def test_the_persian_typeface_is_served_and_kept(service: RunningService) -> None:
    """By the address that the style sheet names, compressed, and for ever."""
    sheet = Visitor(service).get("/panel/static/panel.css").answer.body.decode()
    addresses = [line.partition('"')[2].partition('"')[0] for line in sheet.splitlines() if ".ttf" in line]
    assert len(addresses) == 2
    for address in addresses:
        font = Visitor(service).get(f"/panel/static/{address}", **{"Accept-Encoding": "gzip"}).answer
        assert (font.status, font.headers["content-type"]) == (200, "font/ttf")
        assert font.headers["content-encoding"] == "gzip"
        assert "immutable" in font.headers["cache-control"]
        assert len(font.body) < 120_000


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/panel/nothing", 404),
        ("GET", "/panel/keys/%00", 404),
        ("GET", "/panel/history?id=%00", 404),
        ("GET", "/panel/keys/new%0A", 404),
        ("GET", "/panel/keys/%ff", 404),
        ("GET", "/panel/sign-out", 405),
        ("DELETE", "/panel/keys", 405),
        ("POST", "/panel/history", 405),
    ],
)
def test_what_cannot_be_opened_has_a_page_of_its_own(someone: Holder, method: str, path: str, status: int) -> None:
    """In the frame of the panel, with the way back."""
    visitor = someone.visitor
    page = visitor.get(path) if method == "GET" else visitor._ask(method, path, "", {})
    assert page.status == status
    assert page.html is not None
    assert "/panel/" in page.html.values("href", "a")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("csrf=%ff", {}, 400),
        ("csrf=%00", {}, 400),
        ('{"csrf": ""}', {"Content-Type": "application/json"}, 400),
        ("", {"Content-Type": ""}, 400),
        ("name=" + "x" * 65_536, {}, 413),
    ],
)
def test_a_form_that_is_none_is_refused(someone: Holder, body: str, headers: dict[str, str], status: int) -> None:
    """Or one that is too large; each with a page that says what to do."""
    refused = someone.visitor.send_body("/panel/settings/name", body, **{"Content-Type": FORM, **headers})
    assert refused.status == status
    assert refused.html is not None


def test_the_browsers_language_picks_and_a_click_changes_it(service: RunningService) -> None:
    """For who is not signed in by a cookie, which both sites keep to."""
    visitor = Visitor(service, language="fa-IR,en;q=0.5")
    door = visitor.get("/panel/sign-in")
    assert door.html is not None
    assert (door.html.elements[0][1]["lang"], door.html.elements[0][1]["dir"]) == ("fa", "rtl")
    assert "گذرواژه" in door.text
    assert visitor.send("/panel/language", language="en", next="/panel/sign-in").leads_to.startswith("/panel/sign-in")
    assert "Password" in visitor.get("/panel/sign-in").text
    assert "Sign in as operator" in visitor.get("/admin/sign-in").text
    assert visitor.send("/panel/language", language="xx").status == 400


def test_a_persons_language_goes_with_the_person(service: RunningService) -> None:
    """To every browser in which they sign in."""
    person = holder(service)
    person.visitor.get("/panel/settings")
    person.visitor.send("/panel/language", language="fa", next="/panel/settings")
    elsewhere = Visitor(service)
    elsewhere.get("/panel/sign-in")
    elsewhere.follow(elsewhere.send("/panel/sign-in", email=person.email, password=PASSWORD))
    assert "تنظیمات" in elsewhere.get("/panel/settings").text
