"""The account holders' pages over HTTP, by forms alone: what they show, what they change, and to whom."""

import json
import re
from urllib.parse import unquote

import pytest
from msgspec.structs import replace

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.calendar import day_start_ms
from tarazu.store.keys import update_key
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, answers
from tests.support.service import CHAT, Customer, RunningService
from tests.support.visitor import PASSWORD, Holder, Page, Visitor, holder, operator

KEY = re.compile(r"trz_[0-9A-Za-z]{50}")


@pytest.fixture(scope="module")
def someone(service: RunningService) -> Holder:
    """A holder on the large plan, for the module."""
    return holder(service)


@pytest.fixture(scope="module")
def other(service: RunningService) -> Customer:
    """Another account, with a key and a request of its own."""
    return service.customer()


def call(service: RunningService, secret: str, model: str = "test/one") -> int:
    """Send a request with a key; answer with its status."""
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    return service.request("POST", CHAT, json.dumps({"prompt": "Hello", "model": model}), headers).status


def new_key(someone: Holder, *, name: str = "laptop", **fields: str | list[str]) -> str:
    """Make a key by its form; answer with the whole key."""
    someone.visitor.get("/panel/keys/new")
    shown = someone.visitor.send("/panel/keys/new", csrf=None, name=name, **fields)
    assert shown.status == 200, shown.text
    (secret,) = set(KEY.findall(shown.text))
    return str(secret)


def key_id(secret: str) -> str:
    """Tell the id of a key."""
    return "key_" + secret[4:16]


def test_a_key_is_shown_once_works_and_is_in_the_trail(service: RunningService, someone: Holder) -> None:
    """Created with a name, an end, a limit and models; no page shows it again."""
    secret = new_key(someone, name="shop", days="۳۰", limit="50", models=["test/one", "test/two"])
    assert call(service, secret) == 200
    key = service.provisioning.key(key_id(secret))
    assert (key.name, key.limit_per_minute, key.models) == ("shop", 50, ("test/one", "test/two"))
    assert key.expires_at_ms is not None
    assert key.expires_at_ms - key.created_at_ms == 30 * 86_400_000
    for path in ("/panel/keys", f"/panel/keys/{key.id}"):
        page = someone.visitor.get(path)
        assert "shop" in page.text
        assert KEY.search(page.answer.body.decode()) is None
    act = service.provisioning.trail(account_id=someone.account_id).acts[0]
    assert (act.act, act.made_by, act.via, act.subject) == ("key.create", someone.email, "holder", key.id)


def test_a_key_ends_when_its_form_says(service: RunningService, someone: Holder) -> None:
    """After some days, at the end of a day in either calendar, or never; a change of something else keeps the end."""
    zone = service.configuration.catalogue.zone

    def end(secret: str) -> int | None:
        return service.provisioning.key(key_id(secret)).expires_at_ms

    gregorian, jalali = (new_key(someone, days="day", until=written) for written in ("2030-03-20", "۱۴۰۸/۱۲/۳۰"))
    assert [end(each) for each in (gregorian, jalali)] == [
        pytest.approx(day_start_ms("2030-03-21", zone), abs=5_000)
    ] * 2
    ignored = new_key(someone, until="2030-03-20")
    assert end(ignored) is None
    edit = f"/panel/keys/{key_id(gregorian)}/edit"
    assert "as it is now: 20 March 2030, 23:59" in someone.visitor.get(edit).text
    before = end(gregorian)
    someone.visitor.send(edit, name="renamed")
    assert end(gregorian) == before
    someone.visitor.send(edit, name="renamed", days="never")
    assert end(gregorian) is None
    offered = someone.visitor.get("/panel/keys/new").html
    assert offered is not None
    assert {"7", "30", "90", "365", "day"} <= set(offered.values("value", "option"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": " "}, "The name is missing. Write one."),
        ({"name": "x" * 201}, "The name must be 1 to 200"),
        ({"days": "0"}, "The number of days must be from 1 to 3,650"),
        ({"days": "9" * 30}, "The number of days must be from 1 to 3,650"),
        ({"days": "soon"}, "The number of days must be a whole number"),
        ({"days": "day", "until": "soon"}, "Write dates as year, month and day"),
        ({"days": "day", "until": "1399/01/01"}, "The last day of a key must not be before today"),
        ({"days": "day", "until": "2199-01-01"}, "The last day of a key must be within 100 years"),
        ({"days": "day", "until": "1650/01/01"}, "The last day of a key must be within 100 years"),
        ({"days": "day", "until": "9999-12-31"}, "The last day of a key must be within 100 years"),
        ({"limit": "-1"}, "The limit per minute must be from 1"),
        ({"models": "no/such"}, "Choose models from the list"),
    ],
)
def test_a_key_that_cannot_be_is_refused_in_words(someone: Holder, fields: dict[str, str], said: str) -> None:
    """What was written stays in the form."""
    someone.visitor.get("/panel/keys/new")
    refused = someone.visitor.send("/panel/keys/new", **{"name": "kept", **fields})
    assert refused.status == 422
    assert said in refused.text
    assert refused.field("name") == fields.get("name", "kept")


