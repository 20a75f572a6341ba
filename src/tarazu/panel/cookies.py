"""Find a cookie of ours in a request. Each is looked at once, and no more is made of those that are not ours."""

from collections.abc import Callable

from starlette.requests import Request


def cookie_of(request: Request, name: str, is_one: Callable[[str], object]) -> str:
    """Tell the first value of this name that has the form of one; empty where there is none."""
    for header in request.headers.getlist("cookie"):
        for cookie in header.split(";"):
            found, _, value = cookie.strip().partition("=")
            if found == name and is_one(value):
                return value
    return ""
