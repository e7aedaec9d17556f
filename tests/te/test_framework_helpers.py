"""Helpers under the framework's names: replacing nodes, folders, and why others do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from compass_core.errors import CompassError
from compassc import te
from compassc.compat.contrib import tempdir
from compassc.compat.ir_functions import ir_transform
from compassc.compat.modules import _missing
from compassc.compat.names import MISSING
from compassc.ir import exprs as E
from compassc.ir import stmts as S


def function():
    a = te.placeholder((4,), "int32", name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    return te.lower(te.create_schedule(b), [a, b], target="llvm", simple_mode=True).entry_func


def test_nodes_are_replaced():
    f = function()

    def twice(node):
        return E.Binary("mul", node, E.IntImm(node.dtype, 2)) if isinstance(node, E.BufferLoad) else None

    assert "(a_1[i] * 2) + 1" in ir_transform(f, None, twice).script()
    assert "(a_1[i] * 2) + 1" in ir_transform(f, None, twice, ["tir.BufferLoad"]).script()
    assert ir_transform(f, None, twice, ["tir.For"]).script() == f.script()
    store = ir_transform(f, lambda s: s.body[0] if isinstance(s, S.For) else None, None)
    assert "for i" not in store.script()
    with pytest.raises(CompassError, match="there are no nodes of kind 'tir.Nothing'"):
        ir_transform(f, None, twice, ["tir.Nothing"])


def test_a_folder_for_files():
    made = tempdir()
    Path(made.relpath("x.txt")).write_text("x")
    assert made.listdir() == ["x.txt"] and made.relpath("x.txt").startswith(made.path)
    made.remove()
    assert not Path(made.path).exists()


@pytest.mark.parametrize("name", sorted(MISSING))
def test_each_name_that_does_not_exist_says_why(name):
    assert f"{name} does not exist here: {MISSING[name]}" in str(_missing(CompassError, name))
