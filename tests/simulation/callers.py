"""What callers send: with which key, for which model, with or without an idempotency key, now and then nonsense."""

from random import Random

from tarazu.domain.admission import Asked
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.idempotency import idempotency_of
from tarazu.domain.keys import PresentedKey
from tarazu.domain.prompt import ChatRequest, Message, Settings
from tests.simulation.told import Sending

MODELS = (None, "free", "free", "small", "small", "small", "small", "large", "large", "large", "huge", "gone")
IDEMPOTENCY_KEYS = "ab"
"""Few, so that they come again."""
BODIES = (b"{}", b"{}", b"{}", b"[]")
LAST_KEYS = 3
"""An account's callers use the last of its keys, also those that have been replaced."""
TOKENS_MAX = 100
_MESSAGES = (Message("user", "Hello"),)
_SETTINGS = Settings()
_INVALID = Refusal(error=Error.MESSAGES_REQUIRED)


class Callers:
    """Everybody who has a key. `keys` are the accounts' keys, the newest last."""

    def __init__(self, random: Random, keys: dict[str, list[PresentedKey]]) -> None:
        self.keys = keys
        self._random = random
        self._sent = 0

    def account_id(self) -> str:
        """Choose an account."""
        return self._random.choice(sorted(self.keys))

    def key(self, account_id: str) -> PresentedKey:
        """Choose one of its keys."""
        return self._random.choice(self.keys[account_id][-LAST_KEYS:])

    def send(self) -> Sending:
        """Make a request."""
        account_id = self.account_id()
        model = self._random.choice(MODELS)
        is_valid = self._random.randrange(16) > 0
        sent = None
        if self._random.randrange(5) < 2:
            sent = self._random.choice(IDEMPOTENCY_KEYS), self._random.choice(BODIES)
        self._sent += 1
        asked = Asked(
            request_id=f"req_{self._sent:03}",
            key=self.key(account_id),
            request=ChatRequest(model=model, messages=_MESSAGES, settings=_SETTINGS) if is_valid else _INVALID,
            idempotency=None if sent is None else idempotency_of(*sent),
        )
        tokens = self._random.randrange(TOKENS_MAX), self._random.randrange(TOKENS_MAX)
        return Sending(account_id=account_id, asked=asked, sent=sent, tokens=tokens)
