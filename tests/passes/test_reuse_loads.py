"""Loads that would give the same again are made once, and never across what may change them."""

from __future__ import annotations

import re

import numpy as np

from compassc import pass_manager, te
from compassc.analysis.interpret import Interpreter
from compassc.ir.text import parse_module

TARGET = "X2_1204"


def reused(text: str):
    """The module of a text after the pass."""
    return pass_manager.run_pipeline(("ReuseLoads",), parse_module(text))


def tile(rows, columns):
    a, b = te.placeholder((rows, 64), "int8", name="a"), te.placeholder((columns, 64), "int8", name="b")
    k = te.reduce_axis((0, 64), "k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k))
    s = te.create_schedule(c)
    local = s.cache_write(c, "lsram")
    for t in (a, b):
        s.cache_read(t, "lsram", [local])
    i, j = local.op.axis
    k_out, k_in = s[local].split(local.op.reduce_axis[0], factor=32)
    s[local].reorder(k_out, i, j, k_in)
    for axis in (i, j):
        s[local].unroll(axis)
    s[local].vectorize(k_in)
    return te.lower(s, [a, b, c], "k", TARGET)


def test_a_tile_of_accumulators_loads_each_row_and_each_column_once():
    module = tile(3, 5)
    loads = re.findall(r"[ab]_lsram\[[^\]]*T\.ramp", module.script())
    assert len(loads) == 3 + 5
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (n, 64), dtype="int8") for n in (3, 5))
    c = np.zeros((3, 5), "int32")
    Interpreter(module.entry_func)(a, b, c)
    assert np.array_equal(c, a.astype("int32") @ b.astype("int32").T)


def body(*lines: str) -> str:
    return "\n".join(
        [
            "# compassc IR 1",
            f'@I.module(target="{TARGET}", entry="k")',
            "class Module:",
            "    @T.func",
            '    def k(x: T.ptr("int32", "global"), y: T.ptr("int32", "global")) -> T.void:',
            '        x_1 = T.match_buffer(x, (64,), "int32")',
            '        y_1 = T.match_buffer(y, (64,), "int32")',
            '        p = T.alloc((64,), "int32", "lsram")',
            '        q = T.alloc((64,), "int32", "lsram")',
            *(f"        {line}" for line in lines),
            "",
        ]
    )


def count(array: str, *lines: str) -> int:
    """How many loads of an array there are, and how they stand."""
    made = reused(body(*lines)).script()
    return len(re.findall(rf"\b{array}\w*\[[^\]]*\](?! =)", made))


LOAD = ["q[{}] = (p[0] * 3)", "q[{}] = (p[0] * 5)"]
BETWEEN = {
    "q[7] = 1": 1,
    "p[9] = 1": 2,
    "S.barrier(dtype=\"void\")": 2,
    "S.wait_events(1, dtype=\"void\")": 2,
    "S.dma_copy(T.addr(p, 0), T.addr(x, 0), 64, 64, 64, 64, dtype=\"void\")": 2,
}  # fmt: skip


def test_what_may_change_an_element_is_not_crossed():
    for line, loads in BETWEEN.items():
        assert count("p", LOAD[0].format(1), line, LOAD[1].format(2)) == loads, line
    assert count("x", "q[0] = x_1[0]", "p[0] = x_1[0]") == 1
    assert count("x", "q[0] = x_1[0]", "y_1[0] = 1", "p[0] = x_1[0]") == 2  # they may be the same memory


def test_loads_that_no_turn_changes_stand_before_the_loop():
    def inside(*lines):
        loop = ["for i in T.serial(0, 4, 1, nonneg=True):", *(f"    {line}" for line in lines)]
        made = reused(body(*loop)).script().splitlines()
        return [line.strip() for line in made if "p[" in line and line.startswith(" " * 12)]

    assert not inside("q[i] = p[5]")
    assert inside("q[i] = p[i]")
    assert inside("q[i] = p[5]", "p[i] = 1")
    assert inside("q[i] = p[5]", 'S.barrier(dtype="void")')


def test_a_loop_that_may_have_no_turn_keeps_its_loads():
    loop = ["for i in T.serial(0, x_1[0], 1, nonneg=True):", "    q[i] = p[5]"]
    made = reused(body(*loop)).script().splitlines()
    assert any("p[5]" in line and line.startswith(" " * 12) for line in made)


def test_a_statement_makes_equal_loads_once():
    assert count("p", "q[0] = (p[3] + (p[3] * p[4]))") == 2


def test_dear_numbers_that_all_lanes_have_are_computed_once_and_before_the_loop():
    x = te.placeholder((8, 256), name="x")
    total = te.compute((8,), lambda i: x[i, 0] + x[i, 1], name="total")
    scale = te.compute((8,), lambda i: 1.0 / (total[i] + 1.0), name="scale")
    y = te.compute((8, 256), lambda i, j: x[i, j] * scale[i], name="y")
    s = te.create_schedule(y)
    s[scale].compute_inline()
    s[total].compute_at(s[y], y.op.axis[0])
    s[y].vectorize(s[y].split(y.op.axis[1], factor=64)[1])
    module = te.lower(s, [x, y], "k", TARGET)
    lines = module.script().splitlines()
    (root,) = [n for n, line in enumerate(lines) if "T.div" in line]
    loop = next(n for n, line in enumerate(lines) if "for j_outer" in line)
    assert root < loop
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 1, (8, 256)).astype("float32"), np.zeros((8, 256), "float32")
    Interpreter(module.entry_func)(a, b)
    assert np.allclose(b, a / (a[:, :1] + a[:, 1:2] + 1), rtol=1e-5)


def products(kind: str) -> tuple[te.Schedule, list[te.Tensor]]:
    """Four rows by four columns, which share the elements that they are made of."""
    a, b = te.placeholder((4, 64), kind, name="a"), te.placeholder((4, 64), kind, name="b")
    k, wide = te.reduce_axis((0, 64), "k"), "float32" if kind == "float16" else "int32"
    c = te.compute((4, 4), lambda i, j: te.sum(a[i, k].astype(wide) * b[j, k].astype(wide), axis=k))
    s = te.create_schedule(c)
    local = s.cache_write(c, "lsram")
    i, j = local.op.axis
    k_out, k_in = s[local].split(local.op.reduce_axis[0], factor=16)
    s[local].reorder(k_out, i, j, k_in)
    s[local].unroll(i)
    s[local].unroll(j)
    s[local].vectorize(k_in)
    return s, [a, b, c]


def test_what_is_loaded_is_converted_once():
    s, tensors = products("int16")
    module = te.lower(s, tensors, "k", TARGET)
    converted = re.findall(r"S\.cast\(", module.script())
    assert len(converted) == 4 + 4, "not once for each of the 16 products"
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (4, 64)).astype("int16") for _ in "ab")
    c = np.zeros((4, 4), "i4")
    Interpreter(module.entry_func)(a, b, c)
    assert np.array_equal(c, a.astype("i4") @ b.astype("i4").T)


def test_what_is_also_used_as_it_is_is_loaded_once():
    text = body(
        "for i in T.serial(0, 8, 1, nonneg=True):",
        '    q[i] = T.cast(T.cast(p[i], "int16"), "int32")',
        '    y_1[i] = T.cast(T.cast(p[i], "int16"), "int32") + p[i]',
    )
    found = reused(text).script()
    assert found.count("p[i]") == 1
