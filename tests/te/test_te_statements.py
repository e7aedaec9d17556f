"""Scans, statements of the user's, intrinsics in the place of loops, and the steps that are about memory and stores."""

import functools
import operator

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from compassc.dsl import script as S

TARGET = "X2_1204"


def run(schedule, args, given, want, simulate=True):
    module = te.lower(schedule, args, "k", target=TARGET)
    found = np.full(want.shape, 99, want.dtype)
    if len(module.functions) == 1:
        Interpreter(module.entry_func)(*given, found)
        np.testing.assert_array_equal(found, want)
    if simulate:
        found[:] = 99
        BuildManager(TARGET).build(module)(*given, found)
        np.testing.assert_array_equal(found, want)
    return module.script()


# ---------------------------------------------------------------------------------------------------------------- scan


def sums(rows=6, columns=5):
    """Running sums of rows."""
    x = te.placeholder((rows, columns), "int32", name="x")
    state = te.placeholder((rows, columns), "int32", name="state")
    init = te.compute((1, columns), lambda _, j: x[0, j], name="init")
    update = te.compute((rows, columns), lambda t, j: state[t - 1, j] + x[t, j], name="update")
    return x, update, te.scan(init, update, state, [x], name="sums")


def test_a_scan_computes_rows_from_rows_before():
    x, update, result = sums()
    s = te.create_schedule(result)
    given = np.arange(30, dtype="int32").reshape(6, 5)
    run(s, [x, result], [given], np.cumsum(given, axis=0, dtype="int32"))
    s = te.create_schedule(result)
    s[update].vectorize(update.op.axis[1])
    text = run(s, [x, result], [given], np.cumsum(given, axis=0, dtype="int32"))
    assert "T.ramp(" in text


def test_stages_between_rows_are_computed_in_the_loop():
    x = te.placeholder((5, 4), "int32", name="x")
    state = te.placeholder((5, 4), "int32", name="state")
    init = te.compute((1, 4), lambda _, j: x[0, j], name="init")
    double = te.compute((5, 4), lambda t, j: state[t - 1, j] * 2, name="double")
    update = te.compute((5, 4), lambda t, j: double[t, 3 - j] + x[t, j], name="update")
    y = te.scan(init, update, state, [x], name="y")
    z = te.compute((5, 4), lambda t, j: y[t, j] + 1, name="z")
    given = np.arange(20, dtype="int32").reshape(5, 4)
    want = given.copy()
    for t in range(1, 5):
        want[t] = want[t - 1, ::-1] * 2 + given[t]
    run(te.create_schedule(z), [x, z], [given], want + 1)
    s = te.create_schedule(z)
    s[double].compute_inline()
    run(s, [x, z], [given], want + 1)
    with pytest.raises(te.ScheduleError, match="it is the update of a scan"):
        s[update].compute_at(s[z], z.op.axis[0])
    with pytest.raises(te.ScheduleError, match="it is a scan"):
        s[y].split(y.op.scan_axis, factor=2)


def test_several_states_go_together():
    first, second = (te.placeholder((8,), "int32", name=n) for n in ("first", "second"))
    zero = te.compute((1,), lambda _: te.const(0), name="zero")
    one = te.compute((1,), lambda _: te.const(1), name="one")
    a = te.compute((8,), lambda t: second[t - 1], name="a")
    b = te.compute((8,), lambda t: first[t - 1] + second[t - 1], name="b")
    x, y = te.scan([zero, one], [a, b], [first, second], name="fibonacci")
    found, other = np.zeros(8, "int32"), np.zeros(8, "int32")
    Interpreter(te.lower(te.create_schedule(x.op), [x, y], target=TARGET).entry_func)(found, other)
    assert found.tolist() == [0, 1, 1, 2, 3, 5, 8, 13] and other.tolist() == [1, 1, 2, 3, 5, 8, 13, 21]


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [((5, 3), "int32", "other dimensions"), ((5, 4), "int16", "the types differ"), ((4, 4), "int32", "has 4 rows")],
)
def test_what_does_not_go_together_is_no_scan(shape, kind, words):
    state = te.placeholder((5, 4), "int32", name="state")
    init = te.compute((1, 4), lambda _, j: j + 0, name="init")
    update = te.compute(shape, lambda t, j: te.const(0, kind), name="update")
    with pytest.raises((te.ExpressionError, te.ExpressionTypeError), match=words):
        te.scan(init, update, state)


