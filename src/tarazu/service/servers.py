"""What a person is told of the server behind a backend. No secret can be in it: the configuration refuses them."""

from pathlib import PurePath
from urllib.parse import urlsplit

from tarazu.backends.kinds import KINDS
from tarazu.domain.catalogue import LOCAL, BackendSpec

EMBEDDED = "embedded"
"""What the model of a local backend is called that names no file."""


def url_of(spec: BackendSpec) -> str | None:
    """Tell the base address of a server; None for a local model."""
    return None if spec.kind == LOCAL else spec.url or KINDS[spec.kind].url


def host_of(spec: BackendSpec) -> str | None:
    """Name the host of a server, with its port where one is written; None for a local model."""
    url = url_of(spec)
    return None if url is None else urlsplit(url).netloc


def model_of(spec: BackendSpec) -> str | None:
    """Name what a server is asked for; for a local model its file, without the folder."""
    if spec.kind != LOCAL:
        return spec.model
    return EMBEDDED if spec.model is None else PurePath(spec.model).name
