"""What the kinds of backends have in tarazu.toml: their settings, their secrets, and what is said of wrong ones."""

from pathlib import Path

import pytest
import trustme

from tarazu.backends.kinds import KINDS
from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tarazu.service.configuration import load, read_secrets
from tarazu.service.configuration.additions import OWN_HEADERS, SECRET_WORDS
from tests.support.configuration_files import error_of, load_text, problems_of

SECRET = "sk-5eCr3t"
BEFORE = '[models.remote]\ncredits = 1\n[[models.remote.backends]]\nmodel = "m"\n'
OPENAI = f'{BEFORE}kind = "openai"\nurl = "https://x/v1"\n'
ENVIRON = {"ACME_KEY": "k", "GATEWAY_KEY": "Bearer g"}


def spec_of(folder: Path, text: str) -> BackendSpec:
    """Load a file with one backend."""
    (spec,) = load_text(folder, text, ENVIRON).catalogue.models["remote"].backends
    return spec


def problem_of(folder: Path, text: str) -> str:
    """Tell the one thing that is said of a file with one backend, after the backend's name."""
    (problem,) = problems_of(folder, text, ENVIRON)
    return problem.partition(".backends[0].")[2]


def test_every_setting_of_a_backend_arrives(tmp_path: Path) -> None:
    """Paths start in the folder of the file."""
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    (tmp_path / "key").write_text("k\n")
    text = f"""{BEFORE}kind = "openai"
url = "https://x/v1/"
api_key_file = "key"
key_header = "api-key"
headers = {{ "X-Title" = "The shop" }}
headers_env = {{ "X-Gateway-Key" = "GATEWAY_KEY" }}
query = {{ api-version = "2024-10-21" }}
ca_file = "ca.pem"
omit = ["seed", "presence_penalty"]
rename = {{ max_tokens = "max_completion_tokens" }}
timeout_s = 7.5
weight = 2
priority = 1
max_concurrency = 3
enabled = false
"""
    assert spec_of(tmp_path, text) == BackendSpec(
        kind="openai",
        url="https://x/v1",
        model="m",
        api_key_file=str(tmp_path / "key"),
        key_header="api-key",
        headers={"X-Title": "The shop"},
        headers_env={"X-Gateway-Key": "GATEWAY_KEY"},
        query={"api-version": "2024-10-21"},
        ca_file=str(tmp_path / "ca.pem"),
        omit=("seed", "presence_penalty"),
        rename={"max_tokens": "max_completion_tokens"},
        timeout_s=7.5,
        weight=2,
        priority=1,
        max_concurrency=3,
        enabled=False,
    )


def test_a_backend_that_is_disabled_needs_no_key(tmp_path: Path) -> None:
    """Nor a header's secret: it is not asked. Its settings are checked all the same."""
    secrets = 'api_key_env = "NO_KEY"\nheaders_env = { "X-Gateway-Key" = "NO_GATEWAY" }\n'
    assert not spec_of(tmp_path, f"{OPENAI}{secrets}enabled = false\n").enabled
    wrong = problem_of(tmp_path, f'{OPENAI}{secrets}enabled = false\nkey_header = "no header"\n')
    assert wrong.startswith("key_header: expected")
    assert len(problems_of(tmp_path, OPENAI + secrets, ENVIRON)) == 2


@pytest.mark.parametrize("kind", [kind for kind, dialect in KINDS.items() if dialect.url])
def test_kinds_of_one_maker_need_no_url(tmp_path: Path, kind: str) -> None:
    """Kind, model and key are enough."""
    text = f'{BEFORE}kind = "{kind}"\napi_key_env = "ACME_KEY"\n'
    assert spec_of(tmp_path, text) == BackendSpec(kind=kind, model="m", api_key_env="ACME_KEY")