# -------------------------------------------------------------------------------------------------------------- extern


def test_statements_are_an_operation():
    a = te.placeholder((8,), "int32", name="a")
    b = te.compute((8,), lambda i: a[i] * 2, name="b")

    def backwards(ins, outs):
        return te.for_range(0, 8, lambda i: outs[0].store(ins[0][7 - i] + 1, i))

    c = te.extern((8,), [b], backwards, name="c")
    d = te.compute((8,), lambda i: c[i] - 1, name="d")
    s = te.create_schedule(d)
    given = np.arange(8, dtype="int32")
    run(s, [a, d], [given], given[::-1] * 2)
    with pytest.raises(te.ScheduleError, match="its statements are given"):
        s[c].split(None, factor=2)


def test_functions_of_the_ir_are_operations():
    x, y = (te.placeholder((4, 6), "int32", name=n) for n in "xy")
    k = te.reduce_axis((0, 6), "k")
    total = te.compute((4,), lambda i: te.sum(x[i, k] * y[i, k], axis=k), name="total")
    function = te.create_prim_func([x, y, total])
    a = te.placeholder((4, 6), "int32", name="a")
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1, name="b")
    c = te.extern_primfunc([a, b], function)
    d = te.compute((4,), lambda i: c[i] * 2, name="d")
    given = np.arange(24, dtype="int32").reshape(4, 6)
    run(te.create_schedule(d), [a, d], [given], (given * (given + 1)).sum(1, dtype="int32") * 2)
    with pytest.raises(te.ExpressionError, match="has 2 inputs, 1 tensors are given"):
        te.extern_primfunc([a], function)
    with pytest.raises(te.ExpressionError, match="'d' is not of the type and shape of the buffer 'y'"):
        te.extern_primfunc([a, d], function)


@S.prim_func
def add_rows(x: S.ptr("i32", "lsram"), y: S.ptr("i32", "lsram"), out: S.ptr("i32", "lsram"), n: S.i32):
    for i in range(0, n, 8):
        S.vstore(S.vload(x + i) + S.vload(y + i), out + i)


