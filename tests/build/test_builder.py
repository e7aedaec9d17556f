"""The typed builder: expressions, statements, and what a kernel that Python makes is as text and as IR."""

from __future__ import annotations

import operator
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core import operators
from compass_core.errors import CompassError
from compassc import build
from compassc.build import Builder, formula, pointer_of, variable
from compassc.dsl import BuildManager, parse
from compassc.dsl import script as S
from compassc.ir import stmts
from compassc.ir.dtypes import INT32, dtype, pointer_type
from compassc.ir.equal import structural_equal
from compassc.ir.visit import walk_stmts
from compassc.layers import vectors
from compassc.layers.kernel import Kernel
from compassc.layers.kernel_cache import function_of
from compassc.layers.layer_kernel import kernel_text
from compassc.ops import load

LANES = dtype("int32x8")


@formula
def twice(x):
    return x + x


def doubled() -> tuple[Builder, Kernel]:
    """A kernel that doubles numbers up to 100 and adds 1 to those behind the first eight; with a macro, a loop and a
    branch."""
    b = Builder()
    with b.active():
        x, y = (pointer_of(b.parameter("t", pointer_type(INT32, "global"), None)) for _ in range(2))
        n = variable_of(b)
        tile = b.alloc(64, "int32", "tile")
        S.dma_copy(tile, x, n)
        with b.for_range(0, n, 8) as i:
            v = b.define(b.variable("v", LANES), vectors.clamp(S.vload(tile + i, lanes=8), 0, 100) * 2)
            rest = b.define(b.variable("rest", LANES), v * 0)
            b.paste(vectors.sum_pair, rest, b.define(b.variable("low", LANES), v * 0), v, rest)
            with b.when(i > 0):
                b.assign(v, v + 1)
            with b.otherwise():
                b.assign(v, v + 0)
            S.vstore(v, tile + i)
        y[0] = tile[0]
        S.dma_copy(y, tile, n)
    b.finish()
    types = [(v.name, 'S.ptr("int32", "global")' if v.name[0] == "t" else "S.i32") for v, _ in b.parameters]
    return b, Kernel(kernel_text(types, b.written(), b.called), (), b.maker("layer"))


def variable_of(b: Builder) -> build.Value:
    var = b.parameter("n", INT32, None)
    return build.Value(var, var.name, 0, 64)


def test_a_kernel_gives_the_same_as_ir_as_text_and_in_pysim(tmp_path):
    _, kernel = doubled()
    path = tmp_path / "kernel.py"
    path.write_text(kernel.text)
    function = function_of(kernel, path)
    x = np.arange(40, dtype=np.int32) * 7
    results = []
    for run in (BuildManager("X2_1204").build(kernel.function), BuildManager("X2_1204").build(function), function):
        y = np.zeros(40, np.int32)
        run(x, y, 40)
        results.append(y)
    want = np.minimum(x, 100) * 2 + (np.arange(40) >= 8)
    for got in results:
        np.testing.assert_array_equal(got, want)


def test_the_text_is_the_ir(tmp_path):
    _, kernel = doubled()
    path = tmp_path / "kernel.py"
    path.write_text(kernel.text)
    assert structural_equal(parse(function_of(kernel, path), "X2_1204").entry_func, kernel.function)


def test_places_are_lines_of_the_python_that_made_the_statements():
    b, kernel = doubled()
    lines = Path(__file__).read_text().splitlines()
    shown = {type(s): lines[s.span.line - 1] for s in kernel.function.body if s.span.file == __file__}
    assert "for_range" in shown[stmts.For] and "dma_copy" in shown[stmts.Evaluate]
    # the statements of a macro are those of its own lines
    files = {s.span.file for s in walk_stmts(kernel.function.body)}
    assert files == {__file__, vectors.__file__}
    assert b.prim_func("other").span.file == __file__


def test_what_nothing_uses_is_dropped():
    b = Builder()
    with b.active():
        used, unused = (pointer_of(b.parameter("t", pointer_type(INT32, "global"), None)) for _ in range(2))
        first = b.define(b.variable("first", INT32), unused[0])
        b.define(b.variable("second", INT32), first + 1)
        used[0] = 3
    b.finish()
    assert b.written() == ["t1[0] = 3"]
    assert [v.name for v, _ in b.parameters] == ["t1"]


