"""A model server that is asked over HTTP, of any kind."""

from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import asdict, replace

from tarazu.backends.http_client import HttpClient
from tarazu.backends.kinds import KINDS
from tarazu.backends.port import Reply
from tarazu.backends.replies import read_reply
from tarazu.backends.secrets import Secrets
from tarazu.backends.statuses import status_error
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND, Clock
from tarazu.domain.catalogue import BackendSpec
from tarazu.domain.prompt import ChatRequest, Settings

BEARER_HEADER = "authorization"
"""The one header in which a key is preceded by `Bearer`."""
SUCCESS = range(200, 300)


class HttpBackend:
    """One server: where it is and what it is called by `spec`, how it is spoken to by the dialect of its kind."""

    def __init__(
        self,
        http: HttpClient,
        spec: BackendSpec,
        clock: Clock,
        *,
        name: str,
        secrets: Secrets | None = None,
        direct: bool = False,
    ) -> None:
        """Prepare what does not change. `direct` passes by any proxy of the environment.

        Raises:
            OSError: the `ca_file` is gone; loading the configuration has checked it.
        """
        self.name = name
        self._http = http
        self._spec = spec
        self._dialect = KINDS[spec.kind]
        self._url = address_of(spec)
        self._bodies = BodyWriter(spec)
        self._headers = _headers(spec, secrets or Secrets())
        self._clock = clock
        self._direct = direct
        if spec.ca_file is not None:
            http.trust(spec.ca_file)

    def __repr__(self) -> str:
        return f"<HttpBackend {self.name}, {self._spec.kind}>"

    async def ask(self, request: ChatRequest, *, timeout_s: float) -> Reply:
        """Get one reply; anything but a valid one is a BackendError."""
        answer = await self._http.post_json(
            self._url,
            self._bodies.write(request),
            headers=self._headers,
            timeout_s=timeout_s,
            direct=self._direct,
            ca_file=self._spec.ca_file,
        )
        if answer.status not in SUCCESS:
            raise status_error(answer, self._clock() / MILLISECONDS_PER_SECOND)
        with_stop = request.settings.stop is not None and "stop" not in self._spec.omit
        return read_reply(answer.body, self._dialect.read, with_stop=with_stop)


class BodyWriter:
    """Writes the bodies for one server: settings by the names that it knows them by, without those to omit."""

    def __init__(self, spec: BackendSpec) -> None:
        assert spec.model is not None
        self._model = spec.model
        self._dialect = dialect = KINDS[spec.kind]
        self._names = dialect.names | spec.rename
        kept = dialect.names.keys() - spec.omit
        self._unsent = {name: None for name in Settings.__struct_fields__ if name not in kept}

    def write(self, request: ChatRequest) -> bytes:
        """Write the body of one request."""
        settings = replace(request.settings, **self._unsent) if self._unsent else request.settings
        fitted = asdict(self._dialect.fit(settings))
        form = fitted.pop("response_format")
        named = {self._names[name]: value for name, value in fitted.items() if value is not None}
        if form is not None:
            named |= self._dialect.form(self._names["response_format"], form)
        return msgspec.json.encode(self._dialect.body(self._model, request.messages, named))


def address_of(spec: BackendSpec) -> str:
    """Tell where a server is asked."""
    dialect = KINDS[spec.kind]
    base = spec.url or dialect.url
    assert base is not None
    assert spec.model is not None
    path = dialect.path.replace("{model}", quote(spec.model, safe=""))
    return base.rstrip("/") + path + (f"?{urlencode(spec.query)}" if spec.query else "")


def _headers(spec: BackendSpec, secrets: Secrets) -> dict[str, str]:
    dialect = KINDS[spec.kind]
    headers = {name.lower(): value for name, value in (dialect.headers | spec.headers | secrets.headers).items()}
    if secrets.api_key is not None:
        header = (spec.key_header or dialect.key_header).lower()
        headers[header] = f"Bearer {secrets.api_key}" if header == BEARER_HEADER else secrets.api_key
    return headers
