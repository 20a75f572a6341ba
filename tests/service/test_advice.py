"""What a configuration allows and is yet no good is told, with what to do about it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tarazu.domain.accounts import Account
from tarazu.service.advice import advice
from tarazu.service.configuration import Configuration, load
from tarazu.service.private_files import file_advice
from tests.support.books import Books, open_books
from tests.support.stores import Store
from tests.support.values import make_account, make_catalogue

URL = 'url = "https://ai.example.com/v1"'
MODEL = """
[models."a"]
credits = 1
max_output_tokens = 100
[[models."a".backends]]
kind = "openai"
model = "a"
"""


@pytest.fixture
def books(store: Store, tmp_path: Path) -> Iterator[Books]:
    """Open empty books of a service."""
    with open_books(store, tmp_path) as books:
        yield books


def _loaded(folder: Path, backend: str) -> Configuration:
    database = f'[database]\nurl = "sqlite:///{folder}/none.db"\n'
    (folder / "tarazu.toml").write_text(f"{database}{MODEL}{backend}\n")
    return load(folder / "tarazu.toml", {"KEY": "secret"})


@pytest.mark.both_stores
def test_accounts_on_a_plan_that_is_not_on_sale_are_told(books: Books, tmp_path: Path) -> None:
    """With their number and the two ways out; those on a plan that is there, or on none, need no word."""
    plan = next(iter(make_catalogue().plans))
    configuration = replace(_loaded(tmp_path, URL), catalogue=make_catalogue(), database_url=books.url)
    held: dict[str, str | None] = {"1": "gone", "2": "gone", "3": plan, "4": None}
    accounts: list[Account] = [make_account(id=f"acc_{n}", email=None, plan=of) for n, of in held.items()]
    books.add(*accounts)
    (line,) = [line for line in advice(configuration) if "plan" in line]
    assert line.startswith("2 accounts are on the plan gone, which is not in the configuration")
    assert "[plans.gone]" in line
    assert "tarazu account set ID --plan PLAN" in line


def test_without_books_nothing_is_told_of_them(tmp_path: Path) -> None:
    """And none are made."""
    assert not any("plan" in line for line in advice(_loaded(tmp_path, URL)))
    assert [path.name for path in tmp_path.iterdir()] == ["tarazu.toml"]


@pytest.mark.parametrize(
    ("backend", "is_told"),
    [
        ('url = "http://ai.example.com/v1"\napi_key_env = "KEY"', True),
        ('url = "http://10.0.0.7:8000/v1"\nheaders_env = { "X-Key" = "KEY" }', True),
        ('url = "https://ai.example.com/v1"\napi_key_env = "KEY"', False),
        ('url = "http://127.0.0.1:8000/v1"\napi_key_env = "KEY"', False),
        ('url = "http://10.0.0.7:8000/v1"', False),
    ],
)
def test_a_key_that_is_sent_in_clear_is_told(tmp_path: Path, backend: str, *, is_told: bool) -> None:
    """Beyond this machine http shows a key to whoever is on the way."""
    told = [line for line in advice(_loaded(tmp_path, backend)) if "over http" in line]
    assert bool(told) == is_told
    assert not any("secret" in line for line in told)


@pytest.mark.parametrize(
    ("mode", "is_told"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True), (0o620, True)]
)
def test_a_key_file_that_others_can_read_is_told(tmp_path: Path, mode: int, *, is_told: bool) -> None:
    """With the line that keeps them out, which can be pasted."""
    file = tmp_path / "the key"
    file.write_text("secret")
    file.chmod(mode)
    configuration = _loaded(tmp_path, f'url = "https://ai.example.com/v1"\napi_key_file = "{file}"')
    told = [line for line in advice(configuration) if "chmod 600" in line]
    assert told == ([f"Other users can read {file}. Keep them out with: chmod 600 '{file}'"] if is_told else [])
    assert file_advice(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("environ", "is_told"),
    [
        ({}, False),
        ({"https_proxy": "http://proxy:3128"}, False),
        ({"https_proxy": "socks5://user:word@proxy:1080"}, True),
        ({"http_proxy": "socks5://proxy:1080"}, False),
        ({"ALL_PROXY": "https://proxy"}, True),
        ({"ALL_PROXY": "https://proxy", "no_proxy": ".example.com"}, False),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told(tmp_path: Path, environ: dict[str, str], *, is_told: bool) -> None:
    """For the backends that it stands before, without what it lets us in by."""
    lines = [line for line in advice(_loaded(tmp_path, URL), environ) if "proxy" in line]
    assert len(lines) == is_told
    assert not any("word" in line for line in lines)
    assert all(line.startswith("ai.example.com cannot be asked") for line in lines)