@pytest.mark.parametrize("site", ["holder", "operator"])
@pytest.mark.parametrize("models", [None, ("*",), ("test/dear",), ("test/one", "test/dear"), ("test/gone", "test/one")])
def test_a_key_that_is_renamed_may_use_what_it_might_before(
    service: RunningService, site: str, models: tuple[str, ...] | None
) -> None:
    """Also where its account is not offered a model now, or the catalogue has it no more."""
    basic, books = holder(service, "basic"), service.provisioning
    key = books.create_key(basic.account_id, name="before", models=models and ["test/one"]).key
    with service.engine.begin() as connection:
        update_key(connection, replace(key, models=models))
    visitor, begin = (
        (basic.visitor, "/panel")
        if site == "holder"
        else (operator(service).visitor, f"/admin/accounts/{basic.account_id}")
    )
    edit = f"{begin}/keys/{key.id}/edit"
    html = visitor.get(edit).html
    assert html is not None
    boxes = [field for _, field in html.elements if field.get("name") == "models" and "checked" in field]
    visitor.send(edit, name="after", days="", limit="", models=[box["value"] for box in boxes])
    changed = books.key(key.id)
    assert changed.name == "after"
    assert set(changed.models or ("*",)) == set(models or ("*",))


def test_a_model_outside_the_plan_does_not_exist(service: RunningService) -> None:
    """Its name is not told, nor accepted."""
    basic = holder(service, "basic")
    assert "test/dear" not in basic.visitor.get("/panel/models").text
    assert basic.visitor.get("/panel/models/test/dear").status == 404
    basic.visitor.get("/panel/keys/new")
    refused = basic.visitor.send("/panel/keys/new", name="k", models="test/dear")
    assert refused.status == 422
    assert "test/hasty" not in refused.text


def test_a_key_is_replaced_at_once_or_after_a_while(service: RunningService, someone: Holder) -> None:
    """Without grace the old one is refused from the next request on, with it both work until its end."""
    first = new_key(someone)
    second = KEY.findall(someone.visitor.send(f"/panel/keys/{key_id(first)}/replace", grace="0").text)[0]
    assert [call(service, secret) for secret in (first, second)] == [401, 200]
    third = KEY.findall(someone.visitor.send(f"/panel/keys/{key_id(second)}/replace", grace="3600").text)[0]
    assert [call(service, secret) for secret in (second, third)] == [200, 200]
    assert service.provisioning.key(key_id(second)).expires_at_ms is not None
    again = someone.visitor.send(f"/panel/keys/{key_id(first)}/replace", grace="0")
    assert again.status == 409
    assert "no longer works" in again.text
    assert someone.visitor.send(f"/panel/keys/{key_id(third)}/replace", grace="1").status == 400


def test_a_key_is_revoked(service: RunningService, someone: Holder) -> None:
    """It is refused from the next request on; the list says so."""
    secret = new_key(someone)
    revoked = someone.visitor.send(f"/panel/keys/{key_id(secret)}/revoke")
    assert "The key is revoked" in someone.visitor.follow(revoked).text
    assert call(service, secret) == 401


