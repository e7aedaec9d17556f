"""Buffers that are declared, bound to tensors and to what intrinsics stand for, and statements made by a builder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.te import ir_builder

TARGETS = ["X2_1204", "llvm"]


def built(target, s, args):
    if target == "llvm":
        return te.build(s, args, target)
    return BuildManager(target).build(te.lower(s, args, target=target))


def sorted_rows(ins, outs):
    """Each row, sorted by insertion; behind it how many elements are below 0."""
    ib = ir_builder.create()
    x, y, below = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), ib.buffer_ptr(outs[1])
    rows, columns = ins[0].shape
    with ib.for_range(0, rows, name="r", kind="parallel") as r:
        below[r] = 0
        at = ib.allocate("int32", (1,), name="at")
        with ib.for_range(0, columns, name="c") as c:
            value = ib.let("value", x[r, c])
            with ib.if_scope(value < 0):
                below[r] = below[r] + 1
            at[0] = c
            with ib.while_loop(te.if_then_else(at[0] > 0, y[r, te.max(at[0] - 1, 0)] > value, False)):
                y[r, at[0]] = y[r, at[0] - 1]
                at[0] = at[0] - 1
            y[r, at[0]] = value
    return ib.get()


@pytest.mark.parametrize("target", TARGETS)
def test_statements_of_a_builder_run_in_order(target):
    a = te.placeholder((5, 7), "int32", name="a")
    outs = te.extern([(5, 7), (5,)], [a], sorted_rows, dtype="int32", name="sort")
    x = np.random.default_rng(1).integers(-9, 9, (5, 7)).astype("int32")
    found, below = np.zeros_like(x), np.zeros(5, "int32")
    built(target, te.create_schedule([t.op for t in outs]), [a, *outs])(x, found, below)
    np.testing.assert_array_equal(found, np.sort(x, axis=1))
    np.testing.assert_array_equal(below, (x < 0).sum(axis=1))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(-3, 3), st.sampled_from(sorted(ir_builder.KINDS))
)
def test_one_index_counts_all_elements(shape, limit, kind):
    def copied(ins, outs):
        ib = ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, count, kind=kind) as k:
            with ib.if_scope(x[k] > limit):
                y[k] = x[k]
            with ib.else_scope():
                y[k] = limit
        return ib.get()

    count = int(np.prod(shape))
    a = te.placeholder(shape, "int32", name="a")
    b = te.extern(tuple(shape), [a], copied, name="b")
    module = te.lower(te.create_schedule(b), [a, b], target="X2_1204")
    x = (np.arange(count, dtype="int32") - count // 2).reshape(shape)
    found = np.zeros_like(x)
    Interpreter(module.entry_func)(x, found)
    np.testing.assert_array_equal(found, np.maximum(x, limit))


def wrong_builders():
    ib = ir_builder.create()
    view = te.decl_buffer((4, n := te.size_var("n")), "int32", "view")

    def open_loop():
        with ib.for_range(0, 4):
            ib.get()

    return {
        "outside of its loops": open_loop,
        "else_scope follows an if_scope": lambda: ib.else_scope().__enter__(),
        "a condition is a bool, got int32": lambda: ib.if_scope(n).__enter__(),
        "a loop is serial, unroll, parallel, vectorize": lambda: ib.for_range(0, 4, kind="tec").__enter__(),
        "a size is no number": lambda: ib.allocate("int32", (n,)),
        "memory of statements is that of their thread, got 'shared'": lambda: ib.allocate("int32", 4, scope="shared"),
        "has no meaning in statements": lambda: ib.scope_attr(te.thread_axis("threadIdx.x"), "thread_extent", 4),
        "buffer_ptr takes a buffer, got int": lambda: ib.buffer_ptr(3),
        "'view' has 2 dimensions, got a shape of 1": lambda: ib.buffer_ptr(view, [4]),
        "'view' has 2 dimensions, got 3 indices": lambda: ib.buffer_ptr(view)[1, 2, 3],
        "'view' has int32 elements, the value is float32": lambda: ib.buffer_ptr(view).__setitem__(
            (0, 0), te.var("f", "float32")
        ),
        "expected a statement or an expression, got str": lambda: ib.emit("x = 1"),
        "'view' has int32 elements, float32 is asked for": lambda: view.vload([0, 0], "float32"),
        "an address in 'view' is one of single elements, not of 4": lambda: view.access_ptr("r", content_lanes=4),
    }


@pytest.mark.parametrize("words", wrong_builders())
def test_wrong_statements_are_refused(words):
    with pytest.raises((te.ExpressionError, te.ExpressionTypeError), match=words) as error:
        wrong_builders()[words]()
    assert error.value.span.file == __file__


# ------------------------------------------------------------------------------------------------------------- buffers


@pytest.mark.parametrize(
    "options", [{"data": 1}, {"elem_offset": 4}, {"scope": "lsram"}, {"offset_factor": -1}, {"buffer_type": "auto"},
                {"strides": [1]}, {"strides": [te.size_var("n") + 1, 1]}, {"data_alignment": "64"}]
)  # fmt: skip
def test_what_a_buffer_cannot_have(options):
    with pytest.raises((te.ExpressionError, te.ExpressionTypeError), match=r"'buffer'"):
        te.decl_buffer((4, 4), **options)
    assert te.decl_buffer((4, 4), elem_offset=0, offset_factor=1, data_alignment=64, scope="global").dtype == "float32"


def test_statements_are_on_the_buffers_that_are_given():
    a = te.placeholder((4, 6), "int32", name="a")
    mine, out = te.decl_buffer((4, 6), "int32", "mine"), te.decl_buffer((6,), "int32", "out")
    seen = []

    def last_row(ins, outs):
        seen.extend([*ins, *outs])
        return te.for_range(0, 6, lambda i: outs[0].vstore(i, ins[0].vload([3, i], "int32")))

    b = te.extern((6,), [a], last_row, name="b", in_buffers=[mine], out_buffers=out)
    assert seen == [mine, out]
    x, found = np.arange(24, dtype="int32").reshape(4, 6), np.zeros(6, "int32")
    Interpreter(te.lower(te.create_schedule(b), [a, b], target="X2_1204").entry_func)(x, found)
    np.testing.assert_array_equal(found, x[3])


@pytest.mark.parametrize(
    ("buffers", "words"),
    [
        ([], "0 are given for 1 tensors"),
        ([te.decl_buffer((6, 4), "int32", "w")], r"the buffer 'w' is \(6, 4\) of int32, 'a' is \(4, 6\) of int32"),
        ([te.decl_buffer((4, 6), "int8", "w")], r"the buffer 'w' is \(4, 6\) of int8"),
        ([te.decl_buffer((4, 6), "int32", "w", strides=[6, 1])], "the buffer 'w' has strides"),
        ([3], "stands for 'a', got int"),
    ],
)
def test_buffers_are_those_of_their_tensors(buffers, words):
    a = te.placeholder((4, 6), "int32", name="a")
    with pytest.raises((te.ExpressionError, te.ExpressionTypeError), match=words):
        te.extern((4,), [a], lambda i, o: o[0].store(i[0][0, 0], 0), in_buffers=buffers)
    b = te.compute((4, 6), lambda *i: a(*i) + 1, name="b")
    if buffers:
        with pytest.raises((te.ExpressionError, te.ExpressionTypeError), match=words):
            te.lower(te.create_schedule(b), [a, b], target="llvm", binds={a: buffers[0]})


def test_buffers_stand_for_tensors_among_the_arguments():
    a = te.placeholder((4, 6), "int32", name="a")
    b = te.compute((4, 6), lambda *i: a(*i) + 1, name="b")
    mine, s = te.decl_buffer((4, 6), "int32", "mine"), te.create_schedule(b)
    text = te.lower(s, [a, b], target="X2_1204", binds={a: mine}).script()
    assert "def main(mine: T.ptr(" in text
    assert te.lower(s, [mine, b], target="X2_1204", binds={a: mine}).script() == text
    with pytest.raises(te.ExpressionTypeError, match="no tensor is bound to the buffer 'mine'"):
        te.lower(s, [mine, b], target="X2_1204")
    x, found = np.arange(24, dtype="int32").reshape(4, 6), np.zeros((4, 6), "int32")
    te.build(s, [mine, b], "llvm", binds={a: mine})(x, found)
    np.testing.assert_array_equal(found, x + 1)


@S.prim_func
def add_rows(x: S.ptr("i32", "lsram"), out: S.ptr("i32", "lsram"), x_step: S.i32, out_step: S.i32):
    for i in range(4):
        for j in range(4):
            out[i * out_step + j] = x[i * x_step + j] + 5


def add_tile(strides, rows=4):
    """Adds 5 to a part of 4 rows, whose distance is in `strides`: of what is read, and of what is written."""
    x = te.placeholder((rows, 4), "int32", name="x")
    y = te.compute((rows, 4), lambda i, j: x[i, j] + 5, name="y")
    binds = {
        t: te.decl_buffer((rows, 4), "int32", t.name, strides=[n, 1]) for t, n in zip((x, y), strides) if n is not None
    }
    return te.decl_tensor_intrin(
        y, lambda ins, outs: te.call_kernel(add_rows, ins[0], outs[0], ins[0].strides[0], outs[0].strides[0]),
        name="tile", binds=binds, default_buffer_params={"offset_factor": 1},
    )  # fmt: skip


def tiled(intrin, columns):
    a = te.placeholder((8, columns), "int32", name="a")
    b = te.compute((8, columns), lambda i, j: a[i, j] + 5, name="b")
    s = te.create_schedule(b)
    local = s.cache_write(b, "lsram")
    s.cache_read(a, "lsram", [local])
    _, _, xi, _ = s[local].tile(*local.op.axis, 4, 4)
    s[local].tensorize(xi, intrin)
    return te.lower(s, [a, b], "tiles", "X2_1204")


@pytest.mark.parametrize("columns", [4, 12])
def test_variables_stand_for_the_strides_of_a_part(columns):
    module = tiled(add_tile([te.var("step"), te.var("other")]), columns)
    x = np.arange(8 * columns, dtype="int32").reshape(8, columns)
    found = np.zeros_like(x)
    BuildManager("X2_1204").build(module)(x, found)
    np.testing.assert_array_equal(found, x + 5)


@pytest.mark.parametrize("strides", [[None, None], [12, 8], [4, 12]])
def test_strides_that_are_declared_are_those_of_the_part(strides):
    with pytest.raises(te.LowerError, match=r"'[xy]' is expected .*, but dimension 0 of .* has stride 12, not [48]"):
        tiled(add_tile(strides), 12)


def test_a_part_of_an_open_size_is_not_in_one_piece():
    n = te.size_var("n")
    x = te.placeholder((4, 4), "int32", name="x")
    y = te.compute((4, 4), lambda i, j: x[i, j] + 5, name="y")

    @S.prim_func
    def outside(x: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
        out[0] = x[5]

    intrin = te.decl_tensor_intrin(y, lambda ins, outs: te.call_kernel(outside, ins[0], outs[0]))
    a = te.placeholder((8, n, 4), "int32", name="a")
    b = te.compute((8, n, 4), lambda i, m, j: a[i, m, j] + 5, name="b")
    s = te.create_schedule(b)
    i, m, _ = b.op.axis
    outer, inner = s[b].split(i, 4)
    s[b].reorder(m, outer, inner)
    s[b].tensorize(inner, intrin)
    with pytest.raises(
        te.LowerError, match=r"'x' is expected in one piece, but dimension 0 of 'a' has stride \(4 \* n\), not 4"
    ):
        te.lower(s, [a, b, n], target="X2_1204")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda view: view[1.5], "an index of 'V' is a whole number, got .*1.5.* of float32"),
        (lambda view: view[te.var("x", "float32")], "an index of 'V' is a whole number, got x of float32"),
        (lambda view: view.store(1.0, 1.5), "an index of 'V'"),
        (lambda view: view.vload(True), "an index of 'V'"),
        (lambda view: view.ptr(0.0), "an index of 'V'"),
        (lambda view: view.access_ptr("r", offset=0.5), "an offset in 'V'"),
        (lambda view: te.for_range(0, 2.5, lambda i: view.store(0.0, i)), "an end of the loop 'i'"),
        (lambda view: te.ir_builder.create().for_range(0.0, 2).__enter__(), "an end of the loop 'i'"),
    ],
)
def test_places_in_buffers_are_whole_numbers(use, words):
    with pytest.raises(te.ExpressionTypeError, match=words) as caught:
        use(te.decl_buffer((7,), name="V"))
    assert caught.value.help
