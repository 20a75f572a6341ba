"""A file that cannot be read or parsed, and documents too odd to foresee."""

import json
import os
import pty
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.service.configuration import ConfigurationError, Problem, load
from tarazu.service.configuration.loading import DIGITS_MAX, KEY_PARTS_MAX
from tests.support.configuration_files import MODEL, load_text, problems_of


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[server]\nport 80\n", "tarazu.toml:2: is not valid TOML: Expected '=' after a key in a key/value pair"),
        ("[server]\n\nport = ", "tarazu.toml:3: is not valid TOML: Invalid value"),
        ("[server]\nport = 1\nport = 2\n", "tarazu.toml:3: is not valid TOML: Cannot overwrite a value"),
        (f"a = {'[' * 100_000}", "tarazu.toml: is not usable TOML: nested too deeply"),
    ],
)
def test_text_that_is_no_toml_is_told_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    """The parser's reason is passed on, with the line in its usual place."""
    assert problems_of(tmp_path, text) == [problem]


def test_a_number_of_too_many_digits_is_no_crash(tmp_path: Path) -> None:
    """The interpreter's own bound on digits is a problem of the file like others, in our words and with its line."""
    for number in ("9" * (DIGITS_MAX + 1), "-" + "9" * 100_000, "1_" * DIGITS_MAX + "1"):
        (problem,) = problems_of(tmp_path, f"[server]\n# {'8' * 4_000}\nport = {number}\n")
        assert problem == "tarazu.toml:3: is not usable TOML: a number has more than 4,300 digits"
    assert any("port" in problem for problem in problems_of(tmp_path, f"[server]\nport = {'9' * DIGITS_MAX}\n"))


@pytest.mark.parametrize(
    "text",
    [
        f"{'.'.join('a' * 200_000)} = 1",
        f"[{'.'.join('a' * 200_000)}]",
        "x = { " + " . ".join(('"a b"', "'c'") * 20_000) + " = 1 }",
        f"{'.'.join('a' * (KEY_PARTS_MAX + 1))} = 1",
    ],
)
def test_a_key_of_too_many_parts_is_refused_before_it_is_parsed(tmp_path: Path, text: str) -> None:
    """The parser needs minutes for it. What is as long and no such key is parsed."""
    problem = "tarazu.toml:2: is not usable TOML: a key has more than 32 parts"
    assert problems_of(tmp_path, f"[a]\n{text}\n") == [problem]


@pytest.mark.parametrize(
    "text", [f"{'a' * 1_000_000} = 1", f"a = '{'a b.' * 200_000}'", f"a = [{'1.5,' * 200_000}]", '"' * 1_000_000]
)
def test_a_long_text_is_looked_through_at_once(tmp_path: Path, text: str) -> None:
    """For keys of many parts: the time grows with the length alone."""
    assert not any("parts" in problem for problem in problems_of(tmp_path, text))


@pytest.mark.parametrize("what", ["configuration", "key"])
def test_a_named_pipe_is_not_waited_for(tmp_path: Path, what: str) -> None:
    """Nobody may ever write to it; that it is one is told."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if what == "key":
        problems = problems_of(
            tmp_path,
            f'{MODEL.replace("local", "openai")}url = "https://a/v1"\nmodel = "m"\napi_key_file = "{pipe}"\n',
        )
    else:
        with pytest.raises(ConfigurationError) as raised:
            load(pipe, {})
        problems = [str(raised.value)]
    (problem,) = problems
    assert "cannot be read (it is a named pipe, which may have no writer)" in problem


def test_a_terminal_is_not_waited_for() -> None:
    """Nor is one a file."""
    one, other = pty.openpty()
    try:
        with pytest.raises(ConfigurationError, match="it is a terminal"):
            load(Path(os.ttyname(other)), {})
    finally:
        os.close(one)
        os.close(other)


def test_a_pipe_that_the_process_was_handed_is_read(tmp_path: Path) -> None:
    """As a shell hands it over: `--config <(…)`, or /dev/stdin."""
    path = tmp_path / "tarazu.toml"
    path.write_text(MODEL)
    expected = load(path, {}).catalogue
    for name in ("/dev/fd/{}", "/proc/self/fd/{}"):
        reader, writer = os.pipe()
        os.write(writer, MODEL.encode())
        os.close(writer)
        try:
            assert load(Path(name.format(reader)), {}).catalogue == expected
        finally:
            os.close(reader)


def test_text_that_is_no_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    """The line is that of the first byte that is none."""
    path = tmp_path / "tarazu.toml"
    path.write_bytes(b"[server]\nhost = '\xff'\n")
    with pytest.raises(ConfigurationError) as raised:
        load(path, {})
    assert raised.value.problems == (Problem(str(path), 2, None, "is not UTF-8 text, save it as UTF-8"),)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A wrong path, to the books for example, is a clear problem."""
    assert problems_of(tmp_path, "#" * 1_048_577) == ["tarazu.toml: is larger than 1,048,576 bytes, check the path"]