def test_a_key_is_paused_and_resumed(service: RunningService, someone: Holder) -> None:
    """It is refused meanwhile, and the page says so."""
    secret = new_key(someone)
    path = f"/panel/keys/{key_id(secret)}"
    paused = someone.visitor.send(f"{path}/pause")
    assert "Requests with it are refused until you resume it" in someone.visitor.follow(paused).text
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    refused = service.request("POST", CHAT, '{"prompt": "Hello"}', headers)
    assert (refused.status, refused.json["error"]["code"]) == (401, "invalid_api_key")
    assert "paused" in refused.json["error"]["message"]
    resumed = someone.visitor.send(f"{path}/resume")
    assert "The key works again" in someone.visitor.follow(resumed).text
    assert call(service, secret) == 200


def test_what_belongs_to_another_account_does_not_exist(
    service: RunningService, someone: Holder, other: Customer
) -> None:
    """Its keys, requests and changes of credit: each answer is that of an id which nobody has."""
    completion = service.request(
        "POST", CHAT, '{"prompt": "x"}', {"Authorization": other.bearer, "Content-Type": "application/json"}
    ).json["id"]
    topup, _ = service.provisioning.add_credit(other.account_id, 5, reference="of another")
    visitor = someone.visitor
    visitor.get("/panel/settings")
    for real, made_up in ((other.key_id, "key_000000000000"), (completion, "chatcmpl_0"), (topup.id, "top_0")):
        pages = [
            [
                visitor.get(f"/panel/keys/{each}"),
                visitor.send(f"/panel/keys/{each}/edit", name="mine"),
                visitor.send(f"/panel/keys/{each}/pause"),
                visitor.send(f"/panel/keys/{each}/resume"),
                visitor.send(f"/panel/keys/{each}/revoke"),
                visitor.send(f"/panel/keys/{each}/replace", grace="0"),
                visitor.send("/panel/playground", key=each, model="test/one", prompt="x"),
                visitor.get(f"/panel/history?id={each}"),
                visitor.get(f"/panel/history?before={each}"),
                visitor.get(f"/panel/credits?before={each}"),
            ]
            for each in (real, made_up)
        ]
        assert [page.status for page in pages[0]] == [404] * 10
        assert [page.text for page in pages[0]] == [page.text.replace(made_up, real) for page in pages[1]]
    assert service.provisioning.key(other.key_id).revoked_at_ms is None


def test_the_overview_shows_what_is_left(service: RunningService) -> None:
    """Quota, balance, this minute, and the figures of today, in tables and as CSV."""
    person = holder(service, "basic", balance=7)
    assert "One step from your first request" in person.visitor.get("/panel/").text
    secret = new_key(person, name="=shop")
    assert [call(service, secret) for _ in range(3)] == [200] * 3
    page = person.visitor.get("/panel/")
    for said in ("7 of 10 credits left", "Balance 7 credits", "997 of 1,000 requests left", "3 requests and 3 credits"):
        assert said in page.text
    assert "Test One" in page.text
    assert page.html is not None
    assert "70% of the quota is left" in page.html.values("aria-label")
    lines = person.visitor.get("/panel/usage.csv").answer.body.decode("utf-8-sig").split("\r\n")
    assert lines[0] == "day,model,key_id,key,requests,credits,prompt_tokens,completion_tokens"
    assert re.match(r"\d{4}-\d\d-\d\d,test/one,key_\w+,'=shop,3,3,", lines[1])
    assert lines[2:] == [""]


