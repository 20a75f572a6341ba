"""The process of one local model: llama.cpp's HTTP server, for as long as the process that started it lives.

`python -m tarazu.backends.local_server` reads an Order as one line of JSON from its standard input. When the model is
ready, or cannot be loaded, it writes an Answer as one line to its standard output. Then it waits until its input ends.
"""

import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import xllamacpp

HOST = "127.0.0.1"
HEALTH_PATH = "/health"
"""Under the `/v1` of the address; answered 200 once the model is loaded."""
CONTEXT_TOKENS_MAX = 8_192
"""Of one conversation, prompt and reply together: 24,000 characters of English are 5,000 to 6,000. Beyond it: 400."""
PARALLEL = 2
"""Conversations at once; the next ones wait. Each takes memory for its whole context: 190 MB with SmolLM2-135M."""
REPLY_TOKENS = 1_024
"""Of a reply to a request without `max_tokens`."""
BATCH_TOKENS = 128
"""Of a prompt, read in one step: short requests and the end of abandoned ones wait for the step of a long one."""
THREADS_MAX = 4
ERRORS_ONLY = 1
PR_SET_PDEATHSIG = 1
"""From Linux's prctl.h."""

HOUSE_PROMPT = "You are a helpful assistant who answers questions with short, correct sentences in plain English."
"""What the embedded model is told before a caller's own system message.

With the file's own prompt it answers "What is the capital of France?" in wrong French, depending on how it is worded;
with this one it named Paris in 77 of 77 variants (11 wordings, 7 system messages).
"""
HOUSE_TEMPLATE = (
    "{% for message in messages %}"
    "{% if loop.first %}<|im_start|>system\n" + HOUSE_PROMPT + "{% if message['role'] == 'system' %}"
    "\n{{ message['content'] }}{% endif %}<|im_end|>\n{% endif %}"
    "{% if not loop.first or message['role'] != 'system' %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The embedded model's own form of a conversation (ChatML), with the house prompt in it."""
HOUSE_TEMPERATURE = 0.0
"""The likeliest words, always: a model this small gains nothing from chance. Callers may set another."""
HOUSE_REPEAT_PENALTY = 1.05
HOUSE_REPEAT_TOKENS = 256
"""Just enough that long replies do not end in circles."""


class Order(Struct, frozen=True, kw_only=True):
    """What to serve where. The sender keeps `port` reserved, with SO_REUSEPORT; `api_key` is asked of every caller."""

    path: str
    port: int
    api_key: str
    embedded: bool

    def __repr__(self) -> str:
        """Name the file without the key."""
        return f"Order({self.path}, {self.port})"


class Answer(Struct, frozen=True, omit_defaults=True):
    """`problem` is None when the model can be asked."""

    problem: str | None = None


def main() -> None:
    """Serve one model until the standard input ends, which it does when the other process dies, however it dies."""
    _end_with_parent()
    # The process is ended by its parent alone, which lets the replies in progress finish first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with _answers() as answers:
        line = sys.stdin.buffer.readline()
        if not line:
            return
        try:
            _server = _serve(msgspec.json.decode(line, type=Order))  # it serves for as long as it is referred to
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent has to know
            answers.write(msgspec.json.encode(Answer(f"{type(error).__name__}: {error}")) + b"\n")
            return
        _silence()
        answers.write(msgspec.json.encode(Answer()) + b"\n")
    sys.stdin.buffer.read()
    # At once: the orderly way would first finish the step in progress, for nobody, and hangs when it comes too early.
    os._exit(0)


def _end_with_parent() -> None:
    """Have Linux kill this process when the thread that started it is gone, also while the model is being loaded.

    Elsewhere the end of the standard input has to do, which is only seen once the model is loaded.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _answers() -> BinaryIO:
    """Keep the standard output for the answer: what libraries write there goes to the standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _silence() -> None:
    """Let nothing be written from here on: llama.cpp's messages about requests may quote them."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device, not a path
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)


def _serve(order: Order) -> "xllamacpp.Server":
    import xllamacpp  # noqa: PLC0415 - 100 MB that the parent, which imports this module for Order, does without

    server = xllamacpp.Server(_parameters(order, xllamacpp.CommonParams()))
    expected = f"http://{HOST}:{order.port}"
    if server.listening_address != expected:
        raise OSError(f"listening on {server.listening_address} instead of {expected}")
    return server


def _parameters(order: Order, parameters: Any) -> Any:
    parameters.model.path = order.path
    parameters.model_alias = {"local"}  # instead of the path, in every reply
    parameters.hostnames = [HOST]
    parameters.port = order.port
    parameters.reuse_port = True
    parameters.api_keys = [order.api_key]
    parameters.offline = True
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.verbosity = ERRORS_ONLY
    parameters.n_parallel = PARALLEL
    parameters.n_ctx = PARALLEL * CONTEXT_TOKENS_MAX
    parameters.n_predict = REPLY_TOKENS
    parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
    parameters.cache_ram_mib = 0  # prompts are kept in no other memory than the contexts'
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = min(_cores(), THREADS_MAX)
    if order.embedded:
        parameters.chat_template = HOUSE_TEMPLATE
        parameters.sampling.temp = HOUSE_TEMPERATURE
        parameters.sampling.penalty_repeat = HOUSE_REPEAT_PENALTY
        parameters.sampling.penalty_last_n = HOUSE_REPEAT_TOKENS
    return parameters


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


if __name__ == "__main__":
    main()