def test_a_path_without_a_file_is_a_problem(tmp_path: Path) -> None:
    """A file that was asked for is never replaced by another."""
    path = tmp_path / "missing.toml"
    with pytest.raises(ConfigurationError) as raised:
        load(path, {})
    assert str(raised.value) == f"{path}: cannot be read (No such file or directory), check the path"


def test_a_variable_that_names_no_file_is_a_problem() -> None:
    """The reason says that it was the environment that named it."""
    with pytest.raises(ConfigurationError) as raised:
        load(environ={"TARAZU_CONFIG": "/nowhere/tarazu.toml"})
    assert str(raised.value) == (
        "/nowhere/tarazu.toml: cannot be read (No such file or directory), check the environment variable TARAZU_CONFIG"
    )


def test_a_broken_link_is_no_wish_for_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """./tarazu.toml that leads nowhere is a problem, not a service with other models."""
    monkeypatch.chdir(tmp_path)
    Path("tarazu.toml").symlink_to("missing")
    with pytest.raises(ConfigurationError) as raised:
        load(environ={})
    assert str(raised.value) == "tarazu.toml: cannot be read (No such file or directory), check the file"


TABLES = st.dictionaries(
    st.sampled_from(
        ["server", "database", "billing", "payg", "plans", "models", "backends", "kind", "url", "model", "credits"]
    )
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=3),
    st.deferred(lambda: VALUES),
    max_size=4,
)
VALUES: st.SearchStrategy[object] = (
    st.integers()
    | st.floats()
    | st.booleans()
    | st.sampled_from(["openai", "local", "*"])
    | st.lists(st.deferred(lambda: VALUES), max_size=2)
    | TABLES
)


def toml_of(value: object) -> str:
    """Write a value as TOML, tables in one line."""
    match value:
        case list():
            return f"[{', '.join(map(toml_of, value))}]"
        case dict():
            members = (f"{toml_of(name)} = {toml_of(member)}" for name, member in value.items())
            return f"{{{', '.join(members)}}}"
        case float():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=TABLES)
def test_no_document_is_too_odd_to_be_answered(tmp_path: Path, document: dict[str, object]) -> None:
    """Whatever TOML stands in the file, the answer is a configuration or problems of one line each, with a line."""
    text = "".join(f"{toml_of(name)} = {toml_of(value)}\n" for name, value in document.items())
    try:
        load_text(tmp_path, text)
        problems: tuple[Problem, ...] = ()
    except ConfigurationError as error:
        problems = error.problems
    assert all(len(str(problem).splitlines()) == 1 for problem in problems)
    assert all(problem.line is not None for problem in problems if problem.key != "models")


def test_the_environment_may_name_the_database(tmp_path: Path) -> None:
    """TARAZU_DATABASE_URL stands above the file, so that a password need not be in it."""
    url = "postgresql://tarazu:secret@db/tarazu"
    path = tmp_path / "tarazu.toml"
    path.write_text(f'[database]\nurl = "postgresql://other@db/other"\n{MODEL}')
    assert load(path, {"TARAZU_DATABASE_URL": url}).database_url == url
    assert load(path, {}).database_url == "postgresql://other@db/other"
