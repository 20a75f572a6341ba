"""The finder of lines, held against texts whose lines are known because they are written here."""

import json
import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tarazu.service.configuration.lines import KeyPath, find_lines

NAMES = st.sampled_from(["a", "b-1", "1.5", "x/y", 'quo"te', "# no comment", "[[t]]", "", "ب"])
VALUES = st.sampled_from(
    [
        "1",
        "true # [comment",
        '"text # [ \\" = "',
        "'literal \\'",
        '"""\n[table]\nkey = 1 \\""" # two of its own: """""',
        "'''\n[[table]]\nkey = 'x' # '''",
        '""',
        "[ 1, # ]\n  [2, '''\n]'''],\n]",
        "{ a = { b = '}' }, c = [1] }",
        "1979-05-27T07:32:00Z",
    ]
)
SPACE = st.sampled_from(["", "\n", "# comment with [x] and y = 1\n", "\t\n\n# '''\n"])


def written(name: str) -> str:
    """Write a name as a key, in quotes if it needs them."""
    return name if name.isascii() and name.replace("-", "").isalnum() else json.dumps(name)


@given(st.data())
def test_every_table_and_key_is_found_on_its_line(data: st.DataObject) -> None:
    """Whatever stands in values and comments, each table and key has the line on which it was written."""
    text = ""
    expected: dict[KeyPath, int] = {}

    def write(path: KeyPath, statement: str) -> None:
        nonlocal text
        text += data.draw(SPACE)
        expected[path] = text.count("\n") + 1
        text += statement + "\n"

    def write_keys(path: KeyPath) -> None:
        for name in data.draw(st.lists(NAMES, unique=True, max_size=3)):
            write((*path, name), f"{written(name)} = {data.draw(VALUES)}")

    for table in data.draw(st.lists(NAMES, unique=True, max_size=4)):
        if data.draw(st.booleans()):
            write((table, "sub"), f"[ {written(table)} . sub ] # ]")
            write_keys((table, "sub"))
        else:
            for place in range(data.draw(st.integers(1, 3))):
                write((table, place), f"[[{written(table)}]]")
                write_keys((table, place))
                if data.draw(st.booleans()):
                    write((table, place, "in ner"), f'[{written(table)}."in ner"]')
                    write_keys((table, place, "in ner"))
    tomllib.loads(text)
    found = find_lines(text)
    assert {path: found.get(path) for path in expected} == expected


@given(st.data())
def test_every_way_that_is_found_exists_in_the_document(data: st.DataObject) -> None:
    """The finder invents nothing: each way it knows leads to a value of the parsed document."""
    names = data.draw(st.lists(NAMES, unique=True, max_size=4))
    text = "".join(f"{data.draw(SPACE)}[{written(name)}]\nk.{written(name)} = {data.draw(VALUES)}\n" for name in names)
    document = tomllib.loads(text)
    for path in find_lines(text):
        value: Any = document
        for part in path:
            value = value[part]


def test_a_list_of_tables_inside_another_counts_anew() -> None:
    """A second outer table begins with a first inner one."""
    text = "[[a]]\n[[a.b]]\nk = 1\n[[a.b]]\nk = 2\n[[a]]\n[[a.b]]\nk = 3\n"
    found = find_lines(text)
    assert [found["a", 0, "b", 0, "k"], found["a", 0, "b", 1, "k"], found["a", 1, "b", 0, "k"]] == [3, 5, 8]


def test_an_empty_text_has_no_keys() -> None:
    """Neither nothing nor comments alone are a statement."""
    assert find_lines("") == find_lines("# a = 1\n\n") == {}
