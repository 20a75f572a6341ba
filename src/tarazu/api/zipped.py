"""Answer with what is the same for every caller: compressed once, for those that take it so.

Nothing that a session reads comes this way. Its pages hold secrets beside what an address can put into them, and the
length of such a page, compressed, would tell about its secrets (BREACH).
"""

from collections.abc import Mapping
from functools import lru_cache
from gzip import compress

from starlette.requests import Request
from starlette.responses import Response

GZIP = "gzip"
DOCUMENTS_KEPT = 32
"""Contracts and pages, each for some base addresses, and the files of the panel."""


def zipped_response(
    request: Request, content: bytes, *, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with a document that holds nothing of anybody."""
    varying = {**(headers or {}), "vary": "accept-encoding"}
    if not takes_gzip(request.headers.get("accept-encoding", "")):
        return Response(content, media_type=media_type, headers=varying)
    return Response(zipped(content), media_type=media_type, headers={**varying, "content-encoding": GZIP})


def takes_gzip(accepted: str) -> bool:
    """Tell whether a header `Accept-Encoding` names gzip, and does not refuse it (RFC 9110, 12.5.3)."""
    for each in accepted.lower().split(","):
        coding, _, weight = each.replace(" ", "").partition(";")
        if coding == GZIP:
            return weight.rstrip("0") not in {"q=", "q=0."}
    return False


@lru_cache(maxsize=DOCUMENTS_KEPT)
def zipped(content: bytes) -> bytes:
    """Compress a document; the same one every time, whoever asks and when."""
    return compress(content, mtime=0)
