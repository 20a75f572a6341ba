"""Do something to the books in the name of who is signed in."""

from collections.abc import Callable
from typing import TypeVar

from tarazu.domain.people import PersonKind
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning import Provisioning
from tarazu.store.trail import Via

T = TypeVar("T")

_VIA = {PersonKind.HOLDER: Via.HOLDER, PersonKind.OPERATOR: Via.OPERATOR}


async def act(office: BackOffice, visit: Visit, do: Callable[[Provisioning], T]) -> T:
    """Do it, or look something up; what changes the books stands in the trail with the person's email.

    Raises:
        ProvisioningError: it cannot be done.
        BooksUnavailableError: the books cannot be used.
    """
    return await office.act(do, by=visit.someone.email, via=_VIA[visit.site.kind])
