"""How a list of requests is narrowed, on the pages of holders and of operators: read from the address, and offered."""

from collections.abc import Iterable

from msgspec import Struct

from tarazu.domain.accounts import Account, Key
from tarazu.domain.calendar import day_of
from tarazu.domain.catalogue import Catalogue
from tarazu.panel.formats import Formats, isolated
from tarazu.panel.holders.offer import offered_models
from tarazu.panel.messages import later, told, translations
from tarazu.panel.narrowed import Narrowed
from tarazu.panel.ranges import read_span
from tarazu.panel.visits import Visit
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.service.reports import HistoryFilter
from tarazu.store.request_history import Ending

KEYS_OFFERED_MAX = 200
"""Of an account's keys the newest are offered to choose from; an address may name any."""

ENDINGS = {
    Ending.SUCCEEDED: later("succeeded"),
    Ending.FAILED: later("failed"),
    Ending.RUNNING: later("running"),
    Ending.REFUSED: later("refused"),
}

Choice = tuple[str, str]
"""The value that a form sends, and what people read."""


class Choices(Struct, frozen=True, kw_only=True):
    """What the form offers to choose from."""

    keys: list[Choice]
    models: list[Choice]
    endings: list[Choice]


def read_narrowed(visit: Visit, now_ms: int) -> Narrowed[HistoryFilter]:
    """Read it from the address of a page."""
    query = {
        "key": visit.query("key").strip(),
        "model": visit.query("model").strip(),
        "outcome": visit.query("outcome").strip(),
        "from": visit.query("from").strip(),
        "until": visit.query("until").strip(),
    }
    ending = next((ending for ending in Ending if ending.value == query["outcome"]), None)
    try:
        first, last = read_span(query["from"], query["until"], day_of(now_ms, visit.formats.zone))
    except ProvisioningError as error:
        return Narrowed(sought=HistoryFilter(), query=query, refusal=told(error, visit.formats))
    sought = HistoryFilter(
        key_id=query["key"] or None,
        model_id=query["model"] or None,
        ending=ending,
        first_day=first,
        last_day=last,
    )
    return Narrowed(sought=sought, query={**query, "outcome": ending or ""})


def choices(
    account: Account, keys: Iterable[Key], catalogue: Catalogue, narrowed: Narrowed[HistoryFilter], formats: Formats
) -> Choices:
    """List the keys of an account, the models that it is offered, and the outcomes; with what is chosen now."""
    gettext = translations(formats.language).gettext
    named = [(key.id, f"{isolated(key.name)} ({isolated(key.id)})") for key in keys]
    models = [model.id for model in offered_models(account, catalogue)]
    return Choices(
        keys=[("", gettext("any key")), *_with(narrowed.query["key"], named)],
        models=[("", gettext("any model")), *_with(narrowed.query["model"], [(id_, id_) for id_ in models])],
        endings=[("", gettext("any outcome")), *((ending.value, gettext(word)) for ending, word in ENDINGS.items())],
    )


def _with(chosen: str, offered: list[Choice]) -> list[Choice]:
    """Offer what is chosen too, where it is not among the others."""
    is_offered = not chosen or any(value == chosen for value, _ in offered)
    return offered if is_offered else [*offered, (chosen, chosen)]
