"""Find out who sends a GET request: rows 2 to 5 of the order of checks."""

from starlette.requests import Request

from tarazu.api.authorization import presented_key
from tarazu.api.head import head_of
from tarazu.domain.admission import Caller
from tarazu.domain.errors import Refusal, RefusedError
from tarazu.store.ledger import Ledger


async def identified(request: Request, ledger: Ledger) -> Caller:
    """Tell who is calling, from fresh rows.

    Raises:
        RefusedError: no good key, or an account that may not use the service.
        BooksUnavailableError: the books cannot be read.
    """
    key = presented_key(head_of(request.scope))
    caller = key if isinstance(key, Refusal) else await ledger.identify(key)
    if isinstance(caller, Refusal):
        raise RefusedError(caller)
    return caller
