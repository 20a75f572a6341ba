"""A conversation with a model, by the same way as the API's requests: admitted, charged and refused as they are.

The conversation travels in the form. Each message carries an idempotency key, so that one that is sent again, by a
reload or a second click, is answered again and not charged again.
"""

import re
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from secrets import token_hex

from markupsafe import Markup
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.api.contract.samples import chat_samples
from tarazu.api.contract.structure import CodeSample
from tarazu.api.presence import unless_gone
from tarazu.domain.accounts import Account, Key
from tarazu.domain.catalogue import Model
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.idempotency import idempotency_of
from tarazu.domain.keys import PresentedKey
from tarazu.domain.prompt import RANGES, read_chat_request
from tarazu.panel.acting import act
from tarazu.panel.forms import Form
from tarazu.panel.holders.conversation import (
    CARRIED,
    NUMBERS,
    WHOLE_NUMBERS,
    Turn,
    conversation_of,
    turns_of,
    written,
)
from tarazu.panel.holders.offer import offered_models
from tarazu.panel.kept import Kept, Kind, NotTakenError
from tarazu.panel.markdown import MARKDOWN_CHARACTERS_MAX, markdown
from tarazu.panel.messages import later, translations
from tarazu.panel.refusals import Refused
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.completion import Completions
from tarazu.service.configuration.addresses import API_PATH
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError

PATH = "/playground"
TURN_BYTES = 16
_TURN = re.compile(rf"[0-9a-f]{{{2 * TURN_BYTES}}}")
_CODE = later("Code")
_TABLE = later("Table")
KEYS_MAX = 50
"""The newest keys, to choose from."""


class Shown(Struct, frozen=True, kw_only=True):
    """What the account can converse by, and the replies so far as they are shown; None: as they are written."""

    keys: tuple[Key, ...]
    models: tuple[Model, ...]
    replies: tuple[Markup | None, ...] = ()


class PlaygroundPages:
    """The page, and its forms. `base_url` is where callers reach the service."""

    def __init__(self, office: BackOffice, completions: Completions, base_url: str) -> None:
        self._office = office
        self._completions = completions
        self._api_url = base_url + API_PATH

    async def show(self, visit: Visit) -> Response:
        """Show the conversation so far, with a form for its next message."""
        turns = turns_of(visit.form)
        shown = await self._shown(visit, turns)
        fields = {name: visit.form.text(name) for name in CARRIED}
        fields["model"] = fields["model"] or visit.query("model") or (shown.models[0].id if shown.models else "")
        return visit.page(
            "playground.html",
            shown=shown,
            turns=turns,
            conversation=written(turns),
            fields=fields,
            ranges=RANGES,
            numbers=NUMBERS,
            whole_numbers=WHOLE_NUMBERS,
            prompt=visit.form.text("prompt"),
            turn=token_hex(TURN_BYTES),
            samples=self._samples(Form((*fields.items(), *visit.form.fields))),
        )

    async def take_up(self, visit: Visit) -> Response:
        """Show a conversation that a browser has kept, and what is written beside it; nothing is asked."""
        turns_of(visit.form)
        names = ("conversation", "prompt", *CARRIED)
        fields = tuple((name, value) for name in names if (value := visit.form.text(name)))
        return await visit.lead_or_show(PATH, Kept(kind=Kind.SHOWN, fields=fields), self.show)

    async def complete(self, visit: Visit) -> Response:
        """Ask the model for its next turn, unless the browser leaves meanwhile."""
        shown, form = await self._shown(visit, ()), visit.form
        key = next((key for key in shown.keys if key.id == form.text("key")), None)
        if key is None:  # paused or ended since the page was opened, or none of this account's
            raise NotTakenError(Refused(status=HTTPStatus.NOT_FOUND, error=Error.INVALID_API_KEY.name))
        conversation = conversation_of(form)
        body, turn = conversation.body(), form.text("turn")
        if turn and not _TURN.fullmatch(turn):
            raise HTTPException(HTTPStatus.BAD_REQUEST)  # no page of ours has written it so
        idempotency = idempotency_of(f"playground {turn}", body) if turn else None
        work = self._completions.complete(PresentedKey(key.id, key.digest), read_chat_request(body), idempotency)
        answer = await unless_gone(visit.request.receive, work, self._completions.pulse)
        if answer is None:
            return Response(status_code=HTTPStatus.NO_CONTENT)  # nobody is there to read it
        if isinstance(answer.outcome, Refusal):
            raise NotTakenError(Refused.of_completion(answer.outcome))
        carried = tuple((name, value) for name in CARRIED if (value := form.text(name)))
        fields = (("conversation", conversation.answered(answer.outcome)), *carried)
        return await visit.lead_or_show(PATH, Kept(kind=Kind.SHOWN, fields=fields), self.show)

    async def _shown(self, visit: Visit, turns: tuple[Turn, ...]) -> Shown:
        """Look up what can be chosen, and render the replies, in turn with what else the back office is asked."""
        words = translations(visit.formats.language)
        render = partial(markdown, code=words.gettext(_CODE), table=words.gettext(_TABLE))

        def look(books: Provisioning) -> tuple[Account, list[Key], tuple[Markup | None, ...]]:
            keys = books.active_keys(visit.someone.id, limit=KEYS_MAX)
            return books.account(visit.someone.id), keys, _rendered(turns, render)

        account, keys, replies = await act(self._office, visit, look)
        return Shown(keys=tuple(keys), models=offered_models(account, self._office.catalogue), replies=replies)

    def _samples(self, form: Form) -> tuple[CodeSample, ...]:
        """Write the conversation as programs; none, while a setting is not one."""
        try:
            conversation = conversation_of(form)
        except ProvisioningError:
            return ()
        return chat_samples(self._api_url, conversation.model, conversation.messages(), conversation.settings)


def _rendered(turns: tuple[Turn, ...], render: Callable[[str], Markup | None]) -> tuple[Markup | None, ...]:
    """Render the replies, the newest first as far as they are not too long together."""
    left, replies = MARKDOWN_CHARACTERS_MAX, []
    for turn in reversed(turns):
        left -= len(turn.content) if turn.role == "assistant" else 0
        replies.append(render(turn.content) if turn.role == "assistant" and left >= 0 else None)
    return tuple(reversed(replies))
