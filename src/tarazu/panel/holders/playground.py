"""A conversation with a model, by the same way as the API's requests: admitted, charged and refused as they are.

The conversation travels in the form. Each message carries an idempotency key, so that one that is sent again, by a
reload or a second click, is answered again and not charged again.
"""

from http import HTTPStatus
from secrets import token_hex
from typing import Literal

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.api.presence import unless_gone
from tarazu.domain.accounts import Account, Key
from tarazu.domain.errors import Refusal
from tarazu.domain.idempotency import idempotency_of
from tarazu.domain.keys import PresentedKey
from tarazu.domain.prompt import read_chat_request
from tarazu.panel.acting import act
from tarazu.panel.holders.offer import offered_models
from tarazu.panel.kept import Kept, Kind, NotTakenError
from tarazu.panel.refusals import Refused
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.completion import Completion, Completions
from tarazu.service.provisioning import Provisioning

TURNS_MAX = 500
TURN_BYTES = 16
KEYS_MAX = 50
"""The newest keys, to choose from."""


class Turn(Struct, frozen=True, kw_only=True):
    """One message of the conversation; a model's has its name, the request's id, what it cost, and its tokens."""

    role: Literal["user", "assistant"]
    content: str
    model: str = ""
    request_id: str = ""
    credits: int = 0
    tokens: int = 0


class Choices(Struct, frozen=True, kw_only=True):
    """What the account can converse by."""

    keys: tuple[Key, ...]
    models: tuple[str, ...]


class PlaygroundPages:
    """The page, and its form."""

    def __init__(self, office: BackOffice, completions: Completions) -> None:
        self._office = office
        self._completions = completions

    async def show(self, visit: Visit) -> Response:
        """Show the conversation so far, with a form for its next message."""
        form, choices = visit.form, await self._choices(visit)
        turns = _turns(form.text("conversation"))
        model = form.text("model") or visit.query("model") or (choices.models[0] if choices.models else "")
        return visit.page(
            "playground.html",
            choices=choices,
            turns=turns,
            conversation=msgspec.json.encode(turns).decode(),
            model=model,
            key_id=form.text("key"),
            prompt=visit.written("prompt"),
            turn=token_hex(TURN_BYTES),
        )

    async def complete(self, visit: Visit) -> Response:
        """Ask the model for its next turn, unless the browser leaves meanwhile."""
        choices = await self._choices(visit)
        form = visit.form
        key = next((key for key in choices.keys if key.id == form.text("key")), None)
        if key is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        turns, prompt, model = _turns(form.text("conversation")), form.text("prompt"), form.text("model")
        asked = (*turns, Turn(role="user", content=prompt))
        # Without its last message the conversation would be asked, and paid for, once more.
        body = _body(model, asked if prompt.strip() else ())
        turn = form.text("turn")
        idempotency = idempotency_of(f"playground {turn}", body) if turn.isalnum() and turn.isascii() else None
        work = self._completions.complete(PresentedKey(key.id, key.digest), read_chat_request(body), idempotency)
        answer = await unless_gone(visit.request.receive, work, self._completions.pulse)
        if answer is None:
            return Response(status_code=HTTPStatus.NO_CONTENT)  # nobody is there to read it
        if isinstance(answer.outcome, Refusal):
            raise NotTakenError(Refused.of_completion(answer.outcome))
        conversation = msgspec.json.encode((*asked, _turn_of(answer.outcome))).decode()
        fields = (("conversation", conversation), ("model", model), ("key", key.id))
        return await visit.lead_or_show("/playground", Kept(kind=Kind.SHOWN, fields=fields), self.show)

    async def _choices(self, visit: Visit) -> Choices:
        def look(books: Provisioning) -> tuple[Account, list[Key]]:
            return books.account(visit.someone.id), books.live_keys(visit.someone.id, limit=KEYS_MAX)

        account, keys = await act(self._office, visit, look)
        models = offered_models(account, self._office.catalogue)
        return Choices(
            keys=tuple(keys),
            models=tuple(model.id for model in models),
        )


def _turns(conversation: str) -> tuple[Turn, ...]:
    """Read the conversation so far out of the form.

    Raises:
        HTTPException: no page of ours has written it so.
    """
    try:
        turns = msgspec.json.decode(conversation or "[]", type=tuple[Turn, ...])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
    if len(turns) > TURNS_MAX:
        raise HTTPException(HTTPStatus.BAD_REQUEST)
    return turns


def _body(model: str, turns: tuple[Turn, ...]) -> bytes:
    """Ask as a program would, so that the same rules are in force."""
    messages = [{"role": turn.role, "content": turn.content} for turn in turns]
    return msgspec.json.encode({"model": model, "messages": messages})


def _turn_of(completion: Completion) -> Turn:
    return Turn(
        role="assistant",
        content=completion.text,
        model=completion.model_id,
        request_id=completion.id,
        credits=completion.credits,
        tokens=completion.prompt_tokens + completion.completion_tokens,
    )
