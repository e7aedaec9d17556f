"""Hybrid scripts: what is built of them computes what the function computes as Python, whatever a schedule does."""
# ruff: noqa: F821 - the names of hybrid scripts are known where they are parsed

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import targets, te
from compassc.ir import stmts as S
from compassc.ir.tensor_stmts import ProducerStore
from tests.choosing import some

FACTOR, TABLE = 3, ((1, 2), (4, 8))


@te.hybrid.script
def outer(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            assert i < 8, "no such row"
            c[i, j] = a[i] * b[j]
    return c


def means(a, b):
    """Variables of one element, memory, steps written out, captured numbers, loops that do not begin at 0."""
    c = output_tensor((6,), "float32")
    three = 3.0
    for i in parallel(6):
        total = 0.0
        row = allocate((3,), "float32")
        for j in range(3):
            row[j] = a[i + j] * FACTOR
        for j in unroll(0, 3):
            total += row[j]
        c[i] = total / three
    for i in vectorize(2, 4):
        c[i] -= b[i]
    for k in const_range(2):
        c[k] = c[k] + TABLE[k][1]
    return c


def choices(a, b):
    """Conditions of all forms, two results."""
    c = output_tensor((8,), "float32")
    d = output_tensor((8,), "int32")
    for i in range(len(a)):
        if a[i] > 0.5 and not b[i] < 0.25 or i == 3:
            c[i] = min(b[i], a[i])
            d[i] = i % 3
        elif 1 < i <= 5:
            d[i] = -i
        else:
            c[i] = max(a[i], b[i], 0.5)
            d[i] = int32(a[i] * 10.0) // 2
    return c, d


def functions(a, b):
    c = output_tensor((8,), "float32")
    c[0], c[1] = exp(a[0]), sqrt(a[1])
    c[2] = power(a[2], b[2])
    c[3] = tanh(a[3]) + sigmoid(b[3])
    c[4] = log(a[4] + 1.0)
    c[5] = float32(popcount(5)) if len(a.shape) > 1 else abs(-a[5])
    c[6] = round(a[6] * 4.0)
    return c


def calls(a, b):
    c = outer(a, b)
    d = output_tensor((8, 8), "float32")
    for i in range(8):
        for j in range(8):
            d[i, j] = c[j, i] + i * j
    return d


def variables(a, b, n):
    """Variables and parameters that change in loops and conditions, that swap, and that loops end at."""
    c = output_tensor((8,), "float32")
    x, y = 1.0, 2.0
    pair = (x, x + b[0])
    if a[0] > 2.0:
        n = 5
    for i in range(8):
        x, y = y, (x + y) * 0.5
        n += 1
        c[i] = x * a[i] + n
    c[0], c[1] = c[1], c[0]
    last = 2
    for i in range(last):
        last = 4
        c[i] = c[i] * pair[0] + pair[1] + (2 and 3)
    c[7] = last
    return c


def built(tensors, a, b, schedule=None):
    """What the host computes of tensors."""
    listed = tensors if isinstance(tensors, list) else [tensors]
    made = schedule or te.create_schedule([t.op for t in listed])
    found = [np.zeros([int(n.value) for n in t.shape], str(t.dtype)) for t in listed]
    targets.build(made, [A, B, *listed], "llvm")(a, b, *found)
    return found


A, B = te.placeholder((8,), name="a"), te.placeholder((8,), name="b")


@pytest.fixture(scope="module")
def arrays():
    values = np.random.default_rng(1)
    return values.random(8, "f4"), values.random(8, "f4")


@pytest.mark.parametrize("written", [outer, means, choices, functions, calls], ids=lambda f: f.__name__)
def test_what_is_built_is_what_python_computes(written, arrays):
    script = te.hybrid.script(written)
    expected = script(*(x.copy() for x in arrays))
    tensors = script(A, B)
    found = built(tensors, *arrays)
    for mine, theirs in some(list(zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True))):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize("written", [outer, means, choices], ids=lambda f: f.__name__)
