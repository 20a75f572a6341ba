"""What an operation is given, what it works with, and what it answers."""

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from tarazu.domain.admin_tokens import AdminToken
from tarazu.domain.catalogue import Catalogue
from tarazu.service.auditing import Auditor
from tarazu.service.back_office import BackOffice
from tarazu.service.forwarding import Forwarding
from tarazu.service.provisioning import Provisioning
from tarazu.store.trail import Via

QueryT = TypeVar("QueryT", bound=Struct)
BodyT = TypeVar("BodyT", bound=Struct | None)
T = TypeVar("T")


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


class Call(Struct, Generic[QueryT, BodyT], frozen=True, kw_only=True):
    """One request that is let in and read. `ids` are those of its path, by their names there."""

    caller: AdminToken
    ids: dict[str, str]
    query: QueryT
    body: BodyT

    @property
    def account_id(self) -> str:
        """The account that the path names."""
        return self.ids["account_id"]

    @property
    def key_id(self) -> str:
        """The key that the path names."""
        return self.ids["key_id"]


class Reply(Struct, frozen=True):
    """The answer; `is_new` when the request has created it."""

    body: Struct
    is_new: bool = False


class Desk:
    """What operations work with. `base_url` is the address by which the service is reached."""

    def __init__(self, office: BackOffice, auditor: Auditor, forwarding: Forwarding, base_url: str) -> None:
        self.office = office
        self.auditor = auditor
        self.forwarding = forwarding
        self.base_url = base_url

    @property
    def catalogue(self) -> Catalogue:
        """What is sold now."""
        return self.office.catalogue

    def now_ms(self) -> int:
        """Tell the time."""
        return self.office.clock()

    async def act(self, caller: AdminToken, act: Callable[[Provisioning], T]) -> T:
        """Do something in the caller's name.

        Raises:
            ProvisioningError: it cannot be done.
            BooksUnavailableError: the books cannot be used.
        """
        return await self.office.act(act, by=caller.name, via=Via.TOKEN)
