"""A backend that is wrong: what is said of it, and that no secret is ever shown."""

from pathlib import Path

import pytest

from tarazu.service.configuration import ConfigurationError, load
from tests.support.configuration_files import MODEL, error_of, problems_of

SECRET = "sk-5eCr3t"
OPENAI = """\
[models.remote]
credits = 1
[[models.remote.backends]]
kind = "openai"
model = "m"
"""
COUNT = "expected an integer of at least 1, got"
USE_ANOTHER_PLACE = (
    "a secret must not stand in this file; put it in an environment variable and name that with api_key_env, "
    'as in api_key_env = "OPENAI_API_KEY", or in a file and name that with api_key_file'
)


@pytest.mark.parametrize(
    ("settings_text", "problem"),
    [
        ('kind = "openia"', '6: kind: expected "openai", "anthropic", "gemini" or "local", got "openia"'),
        ('kind = "local"\nweight = 0', f"7: weight: {COUNT} 0"),
        ('kind = "local"\npriority = -1', "7: priority: expected an integer of at least 0, got -1"),
        ('kind = "local"\nmax_concurrency = 0', f"7: max_concurrency: {COUNT} 0"),
        ('kind = "local"\nenabled = "no"', '7: enabled: expected true or false, got "no"'),
        ('kind = "local"\nmodle = "x"', "7: modle: unknown setting, did you mean model?"),
        ('kind = "local"\nurl = "http://x"', "7: url: a local model runs inside the service, leave url out"),
        (
            'kind = "local"\napi_key_env = "HOME"',
            "7: api_key_env: a local model needs no key, leave api_key_env out",
        ),
        (
            'kind = "local"\nmodel = "none.gguf"',
            "7: model: there is no file none.gguf; expected the path of a GGUF file, or no model for the embedded one",
        ),
        (
            'kind = "local"\nmodel = "."',
            "7: model: there is no file ; expected the path of a GGUF file, or no model for the embedded one",
        ),
    ],
)
def test_a_setting_of_a_backend_that_is_wrong_is_told(tmp_path: Path, settings_text: str, problem: str) -> None:
    """The second backend of a model has its own lines, and its place in its key."""
    text = f"{MODEL}[[models.small.backends]]\n{settings_text}\n"
    line, rest = problem.split(": ", 1)
    told = problems_of(tmp_path, text)
    assert [problem.replace(str(tmp_path), "") for problem in told] == [
        f"tarazu.toml:{int(line) + 1}: models.small.backends[1].{rest}"
    ]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://x/v1", 'expected an address that begins with "http://" or "https://"'),
        ("api.example.com", 'expected an address that begins with "http://" or "https://"'),
        ("https://", 'expected an address with a host, as in "https://example.com"'),
        ("http://:80/v1", 'expected an address with a host, as in "https://example.com"'),
        ("http://x:99999/v1", "expected an http:// or https:// address, but its host or port is malformed"),
        ("http://[::1/v1", "expected an http:// or https:// address, but its host or port is malformed"),
        ("https://a b/v1", "expected an address of ASCII characters without spaces"),
        ("https://a/v1\\n", "expected an address of ASCII characters without spaces"),
        ("https://x/v1#part", "expected an address without ? and #"),
        (f"https://x/v1?key={SECRET}", "expected an address without ? and #"),
        (
            f"https://user:{SECRET}@x/v1",
            "expected an address without user and password, which would be a secret in this file",
        ),
        (
            "https://x/v1/chat/completions",
            "leave /chat/completions out at the end of the address, the service adds it",
        ),
    ],
)
def test_an_address_that_is_no_base_address_is_told_without_being_shown(tmp_path: Path, url: str, reason: str) -> None:
    """What is said of a backend's address never repeats it."""
    assert problems_of(tmp_path, f'{OPENAI}url = "{url}"\n') == [
        f"tarazu.toml:6: models.remote.backends[0].url: {reason}"
    ]


@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        ({}, "is not set or empty; set it to the backend's key before the start"),
        ({"ACME_KEY": " \n"}, "is not set or empty; set it to the backend's key before the start"),
        (
            {"ACME_KEY": f"Bearer {SECRET}"},
            "holds spaces or characters that no key has; set it to the key alone",
        ),
    ],
)
def test_a_secret_that_is_not_in_the_environment_is_a_problem(
    tmp_path: Path, environ: dict[str, str], reason: str
) -> None:
    """The problem names the variable, never its value."""
    text = f'{OPENAI}url = "https://x/v1"\napi_key_env = "ACME_KEY"\n'
    assert problems_of(tmp_path, text, environ) == [
        f"tarazu.toml:7: models.remote.backends[0].api_key_env: the environment variable ACME_KEY {reason}"
    ]


@pytest.mark.parametrize("name", ["api_key", "API-Key", "key", "token", "password", "secret"])
def test_a_secret_in_the_file_is_refused_with_the_way_to_do_it(tmp_path: Path, name: str) -> None:
    """An operator who looks for the setting of the key learns where the key goes."""
    text = f'{OPENAI}url = "https://x/v1"\n{name} = "{SECRET}"\n'
    assert problems_of(tmp_path, text) == [f"tarazu.toml:7: models.remote.backends[0].{name}: {USE_ANOTHER_PLACE}"]


@pytest.mark.parametrize(
    "text",
    [
        f'{OPENAI}url = "https://x/v1"\napi_key_env = "{SECRET}"\n',
        f'{OPENAI}url = "https://x/v1"\napi_key_env = ["{SECRET}"]\n',
        f'{OPENAI}url = "https://x/v1"\napi_key_env = "gsk_{SECRET.replace("-", "_")}"\n',
        f'{OPENAI}url = ["https://user:{SECRET}@x/v1"]\n',
        f'{OPENAI}url = "https://{SECRET}@x/v1"\n',
        f'{OPENAI}url = "https://[{SECRET}@x/v1"\n',
        f'{OPENAI}api_keys = "{SECRET}"\n',
        f'api_key = "{SECRET}"\n',
        f'[server]\npublic_url = "https://user:{SECRET}@x"\n',
        f'[database]\nurl = "postgresql://tarazu:{SECRET}@db/tarazu"\n',
        f'[database]\nurl = "mysql://tarazu:{SECRET}@db/tarazu"\n',
        f'[database]\nurl = ["{SECRET}"]\n',
    ],
)
def test_a_secret_in_the_wrong_place_is_not_shown(tmp_path: Path, text: str) -> None:
    """Neither text nor representation of the error repeats what may be a secret."""
    error = error_of(tmp_path, text)
    assert SECRET not in str(error)
    assert SECRET.replace("-", "_") not in repr(error)


def test_who_asks_no_backend_needs_no_secret(tmp_path: Path) -> None:
    """The operator's commands on the books work in a shell that has no backend's key."""
    path = tmp_path / "tarazu.toml"
    backend = 'kind = "openai"\nurl = "https://example.com/v1"\nmodel = "m"\napi_key_env = "ABSENT_KEY"\n'
    path.write_text(f"[models.small]\ncredits = 1\n[[models.small.backends]]\n{backend}")
    assert load(path, {}, needs_secrets=False).catalogue.models["small"].backends[0].api_key_env == "ABSENT_KEY"
    with pytest.raises(ConfigurationError, match="ABSENT_KEY is not set"):
        load(path, {})
