"""The interpreter of kernel IR: what PySim does, at every stage; right, or refused with the place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import passes, te, tir
from compassc.analysis.interpret import Interpreter, OutOfBounds, Undefined, evaluate
from compassc.dsl import BuildManager
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32
from compassc.language.kernel_files import load_kernels
from compassc.ops import load
from compassc.reference.examples import TARGET, kernels, run_in_pysim

ONLY_ON_DEVICES = {"printf"}
IN_C = {"cast", "tag", "vsort", "vload_gather", "vstore_scatter", "tail_mask"}
"""Operations that legalisation takes apart into builtins of C."""
EXAMPLES = [name for name, op in load().items() if op.example is not None and op.example.runs]


@pytest.mark.parametrize("name", EXAMPLES)
def test_operations_do_what_pysim_does(name):
    op = load()[name]
    parsed = BuildManager(TARGET).parse(kernels()[name])
    stages = [parsed, passes.lower(parsed), passes.legalize(passes.lower(parsed))]
    if name in ONLY_ON_DEVICES:
        with pytest.raises(CompassError, match="cannot be interpreted"):
            Interpreter(parsed)
        return
    wanted, _ = run_in_pysim(op)
    for module in stages[: 2 if name in IN_C else 3]:
        for early in (False, True):
            found = op.example.memory()
            Interpreter(module, early=early)(*found.values())
            for a, b in zip(found.values(), wanted.values(), strict=True):
                np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


KERNELS = """
from compassc.dsl import script as S

@S.prim_func
def kept(a: S.ptr("i32", "global"), n: S.i32):
    total = S.i32(0)
    i = S.i32(0)
    while True:
        i += 1
        if i > n:
            break
        if i % 2 == 0:
            continue
        for k in range(i):
            if k == 3:
                break
            total += k * a[0]
    if S.get_local_id() == 0:
        a[0] = total

@S.prim_func
def square(x: S.i32) -> S.i32:
    if x < 0:
        return 0
    S.barrier()
    return x * x

@S.prim_func
def called(a: S.ptr("i32", "global")):
    t = S.get_local_id()
    shared = S.alloc(4, "i32", "shared")
    shared[t] = a[t]
    y = square(a[t])
    a[t] = y + shared[3 - t]

@S.prim_func
def outside(a: S.ptr("i32", "global"), n: S.i32):
    b = S.alloc(8, "i32", "lsram")
    b[n] = 1
    a[0] = b[0]

@S.prim_func
def alone(a: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.barrier()
    a[0] = 1

@S.prim_func
def shifted(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = 1 << n
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("interpreted") / "written.py"
    Path(path).write_text(KERNELS)
    return load_kernels(path).kernels


def program(written, name):
    return Interpreter(BuildManager(TARGET).parse(written[name]))


@pytest.mark.parametrize(("name", "size", "more"), [("kept", 1, (9,)), ("called", 4, ())])
def test_flow_is_that_of_pysim(written, name, size, more):
    wanted, found = (np.arange(3, 3 + size, dtype="int32") for _ in range(2))
    written[name](wanted, *more)
    program(written, name)(found, *more)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("name", "more", "error", "says", "line"),
    [
        ("outside", (8,), OutOfBounds, "which has 8", "b[n] = 1"),
        ("outside", (-1,), OutOfBounds, "elements -1", "b[n] = 1"),
        ("alone", (), CompassError, "do not reach", ""),
        ("shifted", (32,), Undefined, "shifted by 32", "a[0] = 1 << n"),
    ],
)
def test_what_is_wrong_is_refused_at_its_line(written, name, more, error, says, line):
    with pytest.raises(error, match=says) as raised:
        program(written, name)(np.zeros(1, "int32"), *more)
    if line:
        assert KERNELS.splitlines()[raised.value.span.line - 1].strip() == line


X, Y = E.Var("x", INT32), E.Var("y", INT32)


def test_what_is_not_known_has_no_value():
    loaded = E.BufferLoad(E.Buffer(E.Var("p", E.pointer_type(INT32, "global")), INT32), (X,))
    for e in (Y, E.Binary("add", X, Y), E.Call("get_local_id", (), INT32), loaded):
        assert evaluate(e, {X: 1}) is None
    assert evaluate(E.Binary("mul", X, E.IntImm(INT32, 1 << 30)), {X: 6}) == -(1 << 31)


def test_blocks_do_what_their_loops_do():
    n = 6
    a, b = te.placeholder((n, n), "int32", name="a"), te.placeholder((n, n), "int32", name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    function = te.create_prim_func([a, b, c])
    given = [np.random.default_rng(0).integers(-9, 9, (n, n)).astype("int32") for _ in range(2)]
    for program in (function, tir.lower(function.module(), TARGET).entry_func):
        found = np.zeros((n, n), "int32")
        Interpreter(program, tecs=1 if program is function else 4)(*given, found)
        np.testing.assert_array_equal(found, given[0] @ given[1])