@pytest.mark.parametrize("kind", [kind for kind, dialect in KINDS.items() if dialect.url])
def test_the_maker_wants_a_key(tmp_path: Path, kind: str) -> None:
    """Without one every request would be refused."""
    assert problem_of(tmp_path, f'{BEFORE}kind = "{kind}"\n') == (
        "api_key_env: is missing, expected the name of the environment variable that holds the key for "
        f"{KINDS[kind].url}"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_of_ones_own_needs_no_key(tmp_path: Path, kind: str) -> None:
    """Every kind may run anywhere."""
    text = f'{BEFORE}kind = "{kind}"\nurl = "http://127.0.0.1:8000"\n'
    assert spec_of(tmp_path, text) == BackendSpec(kind=kind, model="m", url="http://127.0.0.1:8000")


def test_a_local_model_may_have_a_time_out(tmp_path: Path) -> None:
    """As every backend."""
    text = '[models.remote]\ncredits = 1\n[[models.remote.backends]]\nkind = "local"\ntimeout_s = 5\n'
    assert spec_of(tmp_path, text) == BackendSpec(kind="local", timeout_s=5)


PROBLEMS = [
    ('key_header = "X Key"', 'key_header: expected the name of a header, as in "api-key", never the key itself; what'),
    ('headers = ["X"]', 'headers: expected a table of at most 32 headers, as in { "X-Title" = "Shop" }; what'),
    ('headers = { "X" = 5 }', 'headers: expected a table of at most 32 headers, as in { "X-Title" = "Shop" }; what'),
    ('headers = { "X Y" = "a" }', 'headers."X Y": expected the name of a header'),
    ('headers = { "" = "a" }', 'headers."": expected the name of a header'),
    ('headers = { "X" = "" }', "headers.X: expected 1 to 1,000 printable ASCII characters"),
    ('headers = { "X" = "a\\nb" }', "headers.X: expected 1 to 1,000 printable ASCII characters"),
    ('headers = { "X" = "سلام" }', "headers.X: expected 1 to 1,000 printable ASCII characters"),
    ('headers = { "Host" = "a" }', "headers.Host: is set by the service, leave it out"),
    ('headers = { "X" = "a", "x" = "b" }', "headers.x: stands here twice, leave one out"),
    (
        'headers = { "X" = "a" }\nheaders_env = { "x" = "ACME_KEY" }',
        "headers_env.x: stands here twice, leave one out",
    ),
    (
        'headers = { "X-Api-Key" = "a" }',
        "headers.X-Api-Key: looks like a secret, which must not stand in this file; put the value in an environment ",
    ),
    (
        'api_key_env = "ACME_KEY"\nheaders_env = { "authorization" = "GATEWAY_KEY" }',
        "headers_env.authorization: carries the backend's key already, leave it out",
    ),
    (
        'headers_env = { "X-Key" = "MISSING" }',
        "headers_env.X-Key: the environment variable MISSING is not set or empty; set it to the header's value before ",
    ),
    ('headers_env = { "X-Key" = "sk-5" }', "headers_env: expected a table of at most 32 headers with the names of env"),
    ('query = { v = "a b" }', "query.v: expected 1 to 1,000 ASCII characters without spaces"),
    ("query = { v = 5 }", 'query: expected a table of at most 32 texts, as in { api-version = "2024-10-21" }; what'),
    (
        'query = { key = "a" }',
        "query.key: looks like a secret, which must not stand in this file nor in an address; name the variable that ",
    ),
    ('omit = "seed"', 'omit: expected a list of settings, as in ["seed"], got "seed"'),
    ('omit = ["sede"]', 'omit[0]: there is no setting "sede", did you mean "seed"?'),
    (
        'omit = ["seed", "xyz"]',
        'omit[1]: there is no setting "xyz", there are temperature, top_p, max_tokens, stop, seed, presence_penalty, ',
    ),
    (
        'rename = { max_token = "x" }',
        'rename.max_token: there is no setting "max_token", did you mean "max_tokens"?',
    ),
    ('rename = { seed = "a b" }', 'rename: expected a table of names, as in { max_tokens = "max_completion_tokens" }'),
    ('rename = { seed = "stop" }', 'rename.seed: "stop" is the name of another setting'),
    (
        'omit = ["seed"]\nrename = { seed = "random_seed" }',
        "rename.seed: is in omit too, so it is not sent; leave one out",
    ),
    ("timeout_s = 0", "timeout_s: expected a number of seconds above 0, at most 600, got 0"),
    ('ca_file = "no.pem"', "ca_file: the file no.pem cannot be read (No such file or directory), check the path"),
    ('ca_file = "tarazu.toml"', "ca_file: the file tarazu.toml holds no certificates in PEM form"),
    ('api_key_file = "no"', "api_key_file: the file cannot be read (No such file or directory), check its path"),
    (
        'api_key_file = "tarazu.toml"',
        "api_key_file: the file holds more than one line with a key; write the key alone into it",
    ),
    (
        'api_key_file = "large"',
        "api_key_file: the file holds more than one line with a key; write the key alone into it",
    ),
    ('api_key_file = "empty"', "api_key_file: the file is empty; write the backend's key into it"),
]


@pytest.mark.parametrize(("settings_text", "problem"), PROBLEMS)
def test_a_setting_that_is_wrong_is_told(tmp_path: Path, settings_text: str, problem: str) -> None:
    """The problem begins so; it goes on with what to do."""
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "large").write_text("k" * 20_000)
    assert problem_of(tmp_path, f"{OPENAI}{settings_text}\n").startswith(problem)