@pytest.mark.parametrize("site", ["holder", "operator"])
def test_what_was_used_is_told_by_model_and_key(service: RunningService, site: str) -> None:
    """Of the account, a key, a model: in a chart with a colour for each model, and with ways to the requests."""
    person = holder(service)
    first, second = new_key(person), new_key(person, name="shop")
    laptop, shop = key_id(first), key_id(second)
    for secret, model, times in ((first, "test/one", 2), (first, "test/two", 1), (second, "test/two", 1)):
        assert [call(service, secret, model) for _ in range(times)] == [200] * times
    visitor, root, history = person.visitor, "/panel", "/panel/history"
    if site == "operator":
        visitor, root = operator(service).visitor, f"/admin/accounts/{person.account_id}"
        history = f"{root}/requests"

    def used(path: str) -> tuple[str, int, list[str]]:
        page = visitor.get(path)
        assert page.html is not None
        (said,) = re.findall(r"\d+ requests and \d+ credits in 30 days", page.text)
        colours = len([value for value in page.html.values("class", "span") if value.startswith("swatch")])
        ways = [link for link in page.html.values("href", "a") if link.startswith(history) and "from=" in link]
        return said, colours, [unquote(re.sub(r"&(?:from|until)=[\d-]+", "", way).partition("?")[2]) for way in ways]

    every = ["outcome=failed", "model=test/two", "model=test/one", f"key={laptop}", f"key={shop}"]
    assert used(f"{root}/" if site == "holder" else root) == ("4 requests and 6 credits in 30 days", 2, every)
    of_laptop = [f"key={laptop}&model=test/one", f"key={laptop}&model=test/two"]
    said, colours, ways = used(f"{root}/keys/{laptop}")
    assert (said, colours, sorted(ways)) == ("3 requests and 4 credits in 30 days", 2, of_laptop)
    assert used(f"{root}/keys/{shop}") == ("1 requests and 2 credits in 30 days", 0, [f"key={shop}&model=test/two"])
    if site == "holder":
        of_two = [f"model=test/two&key={each}" for each in (laptop, shop)]
        said, colours, ways = used("/panel/models/test/two")
        assert (said, colours, sorted(ways)) == ("2 requests and 4 credits in 30 days", 0, sorted(of_two))
        assert "You have not used this model" in visitor.get("/panel/models/test/free").text
        assert "Requests per minute 100,000, all models together" in visitor.get("/panel/models/test/free").text


def test_an_account_that_may_not_use_the_service_can_still_look(service: RunningService) -> None:
    """The page says why requests are refused."""
    person = holder(service, None)
    assert "neither a plan nor a balance" in person.visitor.get("/panel/").text
    service.provisioning.set_account(person.account_id, status=AccountStatus.INACTIVE)
    assert "Your account is not active" in person.visitor.get("/panel/").text
    service.provisioning.set_account(person.account_id, status=AccountStatus.BLOCKED)
    assert person.visitor.get("/panel/").leads_to.startswith("/panel/sign-in")


def test_a_model_has_its_price_and_its_snippets(service: RunningService, someone: Holder) -> None:
    """With the real address, and this model's name."""
    listed = someone.visitor.get("/panel/models").text
    assert "1 credit 150 toman" in listed
    page = someone.visitor.get("/panel/models/odd/a:b.c-1/x")
    assert page.status == 200
    assert f"curl http://127.0.0.1:{service.port}/api/v1/chat/completions" in page.text
    assert page.text.count('"odd/a:b.c-1/x"') == 3
    for label in ("curl", "Python", "JavaScript", "it is not streamed"):
        assert label in page.text


def test_the_overview_shows_the_days_that_are_asked_for(service: RunningService) -> None:
    """By name or by dates, in figures and as CSV; what cannot be is told, and the usual days are shown."""
    person = holder(service)
    assert call(service, new_key(person, name="shop")) == 200
    for query, days in (("", 30), ("?range=7", 7), ("?range=90", 90), ("?range=none", 30)):
        page = person.visitor.get(f"/panel/{query}")
        assert f"1 requests and 1 credits in {days} days" in page.text
        assert len(person.visitor.get(f"/panel/usage.csv{query}").answer.body.splitlines()) == 2
    past = person.visitor.get("/panel/?from=2020-01-01&until=1398/10/12")
    assert "Nothing was used in these days" in past.text
    assert len(person.visitor.get("/panel/usage.csv?until=1398/10/12").answer.body.splitlines()) == 1
    assert len(person.visitor.get("/panel/usage.csv?from=2001-01-01").answer.body.splitlines()) == 2
    refused = person.visitor.get("/panel/?from=soon")
    assert "Write dates as year, month and day" in refused.text
    assert refused.field("from") == "soon"
    assert "in 30 days" in refused.text
    assert person.visitor.get("/panel/usage.csv?from=soon").status == 400


