"""Walks of Python's syntax trees, and names in them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from compass_core.reading import pyast
from tests import sources

ALL_KINDS = """
import a.b as c
from . import d
async def f(x: int, /, y=1, *z, k=None, **w) -> str:
    global g, h
    async for i in j: await k
    async with l as m, n: yield
    return f"{x!r:>{y}}" if x else {**w, 1: 2}
class C(B, metaclass=M):
    x: int = 1
    def __del__(self): nonlocal_ = [i for i in x if i for j in i]; del x[1:2, ...]
match x:
    case {"a": 1, **rest} | [C(1, y=2), *_] | None: pass
    case name if (name := 1) < 2 <= 3: raise E from e
try: pass
except* (A, B) as error: assert not x, "text"
"""


@pytest.mark.parametrize("text", [ALL_KINDS, Path(pyast.__file__).read_text(), Path(__file__).read_text()])
def test_a_walk_meets_all_nodes_but_contexts_in_the_order_of_the_text(text):
    tree = ast.parse(text)
    met = list(pyast.walk([tree]))

    def nodes(node):
        yield node
        for part in ast.iter_child_nodes(node):
            yield from () if isinstance(part, ast.expr_context) else nodes(part)

    assert list(map(id, met)) == list(map(id, nodes(tree)))


def test_dotted_names_are_as_they_are_written():
    found = [node for path in sources.paths()[:40] for node in sources.nodes(path) if isinstance(node, ast.expr)]
    written = {ast.unparse(node): pyast.dotted(node) for node in found if pyast.dotted(node)}
    assert len(written) > 100 and all(text == name for text, name in written.items())
    assert any(name.count(".") > 1 for name in written)
    for text in ("f().a", "a[0].b", "1", "'a'.b", "a + b", "(a, b)"):
        assert pyast.dotted(ast.parse(text, mode="eval").body) == ""
