"""Steps of schedules: what each makes of a loop nest, what is refused, traces, and runs on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from tests.te.random_schedules import replays

TARGET = "X2_1204"


def chain():
    """a -> b = a + 1 -> c = b * 2, of 8 x 4."""
    a = te.placeholder((8, 4), "int32", name="a")
    b = te.compute((8, 4), lambda i, j: a[i, j] + 1, name="b")
    c = te.compute((8, 4), lambda i, j: b[i, j] * 2, name="c")
    return a, b, c, te.create_schedule(c.op)


def body(schedule, args):
    """The statements of the plain kernel, without what every kernel begins with."""
    text = te.lower(schedule, args, "k", target=TARGET, simple_mode=True).script()
    lines = text.split("-> T.void:\n")[1].rstrip().splitlines()
    return [line[8:] for line in lines if "match_buffer" not in line]


def test_the_plain_loops():
    a, _, c, s = chain()
    assert body(s, [a, c]) == [
        'b = T.alloc((8, 4), "int32", "lsram")',
        'if (S.get_local_id(dtype="int32") == 0):',
        "    for i in T.serial(0, 8, 1, nonneg=True):",
        "        for j in T.serial(0, 4, 1, nonneg=True):",
        "            b[i, j] = (a_1[i, j] + 1)",
        "    for i_1 in T.serial(0, 8, 1, nonneg=True):",
        "        for j_1 in T.serial(0, 4, 1, nonneg=True):",
        "            c_1[i_1, j_1] = (b[i_1, j_1] * 2)",
    ]


def test_compute_at_computes_what_one_turn_needs():
    a, b, c, s = chain()
    s[b].compute_at(s[c], c.op.axis[0])
    lines = body(s, [a, c])
    assert '        b = T.alloc((1, 4), "int32", "lsram")' in lines
    assert "            b[0, j] = (a_1[i, j] + 1)" in lines
    assert str(te.infer_bounds(s)).splitlines()[1] == "b: i in [i, (i + 1)), j in [0, 4); loops i: 1, j: 4"


def test_compute_inline_leaves_no_stage():
    a, b, c, s = chain()
    s[b].compute_inline()
    assert body(s, [a, c])[-1].strip() == "c_1[i, j] = ((a_1[i, j] * 2) + 2)"


def test_split_guards_what_does_not_divide():
    a, b, c, s = chain()
    s[b].compute_inline()
    s[c].split(c.op.axis[0], factor=3)
    assert "(((i_outer * 3) + i_inner) < 8)" in "\n".join(body(s, [a, c]))
    a, b, c, s = chain()
    s[c].split(c.op.axis[0], factor=4)
    assert "< 8" not in "\n".join(body(s, [a, c]))


def test_threads_share_stages_out_with_barriers():
    a, b, c, s = chain()
    for t in (b, c):
        s[t].bind(t.op.axis[0], te.thread_axis("threadIdx.x"))
    lines = body(s, [a, c])
    assert lines[0] == 'b = T.alloc((8, 4), "int32", "shared")'
    assert 'S.barrier(dtype="void")' in lines
    assert sum("S.get_local_size" in line for line in lines) == 2
    outer, _ = s[b].split(b.op.axis[1], nparts=2)
    with pytest.raises(te.ScheduleError, match="bound to threadIdx.x already"):
        s[b].bind(outer, te.thread_axis("threadIdx.x"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda a, b, c, s: s[c].split(c.op.axis[0]), "one of factor and nparts"),
        (lambda a, b, c, s: s[c].split(c.op.axis[0], factor=0), "no number of turns"),
        (lambda a, b, c, s: s[c].split(b.op.axis[0], factor=2), "not one of its axes"),
        (lambda a, b, c, s: (s[c].split(c.op.axis[0], factor=2), s[c].unroll(c.op.axis[0])), "split or fused already"),
        (lambda a, b, c, s: s[c].fuse(c.op.axis[0], c.op.axis[0]), "no neighbours"),
        (lambda a, b, c, s: s[c].reorder(c.op.axis[0], c.op.axis[0]), "given twice"),
        (lambda a, b, c, s: s[a].split(None, factor=2), "given to the kernel"),
        (lambda a, b, c, s: s[c].compute_inline(), "it is an output"),
        (lambda a, b, c, s: s[c].compute_at(s[b], b.op.axis[0]), "'b' does not read what it computes"),
        (lambda a, b, c, s: s[b].compute_at(s[b], b.op.axis[0]), "does not read"),
        (lambda a, b, c, s: s[c].bind(c.op.axis[0], c.op.axis[1]), "is a thread axis"),
        (lambda a, b, c, s: s[c].set_scope("lsram"), "global memory"),
        (lambda a, b, c, s: s[b].set_scope("gsram"), "none of"),
        (lambda a, b, c, s: s.cache_read(a, "lsram", [c]), "does not read it"),
        (lambda a, b, c, s: s.rfactor(c, c.op.axis[0]), "not reduced over"),
        (lambda a, b, c, s: s[b].tensorize(b.op.axis[0], None), "expected an intrinsic"),
        (lambda a, b, c, s: (s[c].vectorize(c.op.axis[0]), s[c].split(c.op.axis[0], factor=2)), "annotated already"),
        (lambda a, b, c, s: s[te.placeholder((1,))], "has no stage"),
        (lambda a, b, c, s: te.Trace.from_json("{}"), "not a trace"),
    ],
)
def test_wrong_steps_name_stage_and_reason(wrong, words):
    with pytest.raises(te.ScheduleError, match=words) as caught:
        wrong(*chain())
    assert caught.value.span is not None and caught.value.span.file == __file__


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda a, b, c, s: te.lower(s, [a], target=TARGET), "the output 'c' is not among"),
        (lambda a, b, c, s: te.lower(s, [c], target=TARGET), "read but not among the arguments"),
        (lambda a, b, c, s: te.lower(s, [a, a, c], target=TARGET), "given twice"),
        (
            lambda a, b, c, s: (s[b].set_scope("global"), te.lower(s, [a, c], target=TARGET)),
            "no parameter of the kernel",
        ),
        (
            lambda a, b, c, s: (
                s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.y")),
                te.lower(s, [a, c], target=TARGET),
            ),
            "there is no threadIdx.y",
        ),
    ],
)
def test_schedules_without_a_program(wrong, words):
    with pytest.raises(te.LowerError, match=words):
        wrong(*chain())


def test_a_trace_is_replayed_and_reads_as_python():
    a, b, c, s = chain()
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    cached = s.cache_read(a, "lsram", [b])
    s[cached].compute_at(s[c], outer)
    s[c].unroll(inner)
    assert str(s.trace).splitlines() == [
        's["c"].split(s["c"]["i"], factor=4)',
        's["b"].compute_at(s["c"], s["c"]["i.outer"])',
        's.cache_read(s["a"].op.output(0), "lsram", [s["b"].op.output(0)])',
        's["a.lsram"].compute_at(s["c"], s["c"]["i.outer"])',
        's["c"].unroll(s["c"]["i.inner"])',
    ]
    again = s.replayed(te.Trace.from_json(s.trace.to_json()))
    assert te.lower(again, [a, c], target=TARGET).script() == te.lower(s, [a, c], target=TARGET).script()


def test_a_replay_says_which_step_does_not_fit():
    _, _, c, s = chain()
    _, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].unroll(inner)
    damaged = te.Trace.from_json(s.trace.to_json().replace('"i.inner"', '"k"'))
    with pytest.raises(te.ScheduleError, match="step 1, unroll: stage 'c' has no axis 'k'"):
        s.replayed(damaged)


def test_traces_keep_ranges_of_threads_types_and_operations():
    n = te.size_var("n")
    a = te.placeholder((8, 8), "int32", name="a")
    b = te.compute((8, 8), lambda i, j: a[i, j] + 1, name="b")
    s = te.create_schedule(b)
    i, j = b.op.axis
    s.cache_write(b.op, "shared")
    s[b].split(i, nparts=np.int64(2))
    s[b].bind(s[b]["i.outer"], te.thread_axis((0, 2), "threadIdx.x"))
    s[b].env_threads([te.thread_axis((n, n + 4), "blockIdx.x")])
    wanted = (j.astype("int64") % te.const(2, "int64")).equal(0)
    s[b].set_store_predicate(te.any(te.all(i != j, te.const(3) < j), ~wanted))
    assert 's["b"]["i.outer"], te.thread_axis((0, 2), "threadIdx.x"))' in str(s.trace)
    json, python = replays(s)
    for again in (json, python):
        assert again["b"].annotations[again["b"]["i.outer"]].thread.dom.extent.value == 2
        assert str(again["b"].environment) == str(s["b"].environment)
        assert te.lower(again, [a, b], target=TARGET).script() == te.lower(s, [a, b], target=TARGET).script()
    with pytest.raises(te.ScheduleError, match="the value of 'unroll_explicit' is a number or a word, got object"):
        s[b].pragma(s[b]["i.inner"], "unroll_explicit", object())


def test_tuples_reduce_together():
    a = te.placeholder((3, 5), "int32", name="a")
    k = te.reduce_axis((0, 5), "k")

    def pick(x, y):
        left = te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0]))
        return te.Select(left, x[0], y[0]), te.Select(left, x[1], y[1])

    argmax = te.comm_reducer(pick, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    index, value = te.compute((3,), lambda i: argmax((k.var, a[i, k]), axis=k), name="best")
    s = te.create_schedule(index.op)
    given = np.array([[1, 5, 5, 2, 0], [-3, -1, -2, -1, -9], [7, 7, 7, 7, 7]], "int32")
    for steps in ("none", "rfactor"):
        if steps == "rfactor":
            s.rfactor(index, s[index].split(k, factor=2)[0])
        got, most = np.zeros(3, "int32"), np.zeros(3, "int32")
        Interpreter(te.lower(s, [a, index, value], target=TARGET).entry_func)(given, got, most)
        assert (got == given.argmax(1)).all() and (most == given.max(1)).all()


def test_floor_division_is_pythons():
    a = te.placeholder((9,), "int32", name="a")
    q = te.compute((9,), lambda i: a[i] // 3, name="q")
    r = te.compute((9,), lambda i: a[i] % 3, name="r")
    s = te.create_schedule([q.op, r.op])
    given, x, y = np.arange(-4, 5, dtype="int32"), np.zeros(9, "int32"), np.zeros(9, "int32")
    Interpreter(te.lower(s, [a, q, r], target=TARGET).entry_func)(given, x, y)
    assert (x == given // 3).all() and (y == given % 3).all()


def test_a_matmul_with_all_steps_runs_on_the_simulator():
    m, n, depth = 17, 23, 31
    a = te.placeholder((m, depth), "int8", name="a")
    b = te.placeholder((depth, n), "int8", name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="c")
    s = te.create_schedule(c)
    local = s.cache_write(c, "local")
    rows = s.cache_read(a, "lsram", [local])
    outer, turn, _, lanes = s[c].tile(*c.op.axis, 4, 8)
    s[local].compute_at(s[c], turn)
    s[rows].compute_at(s[c], outer)
    s[c].bind(outer, te.thread_axis("threadIdx.x"))
    s[c].vectorize(lanes)
    ko, ki = s[local].split(k, factor=4)
    s[local].reorder(ko, ki, *local.op.axis)
    s[local].vectorize(local.op.axis[1])
    run = BuildManager(TARGET).build(te.lower(s, [a, b, c], name="matmul", target=TARGET))
    draw = np.random.default_rng(0)
    x, y = (draw.integers(-128, 128, shape).astype("int8") for shape in ((m, depth), (depth, n)))
    found = np.zeros((m, n), "int32")
    run(x, y, found)
    assert (found == x.astype("int32") @ y.astype("int32")).all()


def test_functions_of_floats_become_vector_operations():
    a = te.placeholder((1000,), name="a")
    c = te.compute((1000,), lambda i: te.exp(a[i]) * te.sigmoid(a[i]), name="c")
    s = te.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].vectorize(inner)
    s[c].bind(outer, te.thread_axis("threadIdx.x"))
    module, build = te.lower(s, [a, c], name="k", target=TARGET), BuildManager(TARGET)
    text = build.lower(module).script()
    assert "a_part: T.float32x8 = a[T.ramp((i_outer * 8), 1, 8)]" in text and "S.exp(a_part, " in text
    x, y = np.linspace(-3, 3, 1000, dtype="float32"), np.zeros(1000, "float32")
    build.build(module)(x, y)
    np.testing.assert_allclose(y, np.exp(x) / (1 + np.exp(-x)), rtol=1e-5)
