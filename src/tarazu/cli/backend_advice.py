"""Tell an operator what to do about a backend that has given no reply."""

from http import HTTPStatus

from tarazu.backends.port import Fault
from tarazu.domain.catalogue import BackendSpec
from tarazu.service.servers import url_of
from tarazu.service.trying import NOT_LOADED, SECRET_MISSING, TriedBackend

_UNPAID = ("insufficient_quota", "billing", "credit balance", "FAILED_PRECONDITION")
_UNKNOWN_SETTINGS = ("unsupported_parameter", "unsupported_value", "deprecated", "Extra inputs")


def next_step(tried: TriedBackend) -> str:
    """Say in one line what to look at next."""
    match tried.outcome:
        case Fault.KEY_REFUSED.word:
            return _key_step(tried.spec, tried.detail)
        case Fault.REQUEST_REFUSED.word if any(word in tried.detail for word in _UNKNOWN_SETTINGS):
            return "It does not take a setting that is sent. Put that into omit, or give its name there with rename."
        case Fault.STATUS.word:
            return _status_step(tried.spec, tried.detail)
        case outcome:
            return _STEPS[outcome].format(
                url=url_of(tried.spec) or "the process of the model",
                timeout_s=tried.timeout_s,
                kind=tried.spec.kind,
                detail=tried.detail,
            )


_STEPS = {
    SECRET_MISSING: "Its secret is not there: {detail}.",
    NOT_LOADED: "{detail}",
    Fault.UNREACHABLE.word: (
        "Is the server up, and can this machine reach it? Check url, {url}, and a proxy or ca_file if it needs one."
    ),
    Fault.TIMEOUT.word: (
        "There was no whole answer from {url} in {timeout_s:g} s. Try a longer --timeout; if it helps, raise timeout_s."
    ),
    Fault.BUSY.word: "The server has no room now. Try again later; if it stays so, ask who runs it for more.",
    Fault.INVALID_REPLY.word: (
        "It answered, but without a text as kind {kind} has it. Check kind and url, {url}; a model that thinks may "
        "need more max_output_tokens."
    ),
    Fault.REQUEST_REFUSED.word: (
        "It does not take the request. Check model and max_output_tokens; its own log says what it misses."
    ),
    Fault.NO_OPEN_FILE.word: "This process may open no more files. Raise the limit: ulimit -n.",
    Fault.REFUSAL.word: "The model, or a filter, declined to answer. Try another --prompt.",
}


def _key_step(spec: BackendSpec, detail: str) -> str:
    if any(word in detail for word in _UNPAID):
        return "The key is known, but not paid for. Look at the billing of its account."
    if spec.api_key_env is not None:
        return f"It does not take the key. Check the environment variable {spec.api_key_env}, as named by api_key_env."
    if spec.api_key_file is not None:
        return "It does not take the key. Check what is in the file that api_key_file names."
    if spec.headers_env:
        return "It does not take the secrets that headers_env names. Check those environment variables."
    return "It wants a key. Name the variable that holds it with api_key_env, or the file with api_key_file."


def _status_step(spec: BackendSpec, detail: str) -> str:
    url = url_of(spec)
    number = detail.partition(" ")[0]
    status = int(number) if number.isdecimal() else 0
    if status == HTTPStatus.NOT_FOUND or "model_not_found" in detail:
        return f"There is no such path or no such model. Check url, {url}, and model, {spec.model}."
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return f"It sends callers elsewhere, which is not followed. Check url, {url}: perhaps it wants https."
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "The server, or a proxy before it, has failed. Look into its own log."
    return f"It did not take the request. Check url, {url}, and kind."
