"""The style sheet, the scripts, the icon, the Persian typeface: read once, and kept by browsers until they change."""

from functools import lru_cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tarazu.api.zipped import zipped_response

TYPES = {
    "panel.css": "text/css; charset=utf-8",
    "panel.js": "text/javascript; charset=utf-8",
    "playground.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "persian-400.ttf": "font/ttf",
    "persian-600.ttf": "font/ttf",
}
FONT_PACKAGE = "fontpkg_ibm_plex_sans_arabic"
FONTS = {"persian-400.ttf": "IBMPlexSansArabic-Regular.ttf", "persian-600.ttf": "IBMPlexSansArabic-SemiBold.ttf"}
"""What comes from that package, by the name that it has here; the style sheet names it with its version."""
FOR_EVER = "public, max-age=31536000, immutable"
HASH_DIGITS = 16


class StaticFile(Struct, frozen=True):
    """One file. `version` is a hash of its content, and stands in its address."""

    content: bytes
    media_type: str
    version: str


@lru_cache
def static_file(name: str) -> StaticFile:
    """Read one of the files in TYPES."""
    content = _read(name)
    return StaticFile(content, TYPES[name], sha256(content).hexdigest()[:HASH_DIGITS])


def _read(name: str) -> bytes:
    if name in FONTS:
        return (files(FONT_PACKAGE) / "files" / FONTS[name]).read_bytes()
    return (files("tarazu.panel") / "static" / name).read_bytes()


async def serve_static(request: Request) -> Response:
    """Answer with a file; one that is asked for by its version never changes."""
    name = request.path_params["name"]
    if name not in TYPES:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    file = static_file(name)
    headers = {
        "etag": f'W/"{file.version}"',  # weak: it is that of the compressed file too
        "cache-control": FOR_EVER if request.query_params.get("v") == file.version else "no-cache",
    }
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={**headers, "vary": "accept-encoding"})
    return zipped_response(request, file.content, media_type=file.media_type, headers=headers)
