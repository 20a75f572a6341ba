"""What a configuration allows and is yet no good: told by `tarazu check`, and at each reload."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tarazu.backends.proxies import Proxies, UnusableProxyError
from tarazu.domain.catalogue import BackendSpec, Catalogue
from tarazu.service.configuration import Configuration
from tarazu.service.private_files import file_advice
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.books_path import looked_at, require_makeable, sqlite_path

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def advice(configuration: Configuration, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Tell all of it, also what keeps the books from being used, or made where there are none."""
    proxies = Proxies(environ)
    catalogue = configuration.catalogue
    return (
        *(
            f"{model_id} has a price, and its replies no bound: give it max_output_tokens."
            for model_id in catalogue.unbounded_models()
        ),
        *_of_backends(catalogue, proxies),
        *_of_books(configuration.database_url, catalogue),
    )


def _of_books(database_url: str, catalogue: Catalogue) -> Iterator[str]:
    """Look at the books as they are. Whoever opens them would hear the same of them."""
    path = sqlite_path(database_url)
    try:
        if path is not None and looked_at(path) is None:
            require_makeable(path)
            return
        from tarazu.service.books import privacy_advice  # noqa: PLC0415 - as in _of_plans

        if (privacy := privacy_advice(database_url)) is not None:
            yield privacy
        yield from _of_plans(database_url, catalogue)
    except BooksUnavailableError as error:
        yield str(error)


def _of_plans(database_url: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Tell of accounts that are on a plan which the catalogue does not have: they are served as if they had none."""
    from tarazu.service.books import open_books  # noqa: PLC0415 - half of a check that finds no books
    from tarazu.store.accounts import plans_in_use  # noqa: PLC0415 - as above
    from tarazu.store.engine import transaction  # noqa: PLC0415 - as above

    engine = open_books(database_url)
    try:
        with transaction(engine, read_only=True) as connection:
            counts = plans_in_use(connection)
    finally:
        engine.dispose()
    return tuple(
        f"{count:,} {'account is' if count == 1 else 'accounts are'} on the plan {plan}, which is not in the "
        f"configuration: a balance alone pays for them. Add [plans.{plan}], or move them with: "
        "tarazu account set ID --plan PLAN"
        for plan, count in sorted(counts.items())
        if catalogue.plan(plan) is None
    )


def _of_backends(catalogue: Catalogue, proxies: Proxies) -> Iterator[str]:
    told = set()
    for model in catalogue.models.values():
        for backend in model.backends:
            for line in (_sent_in_clear(model.id, backend), _file_advice(backend), _proxy_advice(backend, proxies)):
                if line is not None and line not in told:
                    told.add(line)
                    yield line


def _file_advice(backend: BackendSpec) -> str | None:
    return None if backend.api_key_file is None else file_advice(Path(backend.api_key_file))


def _proxy_advice(backend: BackendSpec, proxies: Proxies) -> str | None:
    url = urlsplit(backend.url or "")
    if not url.hostname:
        return None
    try:
        proxies.choose(url.scheme, url.hostname)
    except UnusableProxyError:
        return (
            f"{url.hostname} cannot be asked: the environment names a proxy for {url.scheme} that is not "
            "http://HOST:PORT. Name one, or pass it by with no_proxy."
        )
    return None


def _sent_in_clear(model_id: str, backend: BackendSpec) -> str | None:
    url = urlsplit(backend.url or "")
    has_secret = backend.api_key_env or backend.api_key_file or backend.headers_env
    if url.scheme != "http" or not has_secret or url.hostname in LOOPBACK:
        return None
    return f"A backend of {model_id} is sent its key over http, which others on the way to {url.netloc} can read."
