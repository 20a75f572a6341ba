"""What people see of an account: its overview, its keys, its requests. Read in whatever transaction is handed in.

An overview is read from the daily usage, and a page of history by its index: neither takes longer as the books grow.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from enum import StrEnum
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tarazu.domain.accounts import Account, Key, KeyState
from tarazu.domain.calendar import (
    DayRange,
    day_after,
    day_of,
    day_start_ms,
    days_until,
    period_of,
)
from tarazu.domain.catalogue import Catalogue, Plan
from tarazu.domain.credits import RequestState, Source, is_low, quota_limit, quota_remaining
from tarazu.domain.keys import API_KEY, PREFIX_LENGTH, PUBLIC_ID_LENGTH
from tarazu.domain.paging import Paging
from tarazu.domain.rate_limit import RateLimit, account_limit
from tarazu.service.checks import HISTORY_LENGTH, checked_length
from tarazu.service.finding import existing_account, no_key
from tarazu.service.identifiers import completion_id_of
from tarazu.service.provisioning_errors import NotThereError
from tarazu.store.keys import SoughtKeys, count_keys, find_key, keys_found
from tarazu.store.newest import NewestPage, Place
from tarazu.store.pages import on_page
from tarazu.store.refused_requests import RefusedRow, find_refused, newest_refused
from tarazu.store.request_history import Ending, RequestFilter, RequestRow, find_request, newest_requests
from tarazu.store.topups import last_topup
from tarazu.store.usage import WHOLE, Part, Usage, usage_by_day_and_model, usage_by_key

OVERVIEW_DAYS = 30


class UsageLine(Struct, frozen=True, kw_only=True):
    """What was used on one day, with one model or with one key; `name` is for people."""

    id: str
    name: str
    usage: Usage


class UsageReport(Struct, frozen=True, kw_only=True):
    """What was used in the days of `days`, which are all there, the earliest first.

    The same by model and by key, those that cost most first; what was not used is not there.
    """

    days: tuple[UsageLine, ...]
    models: tuple[UsageLine, ...]
    keys: tuple[UsageLine, ...]
    total: Usage
    of_models: Mapping[tuple[str, str], Usage]
    """Of a day, and of a model by its id."""


class Overview(Struct, frozen=True, kw_only=True):
    """An account as it stands now. `plan` is None where it has none that is on sale; `limit` is the month's quota."""

    account: Account
    plan: Plan | None
    limit: int
    remaining: int
    window: RateLimit
    usage: UsageReport
    is_low: bool = False
    """Whether four fifths of the quota, or without a plan of the last top-up, are used."""


class KeyLine(Struct, frozen=True, kw_only=True):
    """One key. `last_used_ms` is the beginning of the minute in which its last request came.

    Counted are the requests that took a place in the windows, as GET requests do not. None: there was none.
    """

    id: str
    name: str
    state: KeyState
    models: tuple[str, ...] | None
    limit_per_minute: int | None
    created_at_ms: int
    expires_at_ms: int | None
    revoked_at_ms: int | None
    last_used_ms: int | None
    paused_at_ms: int | None
    successor_id: str | None
    usage: Usage
    """Of this month."""

    @property
    def letters(self) -> str:
        """What the whole key begins with."""
        return API_KEY.prefix + self.id.removeprefix(API_KEY.id_prefix)


class KeyList(Struct, frozen=True, kw_only=True):
    """A page of the keys that are looked for, the newest first; `ended` is how many more there are that have ended."""

    keys: tuple[KeyLine, ...]
    paging: Paging
    ended: int


class Outcome(StrEnum):
    """What has become of a request."""

    RUNNING = "running"
    """Its credits are held until it ends."""
    CHARGED = "charged"
    """Its credits are spent: it was answered, or has a reason why it was not."""
    RELEASED = "released"
    """It was not answered; its credits went back at once."""
    SWEPT = "swept"
    """It was lost with the process that served it; its credits went back after its deadline."""


