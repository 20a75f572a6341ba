"""Whatever the service reads of a request, at its largest and worst, takes little more of a processor than a plain one.

What it reads is found in its code (`tests.support.inputs`): a header, parameter, field or path that is read and not
tried here fails.
"""

import http.client
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count, product
from pathlib import Path
from random import Random
from typing import TypeVar
from urllib.parse import quote

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from tarazu.api.admin.route import Route
from tarazu.api.admin.routes import ROUTES
from tarazu.api.body import BODY_BYTES_MAX
from tarazu.api.head import HEAD_BYTES_MAX, HEADER_BYTES_MAX, PARAMETERS_MAX
from tarazu.domain.admin_tokens import Scope
from tarazu.panel.forms import FORM_BYTES_MAX
from tarazu.panel.kept import Kept, Kind, seal
from tests.support.books import sqlite_only
from tests.support.contract import SCHEMAS
from tests.support.inputs import fields_read, headers_read, parameters_read
from tests.support.processes import processor_ns, workers
from tests.support.routes import Place, all_places
from tests.support.scale import scaled
from tests.support.seeds import session_seed
from tests.support.service import CHAT, USAGE, RunningService
from tests.support.visitor import FORM, holder, operator
from tests.support.wire import Wire

HEAD_RATIO_MAX = 25
FORM_RATIO_MAX = 60
BODY_RATIO_MAX = 200
"""Of the processor time of a plain page: a head of 32 KiB may take so much, a form of 64 KiB, and a body of 1 MiB."""
PLAIN_TIMES = 2
TRIES = 3
"""On a busy machine one measurement says little; of several the least counts."""
ALWAYS = 3
"""Fillers that are always tried; of what is worst elsewhere some are drawn."""
DRAWN = 3
"""For each header, parameter or field, at scale 1."""
ENDING_SESSIONS = ("/sign-out", "/sessions/end", "/sessions/end-others")
"""Forms after which nobody would be signed in any more."""
WITH_MARKS = frozenset({"password", "new", "old", "confirm_password", "next"})
"""What has been put into Unicode's own form, or taken for an address, which is."""
TARGET_BYTES = HEAD_BYTES_MAX - 2_048
"""What of the head is left to path and query beside the headers."""

# What is known to be worst for some parser: of cookies, media types, queries, addresses, numbers, Unicode, patterns.
FILLERS = (
    b"\\",
    b';"',
    b'\\"',
    b"; ",
    b" ;\t",
    b";",
    b"a=b; ",
    b",",
    b" ",
    b"1",
    b"a",
    b":",
    b".",
    b"[",
    b"%",
    b"%41",
    b"=?",
    b"&",
    b"\xcc\x81",
    b"\xc2\xa8",
)
MARKS = "\u0344\u0327"
"""Marks that combine, in the wrong order: to put them into the right one takes the square of their number."""
TEXTS = (MARKS, "1", " ", "a&a&", '"\\', "[", "%", "_", "../")
PREFIXES: dict[str, tuple[bytes, ...]] = {
    "accept-encoding": (b"", b"gzip;q=0."),
    "accept-language": (b"", b"fa;q=0."),
    "authorization": (b"", b"Bearer ", b"Bearer trz_", b"Bearer tra_"),
    "content-encoding": (b"",),
    "content-length": (b"",),
    "content-type": (b"", b"application/json", b'application/json; a="', f"{FORM}; a=".encode()),
    "cookie": (b"", b'a="', b"tarazu_panel=", b'tarazu_admin="', b"lang="),
    "forwarded": (b"", b'for="'),
    "host": (b"", b"["),
    "idempotency-key": (b"",),
    "if-none-match": (b"", b'"'),
    "origin": (b"", b"http://", b"http://["),
    "referer": (b"", b"http://", b"http://["),
    "transfer-encoding": (b"", b"chunked"),
    "user-agent": (b"",),
    "x-forwarded-for": (b"", b"::1%"),
    "x-forwarded-host": (b"", b"["),
    "x-forwarded-proto": (b"",),
}
"""The headers that the service reads, and what may stand before the worst of each."""
OF_FRAMES = frozenset({"content-length", "transfer-encoding"})
"""What a body is waited for by."""
PARAMETERS = frozenset(
    {"account", "account_id", "before", "id", "kept", "limit", "model", "next", "search"}
    | {"order", "capability", "ended", "page", "plan", "span", "status", "v"}
    | {"from", "key", "outcome", "range", "until", "act", "who"}
)
FIELDS = frozenset(
    {
        "code",
        "confirm_code",
        "confirm_password",
        "conversation",
        "credits",
        "csrf",
        "days",
        "done",
        "email",
        "grace",
        "key",
        "language",
        "limit",
        "model",
        "models",
        "name",
        "new",
        "next",
        "old",
        "password",
        "plan",
        "plan_before",
        "prompt",
        "reference",
        "retry_after_s",
        "secret",
        "session",
        "status",
        "stop",
        "system",
        "ticket",
        "turn",
        "until",
        "why",
    }
)
JSON_VALUES = (
    b'"' + b"\\u0344" * 160_000 + b'"',
    b'"' + b"\\\\" * 500_000 + b'"',
    b"1" * 1_000_000,
    b"0." + b"1" * 1_000_000,
    b"[" + b",".join([b"{}"] * 330_000) + b"]",
    b"[" + b",".join([b"1"] * 500_000) + b"]",
    b"[" + b",".join([b'{"role":"user","content":" "}'] * 33_000) + b"]",
    b'[{"role":"user","content":[' + b",".join([b'{"type":"text","text":" "}'] * 38_000) + b"]}]",
    b"[" * 500_000 + b"]" * 500_000,
    b"{" + b",".join(b'"%x":0' % number for number in range(100_000)) + b"}",
)
T = TypeVar("T")
_addresses = (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}" for number in count(1))