def test_models_are_searched_narrowed_and_ordered(someone: Holder) -> None:
    """By what they are called, by what they can do, by their price; a word that is no choice narrows nothing."""

    def listed(query: str) -> list[str]:
        html = someone.visitor.get(f"/panel/models?{query}").html
        assert html is not None
        return [link.removeprefix("/panel/models/") for link in html.values("href", "a") if "/panel/models/" in link]

    every = listed("")
    assert len(every) > 3
    assert listed("search=TEST%2FONE") == ["test/one"]
    assert set(listed("order=cheapest")) == set(every)
    assert listed("order=cheapest")[0] == "test/free"
    assert listed("order=dearest")[0] == "test/dear"
    assert listed("capability=chat") == listed("capability=none&order=none") == every
    assert "No such model" in someone.visitor.get("/panel/models?search=nobody").text


def test_a_history_has_pages(service: RunningService) -> None:
    """The newest first, each once, whatever the number."""
    person = holder(service)
    assert "No requests yet" in person.visitor.get("/panel/history").text
    secret = new_key(person)
    assert [call(service, secret) for _ in range(30)] == [200] * 30
    first = person.visitor.get("/panel/history")
    second = person.visitor.get(older(first))
    ids = [re.findall(r"chatcmpl_\w{23}", page.text) for page in (first, second)]
    assert [len(each) for each in ids] == [25, 5]
    assert len({*ids[0], *ids[1]}) == 30


def older(page: Page) -> str:
    """Tell the address of the next page."""
    assert page.html is not None
    (address,) = [address for address in page.html.values("href", "a") if "before=" in address]
    return address


def listed(page: Page) -> int:
    """Count the requests on a page of the history."""
    return len(re.findall(r"chatcmpl_\w{23}", page.text))


@pytest.mark.parametrize("site", ["holder", "operator"])
def test_a_history_is_narrowed_by_its_address_alone(
    service: RunningService, backend: ScriptedBackend, site: str
) -> None:
    """By key, model, outcome and days, one by one and together; for the holder and for operators."""
    person = holder(service)
    laptop, server = new_key(person, name="laptop"), new_key(person, name="server")
    for secret, model, times in ((laptop, "test/one", 30), (laptop, "test/two", 2), (server, "test/two", 3)):
        for _ in range(times):
            call(service, secret, model)
    backend.behaviour = answers(b"{}", 500)
    assert call(service, server) == 502
    wait_until(lambda: service.provisioning.account(person.account_id).used == 40)  # released after its answer
    if site == "operator":
        visitor, path = operator(service).visitor, f"/admin/accounts/{person.account_id}/requests"
    else:
        visitor, path = person.visitor, "/panel/history"

    def count(query: str) -> int:
        return listed(visitor.get(f"{path}?{query}"))

    laptop_id, server_id = key_id(laptop), key_id(server)
    assert count(f"key={server_id}") == 4
    assert count("model=test/two") == 5
    assert count(f"model=test/two&key={laptop_id}") == 2
    assert count("outcome=failed") == 1
    assert count(f"outcome=succeeded&key={server_id}") == 3
    assert count("outcome=running") == 0
    assert count("key=key_of_nobody") == count("until=2001-01-01") == count("until=1380/01/01") == 0
    assert count("outcome=soon") == 25
    first = visitor.get(f"{path}?key={laptop_id}&from=2020-01-01")
    second = visitor.get(older(first))
    assert [listed(first), listed(second)] == [25, 7]
    assert "server" not in re.sub(r"<select.*?</select>", "", second.answer.body.decode(), flags=re.DOTALL)
    assert second.field("from") == "2020-01-01"
    assert "No such requests" in visitor.get(f"{path}?model=no/such").text
    for dates in ("from=soon", "from=2030-01-01", "from=2026-02-02&until=2026-02-01"):
        refused = visitor.get(f"{path}?{dates}")
        assert any(said in refused.text for said in ("Write dates as", "must not come after"))


