"""What the service reads of a request, found in its code: headers, parameters of queries, fields of forms."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import UnionType

import tarazu
from tarazu.api.admin.routes import ROUTES

SOURCE = Path(tarazu.__file__).parent
READERS = ("application.py", "api", "panel", "service/forwarding.py")
"""Where requests are read."""
DESCRIBING = ("api/contract", "api/docs_page.py", "api/schema_text.py", "api/prose.py")
"""What only tells of them."""
OF_ANSWERS = frozenset({"etag", "x-request-id", "x-content-type-options", "x-frame-options"})
OF_ANSWERS_TOO = re.compile(r"x-(?:dropped-messages|ignored-parameters)|x-ratelimit-.*|x-codesamples")

_OF_BYTES = ("headers", "values", "repeated", "named")
"""What mappings of headers by their bytes are called; those by their text are called `headers`."""
_NAME = re.compile(r"[a-z]+(?:-[a-z]+)+|[a-z]+")


def headers_read() -> set[str]:
    """List the headers that are looked for by their names, and all names that begin as no other text does."""
    found = set()
    for module, tree in _modules():
        for node in ast.walk(tree):
            names = [*_sought(node, module)]
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                names += [name for name in _texts(node, module) if name.startswith(("x-", "if-", "sec-"))]
            found |= {name for name in names if _NAME.fullmatch(name)}
    return {name for name in found - OF_ANSWERS if not OF_ANSWERS_TOO.fullmatch(name)}


def parameters_read() -> set[str]:
    """List the parameters of queries, of pages and of the admin API."""
    of_pages = (
        _arguments({"query": 0}) | _arguments({"number": 0}, of="visit") | _arguments({"get": 0}, of="query_params")
    )
    return of_pages | {name for route in ROUTES for name in route.query.__struct_fields__}


def fields_read() -> set[str]:
    """List the fields of forms."""
    return _arguments({"text": 0, "texts": 0, "whole_number": 1})


def _arguments(methods: dict[str, int], of: str = "") -> set[str]:
    found: set[str] = set()
    for module, tree in _modules():
        each_of = dict(_written_in_place(tree))
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods):
                continue
            place = methods[node.func.attr]
            if len(node.args) > place and ast.unparse(node.func.value).endswith(of):
                for name in each_of.get(node.args[place], [node.args[place]]):
                    found.update(_texts(name, module))
    return found


def _written_in_place(tree: ast.Module) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """Find the names in comprehensions that stand for texts which are written there, and these."""
    for node in ast.walk(tree):
        for part in node.generators if isinstance(node, ast.DictComp | ast.ListComp | ast.SetComp) else ():
            if isinstance(part.iter, ast.Tuple):
                target = ast.unparse(part.target)
                yield from ((n, part.iter.elts) for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == target)


def _sought(node: ast.AST, module: str) -> Iterator[str]:
    """Find the names that headers are asked for, or compared with, in one expression."""
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr="get" | "getlist"), args=[name, *_]):
            yield from _of(of, name, module)
        case ast.Subscript(value=of, slice=name, ctx=ast.Load()):
            yield from _of(of, name, module)
        case ast.Compare(left=left, comparators=[right]):
            yield from _of(right, left, module)
            yield from _of(left, right, module)


def _of(node: ast.AST, name: ast.AST, module: str) -> list[str]:
    """Tell the names where they are sought among headers, or compared with that of one."""
    of = ast.unparse(node)
    if of.endswith("headers"):
        return _texts(name, module)
    return _texts(name, module, bytes) if of.endswith(_OF_BYTES) or of == "name" else []


def _texts(node: ast.AST, module: str, kind: type | UnionType = bytes | str) -> list[str]:
    """Tell the texts of a constant, or of a name that stands for one or several."""
    value: object = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, ast.Name):
        value = getattr(importlib.import_module(module), node.id, value)
    values = value if isinstance(value, frozenset | tuple) else (value,)
    of_kind = [each for each in values if isinstance(each, kind)]
    return [each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in of_kind]


@cache
def _modules() -> list[tuple[str, ast.Module]]:
    files = [
        file
        for reader in READERS
        for file in ([SOURCE / reader] if reader.endswith(".py") else sorted((SOURCE / reader).rglob("*.py")))
    ]
    told = tuple(str(SOURCE / each) for each in DESCRIBING)
    return [
        (".".join(("tarazu", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"), tree)
        for file in files
        if not str(file).startswith(told)
        for tree in [ast.parse(file.read_text("utf-8"))]
    ]