class Asked(Struct, frozen=True, kw_only=True):
    """One request, as it is sent."""

    method: str = "GET"
    target: str = "/"
    headers: Mapping[str, bytes] = {}
    body: bytes = b""


class Try(Struct, frozen=True):
    """A request, and the same with nothing in it that is odd."""

    worst: Asked
    plain: Asked


class Cast(Struct, frozen=True):
    """A service, and what opens each of its doors. `plain_ns` is what a plain page takes."""

    service: RunningService
    worker: int
    doors: dict[str, dict[str, bytes]]
    csrf: dict[str, str]
    plain_ns: int

    def ask(self, asked: Asked) -> int:
        """Send a request, and tell what processor time it has taken, in nanoseconds."""
        before = processor_ns(self.worker)
        headers = {"host": f"127.0.0.1:{self.service.port}".encode(), "x-forwarded-for": next(_addresses).encode()}
        headers |= {"content-length": b"%d" % len(asked.body)} if asked.method == "POST" else {}
        lines = [name.encode() + b": " + value for name, value in {**headers, **asked.headers}.items()]
        head = [f"{asked.method} {asked.target} HTTP/1.1".encode(), *lines, b"", b""]
        with Wire(self.service.port) as wire:
            with suppress(BrokenPipeError, ConnectionResetError):
                wire.send(b"\r\n".join(head) + asked.body)
            with suppress(http.client.BadStatusLine, ConnectionResetError):  # it was none that a server answers
                wire.answer()
        return processor_ns(self.worker) - before

    def slow(self, asked: Iterable[Try], ratio_max: int) -> list[Asked]:
        """List the requests that have taken too much, each time that they were tried."""
        return [each.worst for each in asked if self._is_slow(each, ratio_max * self.plain_ns)]

    def _is_slow(self, tried: Try, bound_ns: int) -> bool:
        """Tell it; what takes long with anything in it, as a password does, may take so much more."""
        worst_ns = self.ask(tried.worst)
        if worst_ns <= bound_ns:
            return False
        usual_ns = math.inf
        for _ in range(TRIES):
            usual_ns = min(usual_ns, self.ask(tried.plain))
            if worst_ns <= bound_ns + PLAIN_TIMES * usual_ns:
                return False
            worst_ns = self.ask(tried.worst)
        return True


@pytest.fixture(scope="module")
def cast(service: RunningService) -> Cast:
    """Open all doors, and measure a plain page."""
    [worker] = workers(service)
    sara, ada = holder(service, balance=1_000_000).visitor, operator(service).visitor
    token = service.provisioning.create_admin_token(name="all", scopes=list(Scope)).secret
    doors = {
        "/panel": {"cookie": _cookies(sara.cookies)},
        "/admin": {"cookie": _cookies(ada.cookies)},
        "/api/admin": {"authorization": f"Bearer {token}".encode()},
        "/api/v1": {"authorization": service.customer().bearer.encode()},
    }
    cast = Cast(service, worker, doors, {"/panel": sara.csrf, "/admin": ada.csrf}, 0)
    plain = sorted(cast.ask(Asked(target="/panel/sign-in")) for _ in range(51))
    return replace(cast, plain_ns=plain[25])


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Place, ...]:
    """List all routes."""
    monkeypatch.chdir(tmp_path)
    return all_places()


