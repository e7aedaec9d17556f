"""Whole numbers of a graph that do not fit 32 bits are found by a checked run."""

import numpy as np
import pytest

import compassc
from compass_core.errors import UsageError
from compass_runtime.checks import Modes, check_job
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.graph import GraphBuilder

TARGET = "X2_1204"


def built(dtype):
    g = GraphBuilder("net")
    x, y = (g.input(n, (1, 4), dtype) for n in ("x_0", "y_0"))
    (total,) = g.layer("Eltwise", [x, y], name="total", outputs=[((1, 4), dtype)], attributes={"method": "ADD"})
    (most,) = g.layer("Eltwise", [total, x], name="most", outputs=[((1, 4), dtype)], attributes={"method": "MAX"})
    return compassc.compile(g.finish([total, most]), target=TARGET).program


def findings(program, dtype, x, y):
    inputs = {"x_0": np.array([x], dtype), "y_0": np.array([y], dtype)}
    return [e.message for e in check_job(program, Modes.OVERFLOW, lambda p: p.create_job(), inputs).errors]


@pytest.fixture(scope="module")
def words():
    return built("int32")


def test_sums_beyond_the_type_are_told_where_they_arise(words):
    (told,) = findings(words, "int32", [1, 2**31 - 2, 5, -9], [2, 2, 2**31 - 5, 9])
    assert "'total' gives 2147483647 in 'total_0[0, 1]' and 1 more, an end of int32" in told
    (told,) = findings(words, "int32", [1, 2, 3, -(2**31) + 1], [1, 1, 1, -2])
    assert "'total' gives -2147483648 in 'total_0[0, 3]'," in told


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2, 3, 4], [5, 6, 7, 2**31 - 6]), ([2**31 - 1, 0, 0, 0], [0, 0, 0, -(2**31)])]
)
def test_what_fits_is_not(words, x, y):
    assert findings(words, "int32", x, y) == []


def test_of_unsigned_numbers_0_is_no_end():
    program = built("uint32")
    assert findings(program, "uint32", [0, 1, 2, 3], [0, 0, 0, 0]) == []
    assert len(findings(program, "uint32", [0, 1, 2, 2**32 - 2], [0, 0, 0, 9])) == 1


def test_all_checks_have_it_and_kernels_do_not(tmp_path):
    @S.prim_func
    def nothing(x: S.ptr("i32", "global")):
        x[0] = 1

    executor = BuildManager(output_dir=tmp_path).build(nothing)
    x = np.zeros(1, np.int32)
    with pytest.raises(UsageError, match="overflow is looked for in graphs, and this is a kernel"):
        executor.check(x, modes="overflow")
    executor.check(x, modes="all")
