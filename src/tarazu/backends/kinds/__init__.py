"""The kinds of model servers that are asked over HTTP. A new one is a file beside this one, and a line here."""

from tarazu.backends.dialect import Dialect
from tarazu.backends.kinds.anthropic import ANTHROPIC
from tarazu.backends.kinds.gemini import GEMINI
from tarazu.backends.kinds.openai import OPENAI

KINDS: dict[str, Dialect] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
}
