"""A model that is wrong, or whose id is: what is said of it."""

from pathlib import Path

import pytest

from tests.support.configuration_files import MODEL, error_of, load_text, problems_of

MISSING = "is missing, expected"
COUNT = "expected an integer of at least 1, got"


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("credits = -1", "credits: expected an integer of at least 0, got -1"),
        ("credits = 0.5", "credits: expected an integer of at least 0, got 0.5"),
        ("credits = 1\npayg_amount = -1", "payg_amount: expected an integer of at least 0, got -1"),
        ("credits = 1\nmax_output_tokens = 0", f"max_output_tokens: {COUNT} 0"),
        (
            "credits = 1\ntimeout_s = 0",
            "timeout_s: expected a number of seconds above 0, at most 600, got 0",
        ),
        (
            "credits = 1\ntimeout_s = 600.5",
            "timeout_s: expected a number of seconds above 0, at most 600, got 600.5",
        ),
        (
            "credits = 1\ntimeout_s = nan",
            "timeout_s: expected a number of seconds above 0, at most 600, got nan",
        ),
        ('credits = 1\ndisplay_name = " "', 'display_name: expected a line of text of 1 to 500 characters, got " "'),
        (
            'credits = 1\nprovider = "a\\nb"',
            'provider: expected a line of text of 1 to 500 characters, got "a\\nb"',
        ),
        ("credits = 1\ndescription = 1", "description: expected a text of at most 2,000 characters, got 1"),
        (
            "credits = 1\ncapabilities = { chat = true }",
            'capabilities: expected a list of names such as ["chat", "reasoning"], got a table',
        ),
        (
            "credits = 1\nprice = 1",
            (
                "price: unknown setting, there are display_name, provider, description, credits, payg_amount, "
                "capabilities, max_output_tokens, timeout_s and backends"
            ),
        ),
        ("credits = 1\nmax_tokens = 5", "max_tokens: unknown setting, did you mean max_output_tokens?"),
    ],
)
def test_a_setting_of_a_model_that_is_wrong_is_told(tmp_path: Path, setting: str, problem: str) -> None:
    """Each kind of problem of a model has its own sentence, on the line of its setting."""
    text = f'[models."a/b.c"]\n{setting}\n[[models."a/b.c".backends]]\nkind = "local"\n'
    line = 2 + setting.count("\n")
    assert problems_of(tmp_path, text) == [f'tarazu.toml:{line}: models."a/b.c".{problem}']


@pytest.mark.parametrize("model_id", ["", "*", "a b", "a//b", "/a", "a/", "a/../b", "-a", "é", "a?b", "a" * 129])
def test_a_model_id_that_could_not_stand_in_a_path_is_refused(tmp_path: Path, model_id: str) -> None:
    """Ids work in GET /models/{model_id} as they are."""
    (problem,) = error_of(tmp_path, MODEL.replace("small", f'"{model_id}"')).problems
    assert problem.reason == (
        "expected a model id of 1 to 128 letters, digits and : . - _ in parts that are divided by single slashes, "
        'as in [models."openai/gpt-4o"]'
    )
    assert problem.line == 1


@pytest.mark.parametrize("model_id", ["a", "1.5", "openai/gpt-4o", "a/b/c:free", "A_b-C.d:e/f", "a" * 128])
def test_other_model_ids_are_taken(tmp_path: Path, model_id: str) -> None:
    """Ids may hold slashes, colons and dots, and are at most 128 characters long."""
    assert list(load_text(tmp_path, MODEL.replace("small", f'"{model_id}"')).catalogue.models) == [model_id]


def test_an_id_with_a_dot_but_no_quotes_is_explained(tmp_path: Path) -> None:
    """TOML takes the dot for a step into a table: the one problem says so, without others that follow from it."""
    assert problems_of(tmp_path, MODEL.replace("small", "gpt-4.1")) == [
        (
            "tarazu.toml:1: models.gpt-4.1: unknown setting; a name with a dot in it is written in quotes, "
            'as in [models."gpt-4.1"]'
        )
    ]


def test_an_id_with_a_slash_but_no_quotes_is_explained(tmp_path: Path) -> None:
    """The parser's sentence alone would not help."""
    assert problems_of(tmp_path, "\n[models.openai/gpt-4o]\n") == [
        (
            "tarazu.toml:2: is not valid TOML: Expected ']' at the end of a table declaration; a name with a slash, "
            'colon or space in it is written in quotes, as in [models."openai/gpt-4o"]'
        )
    ]


def test_a_file_without_a_model_is_refused(tmp_path: Path) -> None:
    """A service that sells nothing is a mistake."""
    assert problems_of(tmp_path, "") == [
        (
            'tarazu.toml: models: there is no model to sell; add [models."ID"] with credits, and '
            '[[models."ID".backends]] with a kind'
        )
    ]


@pytest.mark.parametrize(
    ("backends", "problem"),
    [
        ("", f'1: models.a.backends: {MISSING} one or more tables, each headed [[models."ID".backends]]'),
        (
            "backends = []",
            '3: models.a.backends: expected one or more tables, each headed [[models."ID".backends]], got []',
        ),
        (
            '[models.a.backends]\nkind = "local"',
            '3: models.a.backends: expected one or more tables, each headed [[models."ID".backends]], got a table',
        ),
        (
            "[[models.a.backends]]",
            f'3: models.a.backends[0].kind: {MISSING} "openai", "anthropic", "gemini" or "local"',
        ),
    ],
)
def test_a_model_needs_a_backend(tmp_path: Path, backends: str, problem: str) -> None:
    """At least one, written as a list of tables, each of a kind."""
    assert problems_of(tmp_path, f"[models.a]\ncredits = 1\n{backends}\n") == [f"tarazu.toml:{problem}"]