def test_a_setting_that_a_kind_has_not_is_told(tmp_path: Path) -> None:
    """Anthropic's API has no seed, so leaving it out changes nothing."""
    text = f'{BEFORE}kind = "anthropic"\napi_key_env = "ACME_KEY"\n'
    reason = '"seed" is never sent to a backend of kind anthropic, leave it out'
    assert problem_of(tmp_path, f'{text}omit = ["seed"]\n') == f"omit[0]: {reason}"
    assert problem_of(tmp_path, f'{text}rename = {{ seed = "x" }}\n') == f"rename.seed: {reason}"


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("openai", "/chat/completions"),
        ("openai", "/chat"),
        ("anthropic", "/v1/messages"),
        ("anthropic", "/v1"),
        ("gemini", "/models"),
    ],
)
def test_an_address_ends_where_the_kinds_path_begins(tmp_path: Path, kind: str, ending: str) -> None:
    """What the service adds is not written into the address."""
    text = f'{BEFORE}kind = "{kind}"\nurl = "https://x{ending}/"\n'
    assert problem_of(tmp_path, text) == (f"url: leave {ending} out at the end of the address, the service adds it")


@pytest.mark.parametrize(
    "setting",
    [
        'url = "http://x"',
        'api_key_env = "ACME_KEY"',
        'api_key_file = "key"',
        'key_header = "api-key"',
        'headers = { "X" = "a" }',
        'headers_env = { "X" = "ACME_KEY" }',
        'query = { a = "b" }',
        'ca_file = "ca.pem"',
        'omit = ["seed"]',
        'rename = { seed = "x" }',
    ],
)
def test_a_local_model_has_no_settings_of_a_server(tmp_path: Path, setting: str) -> None:
    """Each is refused with its name."""
    name = setting.split(" ", maxsplit=1)[0]
    why = "needs no key" if "key" in name else "runs inside the service"
    text = f'[models.remote]\ncredits = 1\n[[models.remote.backends]]\nkind = "local"\n{setting}\n'
    assert problem_of(tmp_path, text) == f"{name}: a local model {why}, leave {name} out"


def test_a_key_has_one_place(tmp_path: Path) -> None:
    """Two would leave open which one is in force."""
    (tmp_path / "key").write_text("k")
    text = f'{OPENAI}api_key_env = "ACME_KEY"\napi_key_file = "key"\n'
    assert problem_of(tmp_path, text) == "api_key_file: the key has one place, leave out this or api_key_env"


@pytest.mark.parametrize("name", sorted(OWN_HEADERS))
def test_no_header_of_the_http_client_is_set(tmp_path: Path, name: str) -> None:
    """It could break a request, or send it elsewhere."""
    assert "is set by the service" in problem_of(tmp_path, f'{OPENAI}headers = {{ "{name.title()}" = "a" }}\n')


