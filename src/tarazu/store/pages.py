"""Turn accounts to their pages of a period: what is used of its quota is the sum of its requests."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, select

from tarazu.domain.accounts import Account
from tarazu.domain.calendar import earliest_ms
from tarazu.domain.credits import RequestState, Source, turn_page
from tarazu.store.schema import requests

PAGES_MAX = 1_000
"""Accounts that one statement asks for."""

_USED = (
    select(requests.c.account_id, func.sum(requests.c.credits))
    .where(requests.c.account_id.in_(bindparam("account_ids", expanding=True)))
    .where(requests.c.period == bindparam("period"))
    .where(requests.c.created_at_ms >= bindparam("since_ms"))  # an old account's other months are not read
    .where(requests.c.source == Source.PLAN)
    .where(requests.c.state.in_([RequestState.HELD, RequestState.CHARGED]))
    .group_by(requests.c.account_id)
)


def on_page(connection: Connection, found: Sequence[Account], period: str) -> list[Account]:
    """Answer with the accounts on their pages of `period`. Most are there already, and cost nothing.

    A page that is to be stored must be of an account that is locked. On the first requests of a month its sum is 0; it
    is not where the clock has been in that month before, and was then set back.
    """
    turned = [account.id for account in found if account.period != period]
    used: dict[str, int] = {}
    for start in range(0, len(turned), PAGES_MAX):
        values = {
            "account_ids": turned[start : start + PAGES_MAX],
            "period": period,
            "since_ms": earliest_ms(period),
        }
        used |= {account_id: int(credits_) for account_id, credits_ in connection.execute(_USED, values)}
    return [
        account if account.period == period else turn_page(account, period, used.get(account.id, 0))
        for account in found
    ]