@pytest.mark.parametrize("site", ["holder", "operator"])
def test_files_have_what_the_pages_show(service: RunningService, monkeypatch: pytest.MonkeyPatch, site: str) -> None:
    """Requests as they are narrowed, credits and usage; with a byte-order mark, for the holder and for operators."""
    monkeypatch.setattr("tarazu.service.csv_files.PART_LINES", 10)
    person = holder(service)
    secret = new_key(person, name="لپ‌تاپ")
    assert [call(service, secret) for _ in range(25)] == [200] * 25
    service.provisioning.add_credit(person.account_id, 15, reference=f"=payment of {person.account_id}")
    visitor, paths = person.visitor, ("/panel/history.csv", "/panel/credits.csv", "/panel/usage.csv")
    if site == "operator":
        visitor, account = operator(service).visitor, f"/admin/accounts/{person.account_id}"
        paths = (f"{account}/requests.csv", f"{account}/credits.csv", f"{account}/usage.csv")

    def lines(path: str) -> list[str]:
        answer = visitor.get(path).answer
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"].startswith('attachment; filename="tarazu-')
        assert answer.body.startswith(b"\xef\xbb\xbf")
        return answer.body.decode("utf-8-sig").splitlines()

    requests, credits_, usage = paths
    assert len(set(lines(requests))) == 1 + 25
    assert all("لپ‌تاپ" in line for line in lines(requests)[1:])
    assert len(lines(f"{requests}?outcome=failed")) == len(lines(f"{requests}?until=2001-01-01")) == 1
    (change,) = lines(credits_)[1:]
    assert f",15,'=payment of {person.account_id}," in change
    (used,) = lines(usage)[1:]
    assert ",25,25," in used
    for path in paths:
        assert visitor.get(f"{path}?from=soon").status == 400
    if site == "operator":
        assert {visitor.get(path.replace(person.account_id, "acc_none")).status for path in paths} == {404}


def test_a_failed_request_costs_nothing_and_says_why(service: RunningService, backend: ScriptedBackend) -> None:
    """With 0 in the column of credits, and its price beside it."""
    person = holder(service)
    secret = new_key(person)
    backend.behaviour = answers(b"{}", 500)
    assert call(service, secret) == 502
    wait_until(lambda: service.provisioning.account(person.account_id).used == 0)  # released after its answer
    page = person.visitor.get("/panel/history")
    assert "failed, not charged" in page.text
    assert "the model gave no reply" in page.text
    cells = re.findall(r'<td role="cell" data-label="Credits" class="end"><div>(.*?)</div>', page.answer.body.decode())
    assert cells == ["0"]