def test_names_are_unique():
    b = Builder()
    assert len({b.name("i") for _ in range(5)} | {b.fresh("i") for _ in range(5)}) == 10


def test_an_expression_has_no_statements():
    with build.Recorder().active(), pytest.raises(TypeError, match="needs a Builder"):
        S.barrier()


def test_types_are_checked_as_in_a_kernel():
    with build.Recorder().active(), pytest.raises(CompassError, match="lanes"):
        variable("a", LANES) + variable("b", dtype("int32x16"))


def test_a_formula_is_a_call_in_the_text():
    with build.Recorder().active():
        assert str(twice(variable("a", LANES) * 2)) == "twice(a * 2)"
        assert str((variable("a", LANES) + 1) * 2) == "((a + 1) * 2)"


BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "bitand": operator.and_,
    "shr": operator.rshift,
}
NUMBERS = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=4), st.data())
def test_values_are_within_their_ranges(leaves, data):
    """Of random expressions, at random values of their variables."""
    with build.Recorder().active():
        terms = []
        for i, numbers in enumerate(leaves):
            low, value, high = sorted(numbers)
            terms.append((variable(f"x{i}", INT32, low, high), value))
        for _ in range(6):
            (a, x), (b, y) = data.draw(st.sampled_from(terms)), data.draw(st.sampled_from(terms))
            name = data.draw(st.sampled_from([*BINARY, "max", "min", "abs"]))
            if name == "shr":
                y = data.draw(st.integers(0, 31))
                b = y
            if name in BINARY:
                made, value = BINARY[name](a, b), operators.wrap(BINARY[name](x, y), 32, True)
            elif name == "abs":
                made, value = S.abs(a), abs(max(x, 1 - 2**31))
            else:
                made, value = (S.max, S.min)[name == "min"](a, b), (max, min)[name == "min"](x, y)
            assert made.low <= value <= made.high
            terms.append((made, value))


def test_layers_are_listed_without_the_parser():
    """Whoever only looks for kernels that were compiled before pays for no parser and no text of the IR, and whoever looks for
    the plan of a graph for no builder either."""
    script = "import sys, compassc.layers.library; print(*sys.modules); import compassc.layers.launches.plan_kernels; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    library, launches = map(str.split, shown.splitlines())
    assert "compassc.layers.plan_cache" in library and not {"compassc.build.builder", "compassc.ir.exprs"} & set(
        library
    )
    assert "compassc.build.builder" in launches
    assert not {"compassc.language.parser.module", "compassc.ir.text", "compassc.ir.printer"} & set(launches)


NAMES = [*dict.fromkeys(name for op in load().values() for name in op.signature.parameters), "other"]


@given(st.sampled_from(sorted(load())), st.integers(0, 6), st.sets(st.sampled_from(NAMES), max_size=3))
def test_arguments_are_bound_as_python_binds_them(name, count, named):
    op = load()[name]
    args, kwargs = tuple(range(count)), dict.fromkeys(named, -1)
    try:
        bound = op.signature.bind(*args, **kwargs)
    except TypeError as error:
        with pytest.raises(TypeError, match=re.escape(str(error))):
            op.bind(args, kwargs)
        return
    bound.apply_defaults()
    assert op.bind(args, kwargs) == dict(bound.arguments)


def test_a_loop_runs_as_long_as_its_condition_holds(tmp_path):
    """The first power of two, or of three, that is above a number, by a loop in the text, as IR and in PySim."""
    b = Builder()
    with b.active():
        y, n = pointer_of(b.parameter("t", pointer_type(INT32, "global"), None)), variable_of(b)
        for at in (0, 1):
            power = b.define(b.variable("power", INT32), S.i32(1))
            with b.while_loop(build.both(power <= n, build.either(power < 50, power > 60))):
                b.assign(power, power * (at + 2))
            y[at] = power
    b.finish()
    types = [("t1", 'S.ptr("int32", "global")'), ("n1", "S.i32")]
    kernel = Kernel(kernel_text(types, b.written(), b.called), (), b.maker("layer"))
    path = tmp_path / "kernel.py"
    path.write_text(kernel.text)
    function = function_of(kernel, path)
    assert structural_equal(parse(function, "X2_1204").entry_func, kernel.function)
    for run in (BuildManager("X2_1204").build(kernel.function), function):
        y = np.zeros(2, np.int32)
        run(y, 40)
        np.testing.assert_array_equal(y, (64, 81))
