"""Tell what a body is declared as, by its Content-Type: one match, of a header that is short."""

import re

CONTENT_TYPE_BYTES_MAX = 256

# Each repetition keeps what it has taken (`*+`, `++`): white space could else be shared out in a great many ways, and
# all would be tried.
_OWS = rb"[ \t]*+"
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = rb'"(?:[^"\\]|\\.)*+"'
_CHARSET = rb'charset=(?:utf-?8|"utf-?8")(?=[ \t]*+(?:;|$))'
_OTHER = rb"(?!charset[*=])" + _TOKEN + rb"=(?:" + _TOKEN + rb"|" + _QUOTED + rb")"
_PARAMETERS = rb"(?:" + _OWS + rb";" + _OWS + rb"(?:" + _CHARSET + rb"|" + _OTHER + rb")?+)*+" + _OWS

JSON = b"application/json"
FORM = b"application/x-www-form-urlencoded"
_SPELLINGS = {media_type: re.compile(re.escape(media_type) + _PARAMETERS, re.IGNORECASE) for media_type in (JSON, FORM)}


def is_declared_as(media_type: bytes, declared: bytes) -> bool:
    """Tell whether a Content-Type is JSON or FORM, in UTF-8 where it names a charset; it may have other parameters."""
    if declared == media_type:
        return True
    if len(declared) > CONTENT_TYPE_BYTES_MAX:
        return False
    return _SPELLINGS[media_type].fullmatch(declared) is not None
