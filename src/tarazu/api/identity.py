"""Find out who sends a GET request: rows 2 to 5 of the order of checks."""

from starlette.requests import Request

from tarazu.api.authorization import presented_key
from tarazu.domain.admission import Caller
from tarazu.domain.errors import Refusal, RefusedError
from tarazu.store.ledger import Ledger


async def identified(request: Request, ledger: Ledger) -> Caller:
    """Tell who is calling, from fresh rows.

    Raises:
        RefusedError: no good key, or an account that may not use the service.
        BooksUnavailableError: the books cannot be read.
    """
    key = presented_key(request.headers.raw)
    caller = key if isinstance(key, Refusal) else await ledger.identify(key)
    if isinstance(caller, Refusal):
        raise RefusedError(caller)
    return caller