def adding(amount, called):
    """A kernel of that name, which calls a function that adds a number."""

    @S.prim_func
    def helper(x: S.i32) -> S.i32:
        return x + amount

    @S.prim_func
    def first(x: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
        out[0] = helper(x[0])

    @S.prim_func
    def second(x: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
        out[0] = helper(x[0])

    return first if called == "first" else second


@pytest.mark.parametrize(
    ("amount", "called", "wrong"),
    [(1, "first", ""), (1, "second", ""), (2, "first", "'(first|helper)'"), (2, "second", "'helper'")],
)
def test_functions_of_one_name_that_are_not_the_same_are_refused(amount, called, wrong):
    a = te.placeholder((1,), "int32", name="a")
    kernels = adding(1, "first"), adding(amount, called)
    b, c = (
        te.extern((1,), [a], lambda i, o, k=k: te.call_kernel(k, i[0], o[0]), name=f"r{k.__name__}") for k in kernels
    )
    s = te.create_schedule([b.op, c.op])
    if wrong:
        with pytest.raises(te.LowerError, match=f"two functions that are called {wrong} are not the same"):
            te.lower(s, [a, b, c], target=TARGET)
        return
    found = [np.zeros(1, "int32") for _ in range(2)]
    te.build(s, [a, b, c], TARGET)(np.array([5], "int32"), *found)
    assert [x.tolist() for x in found] == [[6], [6]]


def test_kernels_by_hand_are_called():
    a = te.placeholder((64,), "int32", name="a")
    b = te.compute((64,), lambda i: a[i] * 3, name="b")
    c = te.extern((64,), [b, b], lambda i, o: te.call_kernel(add_rows, i[0], i[1], o[0], 64), name="c")
    d = te.compute((64,), lambda i: c[i] + 1, name="d")
    given = np.arange(64, dtype="int32")
    text = run(te.create_schedule(d), [a, d], [given], given * 6 + 1)
    assert "Module.add_rows(b, b, c, 64)" in text or "add_rows(T.addr(b, 0)" in text
    wrong = te.create_schedule(te.extern((64,), [a, a], lambda i, o: te.call_kernel(add_rows, i[0], i[1], o[0], 64)).op)
    with pytest.raises(te.LowerError, match=r"the parameter 'x' of 'add_rows' is .*lsram"):
        te.lower(wrong, [a, wrong.outputs[0].output(0)], target=TARGET)
    with pytest.raises(te.ExpressionError, match="takes 4 arguments, got 3"):
        te.extern((64,), [a], lambda i, o: te.call_kernel(add_rows, i[0], i[0], o[0]))
    with pytest.raises(te.ExpressionError, match="expected a statement or an expression, got str"):
        te.extern((64,), [a], lambda i, o: "nothing")


# ----------------------------------------------------------------------------------------------------------- tensorize


@S.prim_func
def clear(out: S.ptr("i32", "lsram")):
    S.vstore(S.i32x8(0), out)


@S.prim_func
def dot_update(x: S.ptr("i8", "lsram"), y: S.ptr("i8", "lsram"), out: S.ptr("i32", "lsram")):
    out[0] = out[0] + S.vrpadd(S.vqdpa(S.i32x8(0), S.vload(x), S.vload(y)))[0]


@S.prim_func
def dot_reset(out: S.ptr("i32", "lsram")):
    out[0] = 0


def dot_of_32():
    x, y = te.placeholder((32,), "int8", name="x"), te.placeholder((32,), "int8", name="y")
    k = te.reduce_axis((0, 32), "k")
    z = te.compute((), lambda: te.sum(x[k].astype("int32") * y[k].astype("int32"), axis=k), name="z")
    return te.decl_tensor_intrin(
        z,
        lambda i, o: (None, te.call_kernel(dot_reset, o[0]), te.call_kernel(dot_update, i[0], i[1], o[0])),
        name="dot32",
    )


def product(m=4, n=6, depth=64):
    a, b = te.placeholder((m, depth), "int8", name="a"), te.placeholder((n, depth), "int8", name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k), name="c")
    s = te.create_schedule(c)
    local = s.cache_write(c, "lsram")
    for t in (a, b):
        s.cache_read(t, "lsram", [local])
    outer, inner = s[local].split(local.op.reduce_axis[0], factor=32)
    return a, b, c, s, local, outer, inner


def test_an_intrinsic_takes_the_place_of_loops():
    a, b, c, s, local, _, inner = product()
    s[local].tensorize(inner, dot_of_32())
    x, y = (np.random.default_rng(i).integers(-99, 99, n).astype("int8") for i, n in enumerate(((4, 64), (6, 64))))
    text = run(s, [a, b, c], [x, y], x.astype("int32") @ y.astype("int32").T)
    assert "dot_update" in text and "dot_reset" in text
    again = s.replayed(te.Trace.from_json(s.trace.to_json()))
    assert te.lower(again, [a, b, c], "k", target=TARGET).script() == text


def test_an_intrinsic_that_is_something_else_is_refused():
    a, b, c, s, local, outer, inner = product()
    with pytest.raises(te.ScheduleError, match="'dot32' has 1 loops, there are 2 from 'k.outer' on"):
        s[local].tensorize(outer, dot_of_32())
    with pytest.raises(te.ScheduleError, match="expected an intrinsic, got NoneType"):
        s[local].tensorize(inner, None)
    a, b, c, s, local, outer, inner = product(depth=48)
    s[local].tensorize(inner, dot_of_32())
    with pytest.raises(te.LowerError, match="is not divided"):
        te.lower(s, [a, b, c], target=TARGET)
    x, y = te.placeholder((32,), "int8", name="x"), te.placeholder((32,), "int8", name="y")
    k = te.reduce_axis((0, 32), "k")
    z = te.compute((), lambda: te.sum(x[k].astype("int32") + y[k].astype("int32"), axis=k), name="z")
    other = te.decl_tensor_intrin(z, lambda i, o: (None, o[0].store(0, 0), o[0].store(0, 0)), name="other")
    a, b, c, s, local, outer, inner = product()
    s[local].tensorize(inner, other)
    with pytest.raises(te.LowerError, match=r"the intrinsic 'other' is something else: it computes .*, the stage "):
        te.lower(s, [a, b, c], target=TARGET)


# ------------------------------------------------------------------------------------------------- memory and stores


def chain():
    a = te.placeholder((8, 8), "int32", name="a")
    b = te.compute((8, 8), lambda i, j: a[j, i] + 1, name="b")
    c = te.compute((8, 8), lambda i, j: b[i, j] * 2, name="c")
    return a, b, c, te.create_schedule(c)


GIVEN = np.arange(64, dtype="int32").reshape(8, 8)


def test_strides_are_aligned():
    a, b, c, s = chain()
    s[b].storage_align(b.op.axis[0], 8, 3)
    assert 'b = T.alloc((8, 11), "int32", "lsram")' in run(s, [a, c], [GIVEN], GIVEN.T * 2 + 2)
    for wrong, words in (
        (lambda: s[b].storage_align(b.op.axis[1], 8, 3), "the stride of the last axis 'j' is 1"),
        (lambda: s[b].storage_align(c.op.axis[0], 8, 3), "'i' is no axis of its tensor"),
        (lambda: s[b].storage_align(b.op.axis[0], 4, 4), "no stride is 4 modulo 4"),
        (lambda: s[c].storage_align(c.op.axis[0], 8, 3), "it is an output"),
    ):
        with pytest.raises(te.ScheduleError, match=words):
            wrong()


def test_stores_have_a_predicate():
    a, b, c, s = chain()
    i, j = c.op.axis
    s[c].set_store_predicate(i + j < 6)
    where = np.add.outer(np.arange(8), np.arange(8)) < 6
    text = run(s, [a, c], [GIVEN], np.where(where, GIVEN.T * 2 + 2, 99).astype("int32"))
    again = s.replayed(te.Trace.from_json(s.trace.to_json()))
    assert te.lower(again, [a, c], "k", target=TARGET).script() == text
    with pytest.raises(te.ScheduleError, match="'i' is none of its axes"):
        s[c].set_store_predicate(b.op.axis[0] < 3)


@pytest.mark.parametrize("offset", [1, te.const(3)])
def test_a_prefetch_is_a_copy_a_turn_ahead(offset):
    a, b, c, s = chain()
    s[b].prefetch(a, s[b].split(b.op.axis[0], factor=4)[0], offset)
    assert "S.async_dma_copy(" in run(s, [a, c], [GIVEN], GIVEN.T * 2 + 2)
    with pytest.raises(te.ScheduleError, match="the offset is 0, it is a number of turns, 1 or more"):
        s[c].prefetch(b, c.op.axis[0], 0)


def test_threads_around_a_stage():
    a, _, c, s = chain()
    s[c].env_threads([te.thread_axis("threadIdx.x")])
    run(s, [a, c], [GIVEN], GIVEN.T * 2 + 2, simulate=False)
    with pytest.raises(te.ScheduleError, match="is no thread axis"):
        s[c].env_threads(c.op.axis[0])


def test_groups_are_moved_together():
    a = te.placeholder((8, 8), "int32", name="a")
    tensors = [a]
    for number in range(3):
        before = tensors[-1]
        tensors.append(te.compute((8, 8), lambda i, j: before[i, j] + 1, name=f"t{number}"))  # noqa: B023 - called at once
    s = te.create_schedule(tensors[-1])
    group = s.create_group(outputs=tensors[2], inputs=a)
    group.compute_at(s[tensors[3]], tensors[3].op.axis[0])
    text = run(s, [a, tensors[3]], [GIVEN], GIVEN + 3)
    assert "t0 = T.alloc((1, 8)" in text and "t1 = T.alloc((1, 8)" in text
    again = s.replayed(te.Trace.from_json(s.trace.to_json()))
    assert te.lower(again, [a, tensors[3]], "k", target=TARGET).script() == text
    with pytest.raises(te.ScheduleError, match="no stage leads"):
        s.create_group(outputs=tensors[1], inputs=tensors[2])


def test_the_steps_of_lowering_have_names():
    a, b, c, s = chain()
    s[b].compute_at(s[c], c.op.axis[0])
    bounds = te.InferBound(s.normalize())
    assert "b: i in [i, (i + 1))" in str(bounds)
    assert "for i in T.serial(0, 8, 1, nonneg=True):" in te.ScheduleOps(s.normalize(), bounds, [a, c]).script()


def scaled(factor, n=4):
    x = te.placeholder((n,), "int32", name="x")
    y = te.compute((n,), lambda i: x[i] * factor, name="y")
    return te.decl_tensor_intrin(
        y, lambda ins, outs: te.for_range(0, n, lambda i: outs[0].store(ins[0][n - 1 - i] * factor, n - 1 - i))
    )


def test_intrinsics_of_one_name_are_told_apart():
    a = te.placeholder((8,), "int32", name="a")
    b = te.compute((8,), lambda i: a[i] * 2, name="b")
    c = te.compute((8,), lambda i: b[i] * 3, name="c")
    s = te.create_schedule(c)
    for stage, factor in ((s[b], 2), (s[c], 3)):
        stage.tensorize(stage.split(stage.op.axis[0], 4)[1], scaled(factor))
    given = np.arange(8, dtype="int32")
    run(s, [a, c], [given], given * 6)


def test_conditions_around_an_intrinsic_hold():
    a = te.placeholder((6, 8), "int32", name="a")
    b = te.compute((6, 8), lambda i, j: a[i, j] * 2, name="b")
    i, j = b.op.axis
    s = te.create_schedule(b)
    s[b].tensorize(s[b].split(j, 4)[1], scaled(2))
    s[b].set_store_predicate(i < 3)
    given = np.arange(48, dtype="int32").reshape(6, 8)
    run(s, [a, b], [given], np.where(np.arange(6)[:, None] < 3, given * 2, 99))
    s[b].set_store_predicate(j < 3)
    with pytest.raises(te.LowerError, match="its store predicate is about single elements"):
        te.lower(s, [a, b], target=TARGET)
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((6,), lambda i: te.sum(a[i, k], axis=k, where=k > 2), name="c")
    x = te.placeholder((8,), "int32", name="x")
    r = te.reduce_axis((0, 8), "r")
    y = te.compute((), lambda: te.sum(x[r], axis=r), name="y")
    whole = te.decl_tensor_intrin(y, lambda ins, outs: (None, outs[0].store(0, 0), outs[0].store(ins[0][0], 0)))
    s = te.create_schedule(c)
    s[c].tensorize(c.op.reduce_axis[0], whole)
    with pytest.raises(te.LowerError, match="is something else"):
        te.lower(s, [a, c], target=TARGET)


def test_nothing_is_computed_inside_of_an_intrinsic():
    a = te.placeholder((8,), "int32", name="a")
    b = te.compute((8,), lambda i: a[i] + 1, name="b")
    c = te.compute((8,), lambda i: b[i] * 2, name="c")
    s = te.create_schedule(c)
    _, inner = s[c].split(c.op.axis[0], 4)
    s[c].tensorize(inner, scaled(2))
    with pytest.raises(te.ScheduleError, match="an intrinsic does the loop 'i.inner' of 'c' and those inside"):
        s[b].compute_at(s[c], inner)
    s = te.create_schedule(c)
    _, inner = s[c].split(c.op.axis[0], 4)
    s[b].compute_at(s[c], inner)
    with pytest.raises(te.ScheduleError, match="'b' is computed at 'i.inner', inside of it"):
        s[c].tensorize(inner, scaled(2))


def test_a_step_that_is_refused_changes_nothing():
    a = te.placeholder((8, 8), "int32", name="a")
    b = te.compute((8, 8), lambda i, j: a[i, j] + 1, name="b")
    i, j = b.op.axis
    s = te.create_schedule(b)
    s[b].vectorize(j)
    before = repr(s[b]), len(s[b].relations), len(s.stages), s[b].annotations
    with pytest.raises(te.ScheduleError, match="annotated already"):
        s[b].tile(i, j, 2, 2)
    with pytest.raises(te.ScheduleError):
        s[b].prefetch(a, te.reduce_axis((0, 4), "other"))
    with pytest.raises(te.ScheduleError):
        s[b].parallel(te.reduce_axis((0, 4), "other"))
    assert (repr(s[b]), len(s[b].relations), len(s.stages), s[b].annotations) == before


def test_rows_of_a_scan_are_not_read_before_they_arrive():
    a = te.placeholder((6, 8), "int32", name="a")
    state = te.placeholder((6, 8), "int32", name="state")
    init = te.compute((1, 8), lambda _, j: a[0, j], name="init")
    update = te.compute((6, 8), lambda t, j: state[t - 1, j] * 3 - a[t, j], name="update")
    c = te.scan(init, update, state, name="c")
    s = te.create_schedule(c)
    local = s.cache_write(update, "lsram")
    s[local].compute_at(s[update], update.op.axis[0])
    s[local].double_buffer()
    given = np.arange(48, dtype="int32").reshape(6, 8)
    rows = [given[0]]
    for row in given[1:]:
        rows.append(rows[-1] * 3 - row)
    run(s, [a, c], [given], np.array(rows))


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
def test_an_intrinsic_of_whole_sums_takes_the_place_of_all_their_loops(target):
    def sums():
        a, k = te.placeholder((4, 8), "int32", name="a"), te.reduce_axis((0, 8), name="k")
        b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="b")
        return te.create_schedule(b), a, b, k

    def intrinsic(size):
        x, k = te.placeholder((2, size), "int32", name="x"), te.reduce_axis((0, size), name="k")
        y = te.compute((2,), lambda i: te.sum(x[i, k], axis=k), name="y")

        def added(ins, outs):
            rows = [functools.reduce(operator.add, [ins[0][row, i] for i in range(size)]) for row in range(2)]
            return [outs[0].store(value, row) for row, value in enumerate(rows)]

        return te.decl_tensor_intrin(y, added)

    s, a, b, k = sums()
    _, rows = s[b].split(b.op.axis[0], factor=2)
    s[b].tensorize(rows, intrinsic(8))
    given, found = np.arange(32, dtype="int32").reshape(4, 8), np.zeros(4, "int32")
    te.build(s, [a, b], target)(given, found)
    np.testing.assert_array_equal(found, given.sum(1))
    s, a, b, k = sums()
    outer, inner = s[b].split(k, factor=4)
    _, rows = s[b].split(b.op.axis[0], factor=2)
    s[b].reorder(outer, rows, inner)
    with pytest.raises(te.ScheduleError, match=r"makes whole sums, and 'k.outer' outside of it is reduced over, too"):
        s[b].tensorize(rows, intrinsic(4))