class Cause(StrEnum):
    """Why a request has no reply."""

    ABANDONED = "abandoned"
    """Its client left before the reply."""
    TIMED_OUT = "timed_out"
    """The model's time-out passed."""
    BACKEND_FAILED = "backend_failed"
    """No backend of the model gave a valid reply."""
    NOT_ASKED = "not_asked"
    """It ended before a backend was asked: the process had too many, or the client left early."""
    LOST = "lost"
    """The process that served it has ended."""


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """One request, without its content.

    `price` is what it was to cost, `credits` what it has cost: 0 where they were given back. While it runs they are
    held, and it has no tries, tokens and duration; one that was swept has no duration, since nobody knows when it
    ended. `cause` tells why there is no reply.
    """

    id: str
    key_id: str
    key_name: str
    model_id: str
    price: int
    credits: int
    source: Source
    outcome: Outcome
    created_at_ms: int
    duration_ms: int | None
    tries: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cause: Cause | None = None

    @property
    def ending(self) -> Ending:
        """Tell what has become of it, in the words by which it is looked for."""
        if self.outcome is Outcome.RUNNING:
            return Ending.RUNNING
        return Ending.SUCCEEDED if self.cause is None else Ending.FAILED


class HistoryFilter(Struct, frozen=True, kw_only=True):
    """Which requests are looked for: those that are all of what is given. The days are the first and the last."""

    key_id: str | None = None
    model_id: str | None = None
    ending: Ending | None = None
    first_day: str | None = None
    last_day: str | None = None


class History(Struct, frozen=True, kw_only=True):
    """Requests, the newest first, those that were refused summed up and at the time of the first of them.

    `before` is the id of what the next page begins after, None when there is no next one. `looked_at` is how many were
    gone through where the page ends for their number, and not for its length.
    """

    entries: tuple[HistoryEntry | RefusedRow, ...]
    before: str | None = None
    looked_at: int | None = None


def overview(
    connection: Connection, account_id: str, catalogue: Catalogue, now_ms: int, days: DayRange | None = None
) -> Overview:
    """Show an account on its page of this month, this minute's window, and its usage in these days.

    Without `days` it is that of the last OVERVIEW_DAYS.

    Raises:
        ProvisioningError: there is no such account.
    """
    found = existing_account(connection, account_id)
    (account,) = on_page(connection, [found], period_of(now_ms, catalogue.zone))
    plan = catalogue.plan(account.plan)
    remaining = quota_remaining(account, plan)
    return Overview(
        account=account,
        plan=plan,
        limit=quota_limit(plan),
        remaining=remaining,
        window=account_limit(account, catalogue.offer(account.plan), now_ms),
        usage=usage_report(connection, account_id, catalogue, now_ms, days),
        is_low=is_low(remaining, quota_limit(plan))
        if plan
        else is_low(account.balance, last_topup(connection, account_id)),
    )


def usage_report(
    connection: Connection,
    account_id: str,
    catalogue: Catalogue,
    now_ms: int,
    asked: DayRange | None = None,
    part: Part = WHOLE,
) -> UsageReport:
    """Add up what an account has used in the days that are asked for, or in the last OVERVIEW_DAYS, today included.

    With a `part` it is what was used by one key, or of one model.
    """
    days = days_until(day_of(now_ms, catalogue.zone), OVERVIEW_DAYS) if asked is None else asked.days
    first_day, last_day = days[0], days[-1]
    of_models = usage_by_day_and_model(connection, account_id, first_day=first_day, last_day=last_day, part=part)
    by_key = usage_by_key(connection, account_id, first_day=first_day, last_day=last_day, part=part)
    by_day: defaultdict[str, Usage] = defaultdict(Usage)
    by_model: defaultdict[str, Usage] = defaultdict(Usage)
    for (day, model_id), usage in of_models.items():
        by_day[day] += usage
        by_model[model_id] += usage
    return UsageReport(
        days=tuple(UsageLine(id=day, name=day, usage=by_day.get(day, Usage())) for day in days),
        models=_dearest_first(
            UsageLine(id=id_, name=model_name(catalogue, id_), usage=usage) for id_, usage in by_model.items()
        ),
        keys=_dearest_first(UsageLine(id=each.key_id, name=each.key_name, usage=each.usage) for each in by_key),
        total=sum(by_day.values(), start=Usage()),
        of_models=of_models,
    )