def test_a_schedule_is_a_script_again(written, arrays, tmp_path):
    """The text of what is built computes the same, as Python and of tensors, also when it comes from a file."""
    script = te.hybrid.script(written)
    tensors = script(A, B)
    listed = tensors if isinstance(tensors, list) else [tensors]
    schedule = te.create_schedule(listed[0].op)
    if written is outer:
        schedule[listed[0]].split(listed[0].op.axis[0], 3)
    module = te.hybrid.build(schedule, [A, B], listed, "again")
    module.save(str(tmp_path / "text"))
    other = te.hybrid.HybridModule()
    with pytest.raises(CompassError, match="no script yet"):
        other(*arrays)
    other.load(str(tmp_path / "text"))
    assert other.get_source() == module.get_source() and other.name == "again"
    expected = script(*(x.copy() for x in arrays))
    for run in (module, other):
        made = run(*(x.copy() for x in arrays))
        for mine, theirs in zip(
            made if isinstance(made, tuple) else (made,), expected if isinstance(expected, tuple) else (expected,)
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    np.testing.assert_allclose(built(module(A, B), *arrays)[0], built(tensors, *arrays)[0])


def _tiled(s, c):
    i, j = c.op.axis
    outer_i, inner_i = s[c].split(i, 3)
    s[c].reorder(outer_i, j, inner_i)
    s[c].vectorize(inner_i)


def _turned(s, c):
    i, j = c.op.axis
    s[c].reorder(j, i)
    s[c].parallel(j)


def _fused(s, c):
    s[c].split(s[c].fuse(*c.op.axis), nparts=5)


@pytest.mark.parametrize("steps", [_tiled, _turned, _fused], ids=lambda f: f.__name__)
def test_steps_change_loops_and_no_result(steps, arrays):
    c = outer(A, B)
    s = te.create_schedule(c.op)
    steps(s, c)
    np.testing.assert_array_equal(built(c, *arrays, s)[0], np.outer(*arrays))


def test_loops_stay_in_order_where_turns_depend_on_each_other():
    @te.hybrid.script
    def sums(a, b):
        c = output_tensor((4, 4), "float32")
        for i in range(1, 4):
            for j in range(3):
                c[i, j] = c[i - 1, j + 1] + a[i]
        return c

    c = sums(A, B)
    s = te.create_schedule(c.op)
    s[c].reorder(c.op.axis[1], c.op.axis[0])
    with pytest.raises(CompassError, match="turns of its loops write elements of 'c' that others touch"):
        te.lower(s, [A, B, c], target="llvm")


def test_numbers_are_variables_where_they_change(arrays):
    script = te.hybrid.script(variables)
    expected = script(*(x.copy() for x in arrays), 3)
    np.testing.assert_allclose(built(script(A, B, 3), *arrays)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("step", ["split", "fuse", "reorder"])
def test_loops_that_end_at_others_are_changed_from_the_inside(step, arrays):
    def below(a, b):
        c = output_tensor((8, 8), "float32")
        for i in range(8):
            for j in range(8):
                c[i, j] = b[j]
        for i in range(8):
            for j in range(i + 1):
                c[i, j] = a[i] * j
        return c

    script = te.hybrid.script(below)
    tensor = script(A, B)
    outer, inner = tensor.op.axis[2:]
    schedule = te.create_schedule(tensor.op)
    schedule[tensor].split(inner, 3)
    expected = script(*(x.copy() for x in arrays))
    np.testing.assert_allclose(built(tensor, *arrays, schedule)[0], expected, rtol=1e-5)
    stage = (changed := te.create_schedule(tensor.op))[tensor]
    apply = {"split": lambda: stage.split(outer, 3), "fuse": lambda: stage.fuse(outer, inner)}
    apply.get(step, lambda: stage.reorder(inner, outer))()
    with pytest.raises(CompassError, match="the turns of the loop 'j' depend on 'i'"):
        built(tensor, *arrays, changed)


def test_scripts_stand_between_other_stages(arrays):
    a, b = arrays
    plus = te.compute((8,), lambda i: A[i] + B[i], name="plus")
    product = outer(plus, B)
    last = te.compute((8, 8), lambda i, j: product[i, j] + 1.0, name="last")
    np.testing.assert_allclose(built(last, a, b)[0], np.outer(a + b, b) + 1, rtol=1e-6)


def test_what_a_script_asserts_is_raised():
    n = te.size_var("n")
    x = te.placeholder((n,), name="x")
    c = outer(x, B)
    run = targets.build(te.create_schedule(c.op), [x, B, c], "llvm")
    run(np.ones(8, "f4"), np.ones(8, "f4"), np.zeros((8, 8), "f4"))
    with pytest.raises(AssertionError, match=r"test_hybrid_scripts\.py:\d+:\d+: no such row"):
        run(np.ones(9, "f4"), np.ones(8, "f4"), np.zeros((9, 8), "f4"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("while True: pass", "no while statements"),
        ("c[0] = unknown", "'unknown' has no value here"),
        ("c[0] = exp(a)", "expected a value or a number"),
        ("c[0] = a[0].sum", "there is no 'sum' of this"),
        ("for i in zip(3): pass", "this makes no loop"),
        ("for i in const_range(n): pass", "known while the script is parsed"),
        ("c[0] = open('x')", "cannot call 'open'"),
        ("c[0, 0] = 1.0", "1 dimensions, got 2 indices"),
        ("if a[0]: c[0] = 1.0", "a condition is a bool"),
        ("for i in range(4): return c", "a script returns at its end"),
        ("d = output_tensor((4,), 'float32')", "does not return all"),
        ("i = 0", ""),
        ("for i in range(4): c[i] = 1.0\n    c[0] = c[i]", "'i' has no value here"),
        ("d = c\n    for i in range(4): d = a", "would stand for something else"),
        ("s = 0\n    for i in range(4): s = s + a[i]", "int32 by its first value, and gets float32"),
        ("FACTOR = FACTOR + 1", "'FACTOR' has no value here"),
        ("c[-1] = 1.0", "the element -1 is outside of a size of 4"),
        ("c[0] = a[8]", "the element 8 is outside"),
    ],
)
def test_what_is_no_script_is_refused_at_its_line(line, message, tmp_path):
    from importlib.util import module_from_spec, spec_from_file_location

    file = tmp_path / "written.py"
    file.write_text(
        f"FACTOR = 3\ndef written(a, n):\n    c = output_tensor((4,), 'float32')\n    {line}\n    return c\n"
    )
    spec = spec_from_file_location("written", file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    script = te.hybrid.script(module.written)
    if not message:
        assert script(A, te.size_var("n")).op.num_outputs == 1
        return
    with pytest.raises(CompassError, match=message) as refused:
        script(A, te.size_var("n"))
    if "return all" not in message:
        last = 4 + line.count("\n")
        assert str(refused.value.span).startswith((f"{file}:4:", f"{file}:{last}:"))


def test_the_body_is_on_tensors():
    """What an operation says of itself reads and stores tensors, and keeps assertions; what is built has buffers."""

    @te.hybrid.script
    def outer(a, b):
        c = output_tensor((4, 3), "float32")
        for i in range(4):
            for j in range(3):
                assert i < a.shape[0], "too long"
                c[i, j] = a[i] * b[j]
        return c

    n = te.var("n")
    a, b = te.placeholder((n,), name="a"), te.placeholder((3,), name="b")
    c = outer(a, b)
    (row,) = c.op.body
    (column,) = row.body
    holds, store = column.body
    assert isinstance(holds, S.AssertStmt) and holds.message.value == "too long"
    assert isinstance(store, ProducerStore) and store.producer == c
    assert [r.producer for r in (store.value.a, store.value.b)] == [a, b]
    assert all(isinstance(s, S.BufferStore) for s in c.op.statements[0].body[0].body[1:])
