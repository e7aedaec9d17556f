"""The framework's classes of nodes: made of their fields in order, they hold these, and `isinstance` tells them apart."""

from __future__ import annotations

import pytest

from compass_core.errors import CompassError
from compassc import te
from compassc.compat.nodes import _BINARY, TYPES

GROUPS = ("BinaryOpExpr", "CmpExpr", "LogicalExpr", "ConstExpr", "PrimExpr", "Stmt")


@pytest.fixture
def tir(names):
    import tvm

    return tvm.tir


def examples(tir):
    """A node of each type that programs make, by the name of the type."""
    i, j, a = te.var("i"), te.size_var("j"), te.decl_buffer((8,), "int32", "a")
    store = tir.BufferStore(a, 1, [i])
    made = {
        "Var": tir.Var("n", "int64"),
        "SizeVar": tir.SizeVar("n", "int32"),
        "IntImm": tir.IntImm("int8", 3),
        "FloatImm": tir.FloatImm("float16", 0.5),
        "StringImm": tir.StringImm("text"),
        "Cast": tir.Cast("int8", i),
        "Ramp": tir.Ramp(i, 2, 8),
        "Broadcast": tir.Broadcast(i, 4),
        "Select": tir.Select(i < 3, i, j),
        "Not": tir.Not(i < 3),
        "BufferLoad": tir.BufferLoad(a, [i]),
        "BufferStore": store,
        "Evaluate": tir.Evaluate(i),
        "IfThenElse": tir.IfThenElse(i < 3, store, None),
        "While": tir.While(i < 3, [store]),
        "For": tir.For(te.var("k"), 0, 8, tir.ForKind.SERIAL, store),
        "LetStmt": tir.LetStmt(te.var("k"), 3, store),
        "SeqStmt": tir.SeqStmt([store, store]),
    }
    for name, op in _BINARY.items():
        sides = (i < 3, j < 3) if op in ("and", "or") else (i, j)
        made[name] = getattr(tir, name)(*sides)
    return made


def test_a_node_is_of_its_own_type_and_its_groups_only(tir):
    made = examples(tir)
    assert set(made) == {n for n, t in TYPES.items() if n not in GROUPS} - {
        "Call", "Allocate", "AllocateConst", "DeclBuffer", "Block", "BufferRegion"
    }  # fmt: skip
    for name, node in made.items():
        held = {n for n in made if isinstance(node, getattr(tir, n))}
        wanted = {name} | ({"Var"} if name == "SizeVar" else set())
        assert held == wanted, name
        expression = not isinstance(node, (tir.Stmt,))
        assert isinstance(node, tir.PrimExpr) == expression
        assert isinstance(node, tir.CmpExpr) == (name in ("EQ", "NE", "LT", "LE", "GT", "GE"))
        assert isinstance(node, tir.LogicalExpr) == (name in ("And", "Or", "Not"))
        assert isinstance(node, tir.ConstExpr) == name.endswith("Imm")


def test_constructors_keep_what_they_are_given(tir):
    i = te.var("i")
    for name in _BINARY:
        if name not in ("And", "Or"):
            made = getattr(tir, name)(i, 0)
            assert (made.a, made.b.value, made.op) == (i.as_expr(), 0, name.lower()), "constants are not folded"
    loop = tir.For(te.var("k"), 0, 8, tir.ForKind.SERIAL, tir.Evaluate(0))
    assert isinstance(loop.body, tir.Evaluate) and loop.body.value.value == 0
    both = tir.SeqStmt([loop, loop])
    assert len(both) == 2 and both[1] is both[0] and list(both.seq) == [loop, loop]
    rest = tir.LetStmt(te.var("k"), i, [loop, loop])
    assert rest.value is i and isinstance(rest.body, tir.SeqStmt)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda t, i: t.Add(i, te.const(1.0)), "Add: operands of .* have types int32 and float32"),
        (lambda t, i: t.EQ(i, te.const(1, "int64")), "EQ: operands of .* have types int32 and int64"),
        (lambda t, i: t.And(i, i), "And: operands of .* are not bool"),
        (lambda t, i: t.Not(i), "Not: .* has an operand of type int32"),
        (lambda t, i: t.Broadcast(i, 1), "Broadcast: .* is not a scalar in several lanes"),
        (lambda t, i: t.Add(i), r"Add\(a, b, span=None\): missing a required argument: 'b'"),
        (lambda t, i: t.While(i, []), "a condition is a bool"),
        (lambda t, i: t.SeqStmt([]), "a sequence of 0 statements"),
        (lambda t, i: t.CmpExpr(i, i), "programs make no CmpExpr"),
    ],
)
def test_what_does_not_go_together_is_a_type_error(tir, make, words):
    with pytest.raises((TypeError, CompassError), match=words) as caught:
        make(tir, te.var("i"))
    assert caught.value.help


def test_nodes_of_kernels_are_the_same_types(tir):
    i, a = te.var("i"), te.placeholder((8,), "int32", name="a")
    assert isinstance(i + 1, tir.Add) and isinstance(i * 2 < 3, tir.LT) and not isinstance(i + 1, tir.Mul)
    assert isinstance(a[i] % 3, tir.FloorMod) and isinstance(a[i], tir.PrimExpr)