@pytest.mark.parametrize("word", SECRET_WORDS)
@pytest.mark.parametrize("table", ["headers", "query"])
def test_what_may_be_a_secret_is_refused_and_not_shown(tmp_path: Path, table: str, word: str) -> None:
    """Headers and addresses are where secrets are put by habit."""
    error = error_of(tmp_path, f'{OPENAI}{table} = {{ "x-{word}" = "{SECRET}" }}\n', ENVIRON)
    assert "looks like a secret" in str(error)
    assert SECRET not in repr(error)


def test_a_value_that_says_it_is_a_key_is_refused(tmp_path: Path) -> None:
    """Under whatever name it stands."""
    problem = problem_of(tmp_path, f'{OPENAI}headers = {{ "X-Upstream" = "Bearer {SECRET}" }}\n')
    assert problem.startswith("headers.X-Upstream: looks like a secret")
    assert SECRET not in problem


@pytest.mark.parametrize(
    "text",
    [
        f'key_header = ["{SECRET}"]',
        f'key_header = "Bearer {SECRET}"',
        f'headers = "{SECRET}"',
        f'headers = {{ "X" = ["{SECRET}"] }}',
        f'headers = {{ "X" = "{SECRET}\\n" }}',
        f'headers_env = {{ "X" = "{SECRET}" }}',
        f'query = {{ v = "{SECRET} " }}',
        f'query = "{SECRET}"',
        'api_key_file = "two"',
        f'api_key_file = "{SECRET}"',
        f'api_key_file = ["{SECRET}"]',
    ],
)
def test_a_secret_in_the_wrong_place_is_not_shown(tmp_path: Path, text: str) -> None:
    """Neither in the text nor in the representation of the error."""
    (tmp_path / "two").write_text(f"{SECRET}\n{SECRET}\n")
    error = error_of(tmp_path, f"{OPENAI}{text}\n", ENVIRON)
    assert SECRET not in str(error)
    assert SECRET not in repr(error)


def test_secrets_come_from_the_environment() -> None:
    """White space around them, such as a line end from a file, is not part of them."""
    spec = BackendSpec(kind="openai", api_key_env="ACME_KEY", headers_env={"X-Gateway-Key": "GATEWAY_KEY"})
    secrets = read_secrets(spec, {"ACME_KEY": " s3cret\n", "GATEWAY_KEY": " Bearer g\n"})
    assert secrets == Secrets(api_key="s3cret", headers={"X-Gateway-Key": "Bearer g"})


def test_a_key_comes_from_its_file(tmp_path: Path) -> None:
    """As editors and secret stores write it, with a line end."""
    (tmp_path / "key").write_bytes(b"\ts3cret\r\n")
    spec = spec_of(tmp_path, f'{OPENAI}api_key_file = "key"\n')
    assert read_secrets(spec, {}) == Secrets(api_key="s3cret")


def test_a_backend_without_secrets_has_none() -> None:
    """A server that needs no key gets none."""
    assert read_secrets(BackendSpec(kind="local"), {}) == Secrets()


def test_a_secret_that_is_gone_since_is_told_without_it(tmp_path: Path) -> None:
    """Between the check and the start a file may go."""
    path = tmp_path / "key"
    with pytest.raises(ValueError, match="the file cannot be read"):
        read_secrets(BackendSpec(kind="openai", api_key_file=str(path)), {})
    with pytest.raises(ValueError, match="ACME_KEY is not set"):
        read_secrets(BackendSpec(kind="openai", api_key_env="ACME_KEY"), {})


def test_who_asks_no_backend_needs_no_secret(tmp_path: Path) -> None:
    """The operator's commands on the books work without the backends' key files and variables."""
    path = tmp_path / "tarazu.toml"
    path.write_text(f'{OPENAI}api_key_file = "absent"\nheaders_env = {{ "X" = "ABSENT" }}\n')
    assert load(path, {}, needs_secrets=False).catalogue.models["remote"].backends[0].api_key_file is not None
