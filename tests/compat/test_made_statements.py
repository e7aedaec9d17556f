"""Statements that programs make: what they are made of is what they have, and functions of them compute."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.compat import nodes as tir
from compassc.compat.ir_functions import post_order_visit, structural_equal, substitute
from compassc.compat.nodes import TYPES, make_node
from compassc.compat.schedule_testing import ScheduleState
from compassc.compat.statements import WrongStatement
from compassc.compat.tvmscript import from_source
from compassc.te import IterVar, Range, decl_buffer

pytestmark = pytest.mark.usefixtures("fields")


@pytest.fixture
def fields(names):
    """Nodes have the fields that programs ask for."""
    import tvm

    return tvm


def pointer(dtype="int32"):
    return tir.Var("p", tir.PointerType(tir.PrimType(dtype)))


def test_scopes_have_what_they_are_made_of():
    x, rest, yes = tir.Var("x", "int32"), tir.Evaluate(1), tir.IntImm("bool", 1)
    said = tir.AttrStmt(x, "own", 3, rest)
    assert isinstance(said, tir.AttrStmt) and (said.node, said.attr_key, said.value.value) == (x, "own", 3)
    text = tir.AttrStmt("default", "own", "text", rest)
    assert (text.node.value, text.value.value) == ("default", "text")
    held = tir.AssertStmt(yes, "always", rest)
    assert isinstance(held, tir.AssertStmt) and held.message.value == "always"
    memory = tir.Allocate(pointer(), "int32", [4, 2], yes, rest)
    assert (
        isinstance(memory, tir.Allocate)
        and [e.value for e in memory.extents] == [4, 2]
        and memory.buffer_var.name == "p"
    )
    table = tir.AllocateConst(pointer(), "int32", [2], np.array([5, 6], "int32"), rest)
    assert isinstance(table, tir.AllocateConst) and table.data == np.array([5, 6], "int32").tobytes()
    for made in (said, held, memory, table):
        assert rest.same_as(made.body) and isinstance(made.body, tir.Evaluate)


def test_functions_of_made_statements_compute():
    import tvm

    x, out, p = tir.Var("x", "int32"), decl_buffer((4,), "int32", name="out"), pointer()
    stored = tir.BufferStore(decl_buffer((4,), "int32", name="t"), x, [x])
    axis = IterVar(Range(0, 4), "v", 0)
    region = tir.BufferRegion(out, [Range.from_min_extent(axis.var, 1)])
    block = tir.Block([axis], [], [region], "square", tir.BufferStore(out, axis.var * axis.var, [axis.var]))
    placed = tir.BlockRealize([x], True, block)
    assert placed.block.iter_values[0] is x and isinstance(placed, tir.BlockRealize) and stored is not None
    function = tir.PrimFunc([out], tir.For(x, 0, 4, tir.ForKind.SERIAL, placed))
    found = np.zeros(4, "int32")
    tvm.build(function, target="llvm")(found)
    assert found.tolist() == [0, 1, 4, 9]
    assert structural_equal(substitute(placed, {x: 2}), tir.BlockRealize([2], True, block))
    seen = []
    post_order_visit(function.body, seen.append)
    assert sum(isinstance(s, tir.Block) for s in seen) >= 1 and p is not None


def test_a_builder_gives_a_statement():
    from compassc.te import ir_builder

    ib = ir_builder.create()
    assert isinstance(ib.get(), tir.Evaluate)
    ib.emit(tir.Evaluate(1))
    assert ib.get().value.value == 1
    ib.emit(tir.Evaluate(2))
    assert isinstance(ib.get(), tir.SeqStmt) and [s.value.value for s in ib.get()] == [1, 2]


def test_the_block_that_a_function_is_is_replaced():
    source = """
@T.prim_func
def two(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            A[v] = v
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = v
"""
    state = ScheduleState(from_source(source))
    root = state.mod.entry_func.body.block
    made = tir.Block([], [], [], "root", root.body[1])
    reference = state.get_sref(root)
    state.replace(reference, made)
    assert [s.body.block.name_hint for s in state.mod.entry_func.body.block.body] == ["B"]
    assert state.get_sref(reference.stmt.body[0].body).parent.stmt.same_as(reference.stmt.body)
    assert "A" in str(root.body[0].body.block.name_hint)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: tir.Allocate(pointer("int8"), "int32", [4], tir.IntImm("bool", 1), tir.Evaluate(1)),
            "no address of int32",
        ),
        (lambda: tir.Allocate(pointer(), "int32", [4], tir.Var("c", "bool"), tir.Evaluate(1)), "under an IfThenElse"),
        (lambda: tir.AllocateConst(pointer(), "int32", [4], 0, tir.Evaluate(1)), "by their numbers"),
        (lambda: tir.BlockRealize([1], True, tir.Block([], [], [], "b", tir.Evaluate(1))), "a value for each"),
        (lambda: tir.Block([3], [], [], "b", tir.Evaluate(1)), "no axis of a block"),
        (lambda: tir.DeclBuffer(3, tir.Evaluate(1)), "no buffer"),
    ],
)
def test_what_no_statement_is_made_of(make, said):
    with pytest.raises((WrongStatement, AttributeError), match=said):
        make()


def test_statements_are_made_by_name():
    assert {"AttrStmt", "AssertStmt", "Allocate", "Block", "BlockRealize", "DeclBuffer"} <= TYPES.keys()
    assert make_node("tir.AttrStmt", node="x", attr_key="own", value=1, body=tir.Evaluate(1)).attr_key == "own"
