"""The forms about keys: a new one, a change, when a replaced one ends. The same for holders and operators."""

from collections.abc import Iterable
from datetime import date, tzinfo
from http import HTTPStatus

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.domain.calendar import MILLISECONDS_PER_SECOND, day_after, day_of, day_start_ms
from tarazu.domain.catalogue import Model
from tarazu.panel.formats import Formats
from tarazu.panel.forms import Form
from tarazu.panel.messages import translations
from tarazu.panel.ranges import written_date
from tarazu.panel.visits import Visit
from tarazu.service.checks import EXPIRY_S_MAX, UNCHANGED, Unchanged
from tarazu.service.key_acts import IssuedKey
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.service.reports import KeyLine
from tarazu.store.keys import SoughtKeys

SEARCH_MAX = 200
WITH_ENDED = "shown"
DAYS_MAX = 3_650
LIMIT_MAX = 1_000_000
SECONDS_PER_DAY = 86_400
YEARS_MAX = EXPIRY_S_MAX // (365 * SECONDS_PER_DAY)
"""A day of one's own choice is at most so far away."""
DAYS_OFFERED = (7, 30, 90, 365)
NEVER = "never"
ON_A_DAY = "day"
"""The choice of a date of one's own, until whose end the key works."""
GRACES_S = (86_400, 3_600, 7 * 86_400)
"""For so long the old key may live on beside the one that takes its place; a day, unless another time is chosen."""
AT_ONCE_S = 0


class KeyTerms(Struct, frozen=True, kw_only=True):
    """What a new key is to be."""

    name: str
    models: tuple[str, ...] | None
    limit_per_minute: int | None
    expires_in_s: int | Unchanged | None

    @classmethod
    def of(cls, visit: Visit, models: Iterable[Model], key: KeyLine | None = None) -> "KeyTerms":
        """Read them from the form, which offers these models, and those that `key` has already.

        Raises:
            ProvisioningError: a number or a date is none or out of bounds, or a model is not among those.
        """
        form = visit.form
        limit = within("limit per minute", form.whole_number("limit per minute", "limit"), LIMIT_MAX)
        chosen = form.texts("models")
        own = () if key is None else key.models or ()
        if not {*own, *(model.id for model in models)}.issuperset(chosen):
            raise ProvisioningError("Choose models from the list.")
        return cls(
            name=form.text("name"),
            models=chosen or None,
            limit_per_minute=limit,
            expires_in_s=_read_end(form, visit.now_ms, visit.formats.zone),
        )

    def create(self, books: Provisioning, account_id: str) -> IssuedKey:
        """Issue the key.

        Raises:
            ProvisioningError: no such account, or a bad name.
        """
        return books.create_key(
            account_id,
            name=self.name,
            models=self.models,
            limit_per_minute=self.limit_per_minute,
            expires_in_s=None if isinstance(self.expires_in_s, Unchanged) else self.expires_in_s,
        )

    def change(self, books: Provisioning, key: KeyLine, account_id: str) -> None:
        """Change a key to these terms; where no other end is chosen its own stays as it is.

        Raises:
            ProvisioningError: the account has no such key, it has ended, or a bad name.
        """
        books.set_key(
            key.id,
            account_id=account_id,
            name=self.name,
            models=self.models,
            limit_per_minute=self.limit_per_minute,
            expires_in_s=self.expires_in_s,
        )


def key_query(visit: Visit) -> tuple[SoughtKeys, dict[str, str]]:
    """Read which keys are looked for, and the parameters that say so."""
    search, ended = visit.query("search").strip()[:SEARCH_MAX], visit.query("ended")
    sought = SoughtKeys(text=search, with_ended=ended == WITH_ENDED)
    return sought, {"search": search, "ended": WITH_ENDED if sought.with_ended else ""}


def expiry_choices(formats: Formats, key: KeyLine | None = None) -> list[tuple[str, str]]:
    """List when a new key may end, or to what the end of `key` may be changed; the first is what is chosen at first."""
    words = translations(formats.language)
    kept = words.gettext("never")
    if key is not None:
        kept = words.gettext("as it is now: {end}").format(
            end=kept if key.expires_at_ms is None else formats.moment(key.expires_at_ms)
        )
    in_days = [
        (str(days), words.ngettext("after {shown} day", "after {shown} days", days).format(shown=formats.number(days)))
        for days in DAYS_OFFERED
    ]
    never = [] if key is None or key.expires_at_ms is None else [(NEVER, words.gettext("never"))]
    return [("", kept), *in_days, (ON_A_DAY, words.gettext("after a day of your choice")), *never]


def read_grace(form: Form) -> int:
    """Read after how many seconds the old key ends.

    Raises:
        HTTPException: the form offers no such time.
    """
    grace_s = next((grace_s for grace_s in (*GRACES_S, AT_ONCE_S) if str(grace_s) == form.text("grace")), None)
    if grace_s is None:
        raise HTTPException(HTTPStatus.BAD_REQUEST)
    return grace_s


def show_key_once(visit: Visit, path: str, issued: IssuedKey, grace_s: int | None = None) -> Response:
    """Lead to the page that shows a new key."""
    grace = {} if grace_s is None else {"grace_s": str(grace_s), "old_ends_ms": str(issued.old_ends_ms)}
    live_keys = {} if issued.live_keys is None else {"live_keys": str(issued.live_keys)}
    return visit.show_once(path, secret=issued.secret, **grace, **live_keys)


def _read_end(form: Form, now_ms: int, zone: tzinfo) -> int | Unchanged | None:
    """Read for how many seconds the key is to work from now on; None: for ever."""
    chosen = form.text("days").strip()
    if not chosen:
        return UNCHANGED
    if chosen == NEVER:
        return None
    if chosen == ON_A_DAY:
        last = written_date(form.text("until"), member="until")
        if (last - date.fromisoformat(day_of(now_ms, zone))).days >= EXPIRY_S_MAX // SECONDS_PER_DAY:
            raise ProvisioningError(
                "The last day of a key must be within {years} years. Choose that it never expires, or an earlier day.",
                years=YEARS_MAX,
                member="until",
            )
        lasts_ms = day_start_ms(day_after(last.isoformat()), zone) - now_ms
        if lasts_ms < MILLISECONDS_PER_SECOND:
            raise ProvisioningError("The last day of a key must not be before today.", member="until")
        return lasts_ms // MILLISECONDS_PER_SECOND
    days = within("number of days", form.whole_number("number of days", "days"), DAYS_MAX)
    return None if days is None else days * SECONDS_PER_DAY


def within(what: str, number: int | None, most: int) -> int | None:
    """Let a number pass, or None.

    Raises:
        ProvisioningError: it is below 1 or above `most`.
    """
    if number is not None and not 1 <= number <= most:
        raise ProvisioningError(
            "The {what} must be from 1 to {most}, not {number}.", what=what, most=most, number=number
        )
    return number