@pytest.mark.parametrize("site", ["holder", "operator"])
def test_refused_requests_are_in_the_history_with_why(service: RunningService, site: str) -> None:
    """402, 403, 404 and 429, those that are alike in one row, at no cost; in the file too, and by their outcome."""
    person = holder(service)
    secret, hasty = new_key(person, name="job"), new_key(person, name="hasty", limit="1")
    assert [call(service, secret, model) for model in ("gpt-4o", "gpt-4o", "trz_" + "a" * 50)] == [404, 404, 404]
    assert 429 in [call(service, hasty) for _ in range(3)]  # a minute may turn between two of them
    service.provisioning.set_account(person.account_id, plan=None)
    assert call(service, secret) == 402
    service.provisioning.add_credit(person.account_id, 1, reference=f"for {person.account_id}")
    assert call(service, secret, "test/two") == 402
    service.provisioning.set_account(person.account_id, status=AccountStatus.INACTIVE)
    assert call(service, secret) == 403
    if site == "operator":
        visitor, path = operator(service).visitor, f"/admin/accounts/{person.account_id}/requests"
    else:
        visitor, path = person.visitor, "/panel/history"
    wait_until(lambda: "account_unavailable" in visitor.get(path).text)
    page = visitor.get(f"{path}?outcome=refused")
    assert listed(page) == 0
    for said in (
        "gpt-4o job 0 2 refused the key cannot use this model, or it does not exist model_not_found",
        "too many requests in one minute rate_limit_exceeded",
        "the account had no plan and no credits upgrade_required",
        "the credits did not cover the price api_credits_exhausted",
        "the account was not active account_unavailable",
    ):
        assert said in page.text
    assert "a" * 50 not in page.text
    body = visitor.get(f"{path}?outcome=refused").answer.body.decode()
    cells = re.findall(r'<td role="cell" data-label="Credits" class="end"><div>(.*?)</div>', body)
    assert cells == ["0"] * 6
    of_key = visitor.get(f"{path}?key={key_id(secret)}").answer.body.decode()
    assert "rate_limit_exceeded" not in of_key
    file = visitor.get(f"{path}.csv?outcome=refused").answer.body.decode("utf-8-sig").splitlines()
    assert len(file) == 1 + 6
    assert any(",gpt-4o,refused,model_not_found,,0,,,,,,2," in line for line in file)


def test_credits_show_every_change_of_the_balance(service: RunningService) -> None:
    """With its reference and its reason, and without who made it."""
    person = holder(service)
    assert "No top-ups yet" in person.visitor.get("/panel/credits").text
    service.provisioning.add_credit(person.account_id, 1500, reference="invoice-7", note="Thank you")
    service.provisioning.adjust_credit(person.account_id, -20, reason="Paid twice")
    page = person.visitor.get("/panel/credits").text
    for said in ("1,480 credits", "+1,500", "invoice-7", "Thank you", "−20", "Paid twice"):
        assert said in page


def test_name_and_password_can_be_changed(service: RunningService) -> None:
    """A wrong old password changes nothing; a new one ends the sessions elsewhere and keeps this one."""
    person = holder(service)
    elsewhere = Visitor(service)
    elsewhere.get("/panel/sign-in")
    elsewhere.send("/panel/sign-in", email=person.email, password=PASSWORD)
    visitor = person.visitor
    visitor.get("/panel/settings")
    assert visitor.send("/panel/settings/name", name="\u202e").status == 422
    visitor.follow(visitor.send("/panel/settings/name", name="سارا احمدی"))
    assert service.provisioning.account(person.account_id).name == "سارا احمدی"
    wrong = visitor.send("/panel/settings/password", old="wrong" * 3, new="another sentence")
    assert (wrong.status, "This is not your present password" in wrong.text) == (422, True)
    same = visitor.send("/panel/settings/password", old=PASSWORD, new=PASSWORD)
    assert (same.status, "the password that you have already" in same.text) == (422, True)
    assert visitor.send("/panel/settings/password", old=PASSWORD, new="short").status == 422
    assert elsewhere.get("/panel/").status == 200
    changed = visitor.send("/panel/settings/password", old=PASSWORD, new="another sentence")
    assert "Your password is changed" in visitor.follow(changed).text
    assert elsewhere.get("/panel/").leads_to.startswith("/panel/sign-in")


def test_every_page_is_sound_in_persian_too(service: RunningService) -> None:
    """From the right, with Persian digits, and no message of the other language."""
    person = holder(service, balance=1234, language="fa")
    secret = new_key(person)
    call(service, secret)
    service.provisioning.add_credit(person.account_id, 1000, reference="r-1 of the Persian one")
    paths = ("/", "/keys", f"/keys/{key_id(secret)}", "/keys/new", "/models", "/models/test/one", "/playground")
    for path in (*paths, "/history", "/credits", "/settings"):
        page = person.visitor.get(f"/panel{path}")
        assert page.status == 200
        assert page.html is not None
        assert page.html.elements[0][1] == {"lang": "fa", "dir": "rtl"}
        assert "Credits" not in page.text
        assert "Overview" not in page.text
    assert "۲٬۲۳۴" in person.visitor.get("/panel/credits").text
