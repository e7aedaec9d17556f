"""The framework's classes of nodes: made of their fields in order, they hold these, and `isinstance` tells them apart."""

from __future__ import annotations

import numpy as np
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
    store, row = tir.BufferStore(a, 1, [i]), te.placeholder((8,), name="row")
    address = tir.Var("p", tir.PointerType(tir.PrimType("int32")))
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
        "AttrStmt": tir.AttrStmt(i, "own", 1, store),
        "AssertStmt": tir.AssertStmt(i < 3, "few", store),
        "Allocate": tir.Allocate(address, "int32", [4], tir.IntImm("bool", 1), store),
        "AllocateConst": tir.AllocateConst(address, "int32", [1], np.array([3]), store),
        "Call": tir.Call("float32", "tir.exp", [te.var("x", "float32")]),
        "PrimFunc": tir.PrimFunc([i, a], store),
        "ProducerStore": tir.ProducerStore(row, row[i], [i]),
        "ProducerRealize": tir.ProducerRealize(row, [te.Range(0, 4)], True, store, "local"),
    }
    for name, op in _BINARY.items():
        sides = (i < 3, j < 3) if op in ("and", "or") else (i, j)
        made[name] = getattr(tir, name)(*sides)
    return made


def test_a_node_is_of_its_own_type_and_its_groups_only(tir):
    made = examples(tir)
    assert set(made) == {n for n, t in TYPES.items() if n not in GROUPS} - {
        "DeclBuffer", "Block", "BlockRealize", "Buffer", "BufferRegion", "ProducerLoad", "Reduce",
        "CommReducer", "PrimType", "PointerType", "Array", "Map",
    }  # fmt: skip
    for name, node in made.items():
        held = {n for n in made if isinstance(node, getattr(tir, n))}
        wanted = {name} | ({"Var"} if name == "SizeVar" else set())
        assert held == wanted, name
        expression = not isinstance(node, (tir.Stmt, tir.PrimFunc))
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


def test_kinds_of_loops_are_numbers_and_words(tir):
    for number, word in enumerate("serial parallel vectorized unrolled".split()):
        kind = tir.ForKind(number)
        loop = tir.For(te.var("k"), 0, 8, number, tir.Evaluate(0))
        assert loop.kind == kind == number and loop.kind == word and kind != tir.ForKind.THREAD_BINDING
    assert tir.ForKind.THREAD_BINDING == "threadIdx_x" and tir.ForKind.SERIAL != "unrolled"


def test_functions_are_made_of_variables_and_buffers(tir):
    import tvm

    n, handle = te.var("n"), te.var("h")
    a, b = tir.decl_buffer((8,), "int32", "a"), tir.decl_buffer((8,), "int32", "b")
    body = tir.BufferStore(b, a[n] + 1, [n])
    f = tir.PrimFunc([n, a, handle], body, None, {handle: b}, {"global_symbol": "put", "own": 3})
    assert [p.name for p in f.params] == ["n", "a", "b"] and f.attrs["global_symbol"] == "put" and f.attrs["own"] == 3
    assert isinstance(f.body, tir.BufferStore) and f.body.value.b.value == 1 and len(f.buffer_map) == 2
    module = tvm.IRModule({"main": f})
    import numpy as np

    given, found = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    tvm.build(module, target="llvm")(5, given, found)
    assert found.tolist() == [0, 0, 0, 0, 0, 6, 0, 0]


def test_reducers_and_ranges_are_made_of_their_fields(tir):
    import tvm

    x, y = te.var("x"), te.var("y")
    made = tir.CommReducer([x], [y], [x + y], [0])
    joined = made.combine([te.const(3)], [te.const(4)])[0]
    assert joined.a == 3 and joined.b == 4 and made.identity_element[0] == 0 and joined.a != 4
    with pytest.raises(ValueError, match="as many results"):
        tir.CommReducer([x], [y], [x, y], [0])
    assert tvm.ir.Range(2, 5) == tvm.ir.Range.from_min_extent(2, 3) != tvm.ir.Range(3)
    assert hash(tvm.ir.Range(2, 5)) == hash(tvm.ir.Range.from_min_extent(2, 3))
    axis = tir.IterVar((0, 5), x, tir.IterVar.CommReduce)
    assert axis.var is x and axis.dom.extent == 5 and axis.iter_type == 2
    assert tvm.ir.make_node("tir.Add", a=x, b=y).b is y
    with pytest.raises(TypeError, match="no nodes of kind 'tir.Addd'") as caught:
        tvm.ir.make_node("tir.Addd", a=x, b=y)
    assert "Add" in caught.value.help
    assert isinstance(te.placeholder((3,)).shape, tvm.ir.Array) and isinstance(
        te.placeholder((3,))[0], tir.ProducerLoad
    )


def test_functions_of_numbers_give_what_their_words_say(tir):
    x = te.var("x")
    assert isinstance(tir.ceildiv(x, 3), tir.FloorDiv) and tir.ceildiv(te.const(7), 3) == 3
    assert tir.reinterpret("float32", x).dtype == "float32" and tir.reinterpret("int32", x) is x
    with pytest.raises(CompassError, match="different numbers of bits"):
        tir.reinterpret("int8", x)
    assert float(tir.infinity("float16")) == float("inf") and int(te.const(3)) == 3
    with pytest.raises(CompassError, match="int8 has no infinity"):
        tir.infinity("int8")
    store = tir.Evaluate(x)
    assert tir.stmt_seq(x) == store or isinstance(tir.stmt_seq(x), tir.Evaluate)
    assert tir.stmt_list(tir.stmt_seq(store, store)) == [store, store]
    view = tir.decl_buffer((4, 8), "int32", "a")
    assert isinstance(view, tir.Buffer) and isinstance(view[0, 0].buffer, tir.Buffer)
    assert view[0, 0].buffer.name == view.name and view.data.name_hint == "a"
    assert view.offset_of([2, 3])[0] == 19 and view.scope() == "global" and view.data.name == "a"


def test_nodes_of_kernels_are_the_same_types(tir):
    i, a = te.var("i"), te.placeholder((8,), "int32", name="a")
    assert isinstance(i + 1, tir.Add) and isinstance(i * 2 < 3, tir.LT) and not isinstance(i + 1, tir.Mul)
    assert isinstance(a[i] % 3, tir.FloorMod) and isinstance(a[i], tir.PrimExpr)