def key_list(
    connection: Connection,
    account_id: str,
    zone: tzinfo,
    now_ms: int,
    sought: SoughtKeys,
    *,
    page: int | None = None,
) -> KeyList:
    """List a page of an account's keys that are looked for, each with its usage of this month.

    Raises:
        ProvisioningError: there is no such account.
    """
    existing_account(connection, account_id)
    sought = replace(sought, text=_id_of_key(sought.text))
    paging = Paging.of(count_keys(connection, account_id, sought, now_ms), page)
    found = keys_found(connection, account_id, sought, now_ms, limit=paging.length, offset=paging.offset)
    usage = _usage_of_keys(connection, account_id, zone, now_ms)
    everything = replace(sought, with_ended=True)
    return KeyList(
        keys=tuple(_key_line(key, now_ms, usage) for key in found),
        paging=paging,
        ended=0 if sought.with_ended else count_keys(connection, account_id, everything, now_ms) - paging.count,
    )


def key_line(connection: Connection, account_id: str, key_id: str, zone: tzinfo, now_ms: int) -> KeyLine:
    """Show one key of an account, with its usage of this month.

    Raises:
        ProvisioningError: the account has no such key; there may be one in another.
    """
    key = find_key(connection, key_id)
    if key is None or key.account_id != account_id:
        raise no_key(key_id)
    return _key_line(key, now_ms, _usage_of_keys(connection, account_id, zone, now_ms))


def _id_of_key(text: str) -> str:
    """Look for a key by its id where a whole one, or its beginning, was pasted: no secret is looked for."""
    text = text.strip()
    if not text.startswith(API_KEY.prefix):
        return text
    return API_KEY.id_prefix + text[len(API_KEY.prefix) : PREFIX_LENGTH + PUBLIC_ID_LENGTH]


def _usage_of_keys(connection: Connection, account_id: str, zone: tzinfo, now_ms: int) -> dict[str, Usage]:
    today = day_of(now_ms, zone)
    used = usage_by_key(connection, account_id, first_day=f"{period_of(now_ms, zone)}-01", last_day=today)
    return {each.key_id: each.usage for each in used}


def history(
    connection: Connection,
    account_id: str,
    zone: tzinfo,
    *,
    limit: int = HISTORY_LENGTH,
    before: str | None = None,
    sought: HistoryFilter = HistoryFilter(),  # noqa: B008 - it is frozen
) -> History:
    """List an account's requests of those that are sought, at most `limit`, and before `before`, if given.

    Days are those in `zone`.

    Raises:
        ProvisioningError: there is no such account, it has no request `before`, or `limit` is out of bounds.
    """
    checked_length(limit)
    existing_account(connection, account_id)
    filter_ = RequestFilter(
        key_id=sought.key_id,
        model_id=sought.model_id,
        ending=sought.ending,
        since_ms=None if sought.first_day is None else day_start_ms(sought.first_day, zone),
        until_ms=None if sought.last_day is None else day_start_ms(day_after(sought.last_day), zone),
    )
    of_requests, of_refused = _places(connection, account_id, before)
    requests: NewestPage[RequestRow] = NewestPage([])
    refused: NewestPage[RefusedRow] = NewestPage([])
    if sought.ending is not Ending.REFUSED:
        requests = newest_requests(connection, account_id, limit=limit, before=of_requests, sought=filter_)
    if sought.ending in {None, Ending.REFUSED}:
        refused = newest_refused(connection, account_id, limit=limit, before=of_refused, sought=filter_)
    newest_first: Iterable[HistoryEntry | RefusedRow] = heapq.merge(
        map(_entry, requests.rows), refused.rows, key=_age_of
    )
    # Where one of them goes on, what is older of the other is for the next page.
    ends = [
        (_age(page.end.at_ms, is_refused=page is refused), page) for page in (requests, refused) if page.end is not None
    ]
    age, page = min(ends, default=(None, None), key=itemgetter(0))
    entries = tuple(entry for entry in newest_first if age is None or _age_of(entry) <= age)
    if len(entries) > limit:
        return History(entries=entries[:limit], before=entries[limit - 1].id)
    if page is None or page.end is None:
        return History(entries=entries)
    return History(entries=entries, before=page.end.id, looked_at=page.looked_at)


