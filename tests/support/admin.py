"""The admin API as its callers use it: with a token, over HTTP."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from tarazu.api.admin.route import Route
from tarazu.api.admin.routes import ROUTES
from tarazu.domain.admin_tokens import Scope
from tarazu.service.configuration.addresses import ADMIN_API_PATH
from tarazu.store.trail import Act
from tests.support.service import Answer, RunningService

BY_ID = {route.operation_id: route for route in ROUTES}
ALL_SCOPES = tuple(Scope)
NOBODY = {"account_id": "acc_00000000000000", "key_id": "key_000000000000", "request_id": "req_00000000000000"}
"""Ids of nothing."""


class AdminClient(Struct, frozen=True):
    """A program with a token; `name` is the token's. Without a secret it sends none."""

    service: RunningService
    name: str
    secret: str | None

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send one request; a body that is no bytes goes as JSON."""
        sent = {} if self.secret is None else {"Authorization": f"Bearer {self.secret}"}
        payload = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if payload is not None:
            sent["Content-Type"] = "application/json"
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        return self.service.request(method, ADMIN_API_PATH + path, payload, sent)

    def get(self, path: str) -> Any:
        """Read something that is there."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def create(self, path: str, body: object = None) -> Any:
        """Create something new."""
        answer = self.ask("POST", path, body)
        assert answer.status == 201, answer
        return answer.json

    def new_account(self, **values: object) -> str:
        """Open an account; answer with its id."""
        account_id: str = self.create("/accounts", {"name": "Test", "plan": "large", **values})["id"]
        return account_id

    def acts(self, account_id: str | None = None) -> list[Act]:
        """Read this program's own acts in the trail, the newest first."""
        found = self.service.provisioning.trail(limit=1_000, account_id=account_id).acts
        return [act for act in found if act.made_by == self.name]


def admin_client(service: RunningService, *scopes: Scope, expires_in_s: int | None = None) -> AdminClient:
    """Make a token with these scopes, all if none is given, and a name that no other has."""
    name = f"program {len(service.provisioning.admin_tokens())}"
    issued = service.provisioning.create_admin_token(name=name, scopes=scopes or ALL_SCOPES, expires_in_s=expires_in_s)
    return AdminClient(service, name, issued.secret)


def path_of(route: Route, ids: Mapping[str, str]) -> str:
    """Write a route's path with these ids in it."""
    return route.path.format(**ids)


@contextmanager
def intake_as_before(service: RunningService) -> Iterator[None]:
    """Take completions again at the end, whatever happens."""
    try:
        yield
    finally:
        service.provisioning.resume_intake()
