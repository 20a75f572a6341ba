"""What tells one kind of model server from another: a dialect, pure, in one file of `kinds`."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tarazu.domain.prompt import Message, ResponseFormat, Settings


class Draft(Struct, frozen=True, kw_only=True):
    """What a server's answer says, before it is judged.

    `text` may be blank. `is_refusal`: the model, or a filter, declined. `is_cut`: there was no room for more, by
    `max_tokens` or in the model. `is_stopped`: the reply ended where it wanted, or at a `stop` of the request.
    """

    text: str
    is_refusal: bool = False
    is_cut: bool = False
    is_stopped: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def as_they_are(settings: Settings) -> Settings:
    """Leave the settings of a request as they are."""
    return settings


def without_words(_name: str, _form: ResponseFormat) -> dict[str, Any]:
    """Ask nothing of a server that has no word for a reply in JSON."""
    return {}


class Dialect(Struct, frozen=True, kw_only=True):
    """How one kind of server is asked, and how its answers are read.

    - `url`: where its maker runs it; None when it has no one maker.
    - `path`: what is added to the url; `{model}` in it stands for the model.
    - `key_header`: the header that carries the key.
    - `headers`: what every request carries beside it.
    - `names`: how the server calls each of our settings; one that is not in it is not sent.
    - `fit`: brings the settings into the bounds of this server.
    - `form`: asks for a reply in JSON, by the name that the server has for that setting.
    - `body`: makes the body of model, messages and settings, these by the server's names.
    - `read`: takes the answer apart, a JSON value of any form. What is no answer of this kind raises
      msgspec.ValidationError or LookupError.
    """

    url: str | None
    path: str
    key_header: str
    headers: dict[str, str] = {}
    names: dict[str, str]
    fit: Callable[[Settings], Settings] = as_they_are
    form: Callable[[str, ResponseFormat], dict[str, Any]] = without_words
    body: Callable[[str, tuple[Message, ...], dict[str, Any]], dict[str, Any]]
    read: Callable[[Any], Draft]
