"""What is the same for every caller comes compressed to those that take it so; what a session reads never does."""

from gzip import decompress
from urllib.parse import urlsplit

import pytest

from tarazu.api.zipped import takes_gzip
from tests.support.service import RunningService
from tests.support.visitor import Visitor

SAME_FOR_ALL = (
    "/docs",
    "/docs/clients",
    "/api/v1/openapi.json",
    "/api/admin/v1/openapi.json",
    "/panel/static/panel.css",
    "/panel/static/panel.js",
)


@pytest.mark.parametrize("path", SAME_FOR_ALL)
def test_what_is_the_same_for_all_comes_compressed(service: RunningService, path: str) -> None:
    """Half of its length at most, and the same when it is unpacked; caches keep both apart."""
    plain = service.request("GET", path)
    zipped = service.request("GET", path, headers={"Accept-Encoding": "br, gzip"})
    assert (plain.status, zipped.status) == (200, 200)
    assert "content-encoding" not in plain.headers
    assert zipped.headers["content-encoding"] == "gzip"
    assert plain.headers["vary"] == zipped.headers["vary"] == "accept-encoding"
    assert decompress(zipped.body) == plain.body
    assert len(zipped.body) * 2 < len(plain.body)


@pytest.mark.parametrize("path", ["/panel/sign-in?next=/panel/keys", "/panel/sign-in", "/admin/sign-in"])
def test_a_page_that_may_hold_secrets_is_never_compressed(service: RunningService, path: str) -> None:
    """Whatever the browser takes: its length would tell about the secrets in it."""
    page = Visitor(service).get(path, **{"Accept-Encoding": "gzip, deflate, br"})
    assert urlsplit(path).path in page.answer.body.decode()
    assert "content-encoding" not in page.answer.headers


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("", False),
        ("identity", False),
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip;q=0.5", True),
        ("gzip; q=0", False),
        ("gzip;q=0.000", False),
        ("x-gzip-like", False),
        ("br;q=1.0, *;q=0.1", False),
    ],
)
def test_which_header_takes_gzip(accepted: str, *, takes: bool) -> None:
    """It must be named, and not refused."""
    assert takes_gzip(accepted) is takes