def _age_of(entry: HistoryEntry | RefusedRow) -> tuple[int, bool]:
    if isinstance(entry, RefusedRow):
        return _age(entry.first_at_ms, is_refused=True)
    return _age(entry.created_at_ms, is_refused=False)


def _age(at_ms: int, *, is_refused: bool) -> tuple[int, bool]:
    """Tell by what a history is ordered; of one instant those that were admitted come first."""
    return -at_ms, is_refused


def _places(connection: Connection, account_id: str, before: str | None) -> tuple[Place | None, Place | None]:
    """Tell where a history goes on, among requests and among those that were refused.

    Raises:
        ProvisioningError: the account has neither with this id.
    """
    if before is None:
        return None, None
    if request := find_request(connection, account_id, before):
        return request.place, Place(request.created_at_ms + 1, "")
    if refused := find_refused(connection, account_id, before):
        return Place(refused.first_at_ms, ""), Place(refused.first_at_ms, refused.id)
    raise NotThereError("There is no request {request!r}.", request=before)


def history_of_one(connection: Connection, account_id: str, request_id: str) -> History:
    """List the one request of an account with this id, or with this `X-Request-Id` of its answer, if there is one."""
    found = find_request(connection, account_id, completion_id_of(request_id))
    return History(entries=() if found is None else (_entry(found),))


def model_name(catalogue: Catalogue, model_id: str) -> str:
    """Name a model for people; by its id where it is not sold any more."""
    model = catalogue.models.get(model_id)
    return model_id if model is None else model.display_name


def _dearest_first(lines: Iterable[UsageLine]) -> tuple[UsageLine, ...]:
    return tuple(sorted(lines, key=lambda line: (-line.usage.credits, -line.usage.requests, line.id)))


def _key_line(key: Key, now_ms: int, usage: Mapping[str, Usage]) -> KeyLine:
    return KeyLine(
        id=key.id,
        name=key.name,
        state=key.state(now_ms),
        models=key.models,
        limit_per_minute=key.limit_per_minute,
        created_at_ms=key.created_at_ms,
        expires_at_ms=key.expires_at_ms,
        revoked_at_ms=key.revoked_at_ms,
        last_used_ms=key.window.last_used_ms,
        paused_at_ms=key.paused_at_ms,
        successor_id=key.successor_id,
        usage=usage.get(key.id, Usage()),
    )


def _entry(row: RequestRow) -> HistoryEntry:
    outcome = Outcome.RUNNING if row.state is RequestState.HELD else Outcome(row.state.value)
    return HistoryEntry(
        id=row.id,
        key_id=row.key_id,
        key_name=row.key_name,
        model_id=row.model_id,
        price=row.credits,
        credits=row.credits if outcome in {Outcome.RUNNING, Outcome.CHARGED} else 0,
        source=row.source,
        outcome=outcome,
        created_at_ms=row.created_at_ms,
        duration_ms=_duration_ms(row),
        tries=row.tries,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cause=_cause(row),
    )


def _cause(row: RequestRow) -> Cause | None:
    if row.reason is not None:
        return Cause(row.reason.value)
    if row.state is RequestState.SWEPT:
        return Cause.LOST
    if row.state is not RequestState.RELEASED:
        return None
    return Cause.BACKEND_FAILED if row.tries else Cause.NOT_ASKED


def _duration_ms(row: RequestRow) -> int | None:
    if row.ended_at_ms is None or row.state is RequestState.SWEPT:
        return None
    return max(0, row.ended_at_ms - row.created_at_ms)  # the clock may have stepped back