def _cookies(cookies: Mapping[str, str]) -> bytes:
    return "; ".join(f"{name}={value}" for name, value in cookies.items()).encode()


def some(many: Iterable[T], what: str) -> list[T]:
    """Draw some of many, each time others; at scale 20 most of all."""
    found = list(many)
    return Random(f"{session_seed()} {what}").sample(found, min(len(found), scaled(DRAWN)))  # noqa: S311 - no secret


def _site(place: Place) -> str:
    return "/" + place.path.split("/")[1]


def _door(cast: Cast, path: str) -> dict[str, bytes]:
    return next((headers for door, headers in cast.doors.items() if path.startswith(door)), {})


def _long(text: str, size: int) -> str:
    """Repeat a text to so many bytes as they are sent; marks each by itself, which is worst."""
    number = size // len(quote(text)) - len(text)
    return "a" + text[0] * number + text[1] * number if text == MARKS else text * number


def _filled(size: int, prefix: bytes, filler: bytes) -> bytes:
    """Fill a text up; what begins with a quote ends with one, and with a letter else."""
    suffix = b'"' if prefix.endswith(b'"') else b"x"
    return (prefix + filler * (size // len(filler)))[: size - len(suffix)] + suffix


def test_every_input_is_tried() -> None:
    """What the code reads is what is tried here, and the reverse."""
    assert headers_read() == set(PREFIXES)
    assert parameters_read() == PARAMETERS
    assert fields_read() == FIELDS


@pytest.mark.parametrize("name", PREFIXES)
@sqlite_only
def test_no_header_takes_long(cast: Cast, name: str) -> None:
    """Each at its largest, with what is worst for its parser, at every door."""
    targets = [Asked(target=target) for target in (USAGE, "/api/admin/v1/accounts", "/panel/", "/admin/")]
    targets += [Asked(target="/panel/static/panel.css")]
    if name not in OF_FRAMES:
        json_type = {"content-type": b"application/json"}
        form_type = {"content-type": FORM.encode(), "origin": b"http://127.0.0.1:%d" % cast.service.port}
        targets += [Asked(method="POST", target=CHAT, headers=json_type, body=b'{"prompt": "a"}')]
        targets += [Asked(method="POST", target="/api/admin/v1/accounts", headers=json_type, body=b"{}")]
        targets += [Asked(method="POST", target="/panel/language", headers=form_type, body=b"language=x")]

    def tries(chosen: Iterable[tuple[Asked, bytes, bytes]]) -> Iterator[Try]:
        for target, prefix, filler in chosen:
            value = _filled(HEADER_BYTES_MAX - len(name) - len(": "), prefix, filler)
            headers = {**target.headers, **_door(cast, target.target)}
            plain = replace(target, headers=headers)
            yield Try(replace(target, headers={**headers, name: value}), plain)

    always, others = FILLERS[:ALWAYS], FILLERS[ALWAYS:]
    chosen = [*product(targets, PREFIXES[name], always), *some(product(targets, PREFIXES[name], others), name)]
    assert cast.slow(tries(chosen), HEAD_RATIO_MAX) == []


@sqlite_only
def test_no_path_takes_long(cast: Cast, places: tuple[Place, ...]) -> None:
    """With any of its ids as long as it can be."""
    ids = [(place, parameter) for place in places for parameter in re.findall(r"{\w+}", place.path)]

    def tries() -> Iterator[Try]:
        for (place, parameter), text in some(product(ids, TEXTS), "paths"):
            longest = quote(_long(text, TARGET_BYTES - len(place.path)))
            target = re.sub(r"{\w+}", "x", place.path.replace(parameter, longest))
            asked = Asked(method=place.method, target=target, headers=_door(cast, place.path))
            yield Try(asked, replace(asked, target=re.sub(r"{\w+}", "x", place.path)))

    assert cast.slow(tries(), HEAD_RATIO_MAX) == []


@sqlite_only
def test_nothing_that_a_browser_keeps_takes_long(cast: Cast) -> None:
    """As many as fit into a header, each of which becomes as large as may be when it is read."""
    fields = (("", ""),) * 10_000
    large = [seal(Kept(id=str(number), kind=Kind.UNSENT, fields=fields), "/keys/new", "") for number in range(100)]
    cookies = b"; ".join(b"tarazu_panel_kept=%s" % str(each).encode() for each in large)[: HEADER_BYTES_MAX - 200]
    door = cast.doors["/panel"]["cookie"]
    tries = []
    for named in ("0", "99", "none"):
        target = f"/panel/keys/new?kept={named}"
        plain = Asked(target="/panel/keys/new", headers={"cookie": door})
        tries.append(Try(Asked(target=target, headers={"cookie": door + b"; " + cookies}), plain))
    assert cast.slow(tries, FORM_RATIO_MAX) == []


@pytest.mark.parametrize("name", sorted(PARAMETERS))
@sqlite_only
def test_no_query_takes_long(cast: Cast, places: tuple[Place, ...], name: str) -> None:
    """Each parameter as long as it can be, on every page; and as many as there can be."""
    many = "&".join([f"{name}=%41"] * PARAMETERS_MAX)
    queries = [many, *(f"{name}={quote(_long(text, TARGET_BYTES))}" for text in TEXTS)]

    pages = [place for place in places if place.method == "GET"]

    def tries() -> Iterator[Try]:
        for place, query in some(product(pages, queries), name):
            path = re.sub(r"{\w+}", "x", place.path)
            plain = Asked(target=path, headers=_door(cast, path))
            yield Try(replace(plain, target=f"{path}?{query}"), plain)

    assert cast.slow(tries(), HEAD_RATIO_MAX) == []


@pytest.mark.parametrize("name", sorted(FIELDS))
@sqlite_only
def test_no_form_takes_long(cast: Cast, places: tuple[Place, ...], name: str) -> None:
    """Each field as long as it can be, in every form; the password is what takes its time, and no more than ever."""
    headers = {"content-type": FORM.encode(), "origin": b"http://127.0.0.1:%d" % cast.service.port}
    if name not in WITH_MARKS - {"next"}:
        headers["x-forwarded-for"] = b"10.255.0.1"  # soon refused before a password is compared, which takes its time
    forms = [place for place in places if place.method == "POST" and _site(place) in cast.csrf]
    assert len(forms) > 20

    def tries(chosen: Iterable[tuple[Place, str]], prefix: str = "") -> Iterator[Try]:
        for place, text in chosen:
            path = re.sub(r"{\w+}", "x", place.path)
            value = quote(prefix + _long(text, FORM_BYTES_MAX - 1_024))
            plain, worst = (
                f"{name}={content}&csrf={cast.csrf[_site(place)]}&email={next(_addresses)}@example.com&language=fa".encode()
                for content in ("x", value)
            )
            door = {} if path.endswith(ENDING_SESSIONS) else _door(cast, path)
            asked = Asked(method="POST", target=path, headers={**headers, **door}, body=worst)
            yield Try(asked, replace(asked, body=plain))

    always = tries(product(forms, [MARKS]), "//" if name == "next" else "") if name in WITH_MARKS else ()
    assert cast.slow([*always, *tries(some(product(forms, TEXTS), name))], FORM_RATIO_MAX) == []
    for site in cast.csrf:  # the forms have been those of people who are signed in
        answer = cast.service.request("GET", f"{site}/", headers={"Cookie": cast.doors[site]["cookie"].decode()})
        assert answer.status == 200


@pytest.mark.parametrize("name", [*SCHEMAS["ChatRequest"]["properties"], "another"])
@sqlite_only
def test_no_body_takes_long(cast: Cast, name: str) -> None:
    """Each member of a chat request, and one that is ignored, as large as the body can be."""
    headers = {"content-type": b"application/json", **cast.doors["/api/v1"]}
    bodies = [b'{"prompt": "a", "%s": %s}' % (name.encode(), value) for value in JSON_VALUES]
    assert max(map(len, bodies)) <= BODY_BYTES_MAX
    plain = Asked(method="POST", target=CHAT, headers=headers, body=b'{"prompt": "a"}')
    assert cast.slow([Try(replace(plain, body=body), plain) for body in bodies], BODY_RATIO_MAX) == []


@pytest.mark.parametrize("route", [route for route in ROUTES if route.body is not None], ids=lambda r: r.operation_id)
@sqlite_only
def test_no_body_of_the_admin_api_takes_long(cast: Cast, route: Route) -> None:
    """Each of its members, and one that is unknown."""
    headers = {"content-type": b"application/json", **cast.doors["/api/admin"]}
    path = "/api/admin/v1" + re.sub(r"{\w+}", "x", route.path)
    names = [*json.loads(msgspec.json.encode(route.body)), "another"]
    chosen = some(product(names, JSON_VALUES), path)
    bodies = [b'{"%s": %s}' % (name.encode(), value) for name, value in chosen]
    plain = Asked(method=route.method, target=path, headers=headers, body=b"{}")
    assert cast.slow((Try(replace(plain, body=body), plain) for body in bodies), BODY_RATIO_MAX) == []
