"""The four endpoints, to be called with any Authorization headers."""

import json

import pytest

from tests.support.service import CHAT, MODELS, USAGE, Answer, RunningService

ENDPOINTS = {
    "chat": ("POST", CHAT),
    "models": ("GET", MODELS),
    "model": ("GET", f"{MODELS}/test/one"),
    "usage": ("GET", USAGE),
}
on_every_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS)


def ask(service: RunningService, endpoint: str, *authorizations: str, name: str = "Authorization") -> Answer:
    """Call an endpoint with these Authorization headers and nothing else amiss."""
    method, path = ENDPOINTS[endpoint]
    headers = [(name, value) for value in authorizations]
    if method == "GET":
        return service.request(method, path, headers=headers)
    body = json.dumps({"prompt": "Hello"})
    return service.request(method, path, body, [("Content-Type", "application/json"), *headers])
