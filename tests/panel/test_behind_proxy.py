"""The pages as a browser meets them under other names and behind a proxy with HTTPS."""

from pathlib import Path

import pytest

from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend
from tests.support.service import RunningService
from tests.support.visitor import FORM, PASSWORD, Page, Visitor, holder

HSTS = "strict-transport-security"
SECURE = {"Host": "127.0.0.1:{port}", "X-Forwarded-Proto": "https"}
"""As a proxy on this machine passes it on; `{port}` is that of the service."""


def headers(service: RunningService, **more: str) -> dict[str, str]:
    """Write what the proxy sends."""
    return {name: value.format(port=service.port) for name, value in {**SECURE, **more}.items()}


def send(visitor: Visitor, path: str, body: str, **more: str) -> Page:
    """Send a form over HTTPS."""
    origin = f"https://127.0.0.1:{visitor.service.port}"
    return visitor.send_body(path, body, **headers(visitor.service, **{"Content-Type": FORM, "Origin": origin, **more}))


@pytest.mark.parametrize("path", ["/panel/", "/panel/sign-in", "/admin/sign-in", "/panel/nothing/of/it"])
@pytest.mark.parametrize(
    "sent",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example", "X-Forwarded-Host": "127.0.0.1"},
        {"Host": "127.0.0.1", "X-Forwarded-Host": "evil.example"},
    ],
)
def test_a_foreign_name_that_leads_here_opens_no_page(service: RunningService, path: str, sent: dict[str, str]) -> None:
    """421, with what to do; a page in a browser cannot get past it by a header that it may write."""
    page = Visitor(service).get(path, **sent)
    if path == "/panel/nothing/of/it":
        assert page.status == 404
        return
    assert page.status == 421
    assert "not known here" in page.text


def test_over_https_cookies_are_of_this_host_alone(service: RunningService) -> None:
    """Their names forbid that another host, or plain HTTP, has set them."""
    person = holder(service)
    visitor = Visitor(service)
    body = f"email={person.email.replace('@', '%40')}&password={PASSWORD.replace(' ', '+')}"
    entered = send(visitor, "/panel/sign-in", body)
    names = [cookie.partition("=")[0] for cookie in entered.answer.cookies]
    assert names == ["__Host-tarazu_panel", "__Host-tarazu_panel_device"]
    for cookie in entered.answer.cookies:
        attributes = set(cookie.split("; ")[1:])
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= attributes
        assert not any(attribute.lower().startswith("domain") for attribute in attributes)
    assert visitor.get("/panel/", **headers(service)).status == 200
    plain = Visitor(service)
    plain.cookies = {"tarazu_panel": visitor.cookies["__Host-tarazu_panel"]}
    assert plain.get("/panel/", **headers(service)).leads_to.startswith("/panel/sign-in")
    visitor.get("/panel/", **headers(service))
    left = send(visitor, "/panel/sign-out", f"csrf={visitor.csrf}")
    assert "__Host-tarazu_panel" not in visitor.cookies
    assert "__Host-tarazu_panel_device" in visitor.cookies
    assert left.status == 303


def test_where_callers_come_by_https_every_answer_tells_to_stay_with_it(
    tmp_path: Path, backend: ScriptedBackend
) -> None:
    """Completions, refusals, documents and pages, each once."""
    with RunningService(tmp_path, backend.url, server='public_url = "https://ai.example.com"') as service:
        assert service.chat(service.customer()).status == 200
        for path in ("/health", "/docs", "/nothing", "/api/v1/usage", "/api/admin/v1/accounts", "/panel/sign-in"):
            answer = service.request("GET", path, headers={"Host": "ai.example.com"})
            assert answer.headers[HSTS] == "max-age=31536000", path


def test_over_plain_http_nothing_is_said_of_https(service: RunningService) -> None:
    """On this machine alone; and a form of the page with HTTPS is that of another."""
    visitor = Visitor(service)
    assert HSTS not in visitor.get("/panel/sign-in").answer.headers
    refused = visitor.send_body("/panel/sign-in", "", Origin=f"https://127.0.0.1:{service.port}")
    assert refused.status == 403
    assert send(Visitor(service), "/panel/sign-in", "", Origin=f"http://127.0.0.1:{service.port}").status == 403


def test_the_address_of_the_caller_is_remembered_and_told(service: RunningService) -> None:
    """As the proxy has seen it, in the settings and in the log."""
    person = holder(service)
    visitor = Visitor(service)
    body = f"email={person.email.replace('@', '%40')}&password={PASSWORD.replace(' ', '+')}"
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    send(visitor, "/panel/sign-in", body, **{"X-Forwarded-For": "1.1.1.1, 198.51.100.77", "User-Agent": agent})
    page = visitor.get("/panel/settings", **headers(service))
    assert "198.51.100.77" in page.text
    assert "Firefox, Linux" in page.text
    assert "1.1.1.1" not in page.text
    wait_until(lambda: "198.51.100.77" in service.log.read_text())
