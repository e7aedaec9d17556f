"""S.iota, S.vcumsum and S.vsort: compiled, in PySim and as NumPy has them."""

from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.ir.dtypes import STORAGE, DataType, dtype
from compassc.ops.numeric import np_dtype
from tests.choosing import some

INT_TYPES = [str(t) for t in STORAGE if t.is_integer]


def results(kernel: Any, *arrays: Any) -> list[Any]:
    """The last array after a compiled run on each generation, which are those of PySim."""
    found = []
    for target in ("X2_1204", "X3P_1304"):
        copies = [[a.copy() for a in arrays] for _ in range(2)]
        BuildManager(target).build(kernel)(*copies[0])
        kernel(*copies[1])
        assert copies[0][-1].tobytes() == copies[1][-1].tobytes()
        found.append(copies[0][-1])
    return found


def numbers(kind: str, lanes: int) -> Any:
    @S.prim_func
    def counted(n: S.i32, out: S.ptr(kind, "global")):
        S.vstore(S.iota(kind, lanes), out)
        S.vstore(S.iota(kind, lanes, n, step=2), out + lanes)
        S.vstore(S.iota(kind, lanes, start=1, step=-1 if kind[0] != "u" else 1), out + 2 * lanes)

    return counted


@pytest.mark.parametrize("elem", STORAGE, ids=str)
def test_lane_numbers(elem: DataType) -> None:
    kind, element = str(elem), np_dtype(elem)
    for width in (elem.native_lanes, elem.native_lanes + 3):
        out = np.zeros(3 * width, element)
        kernel = numbers(kind, width)
        compiled, simulated = out.copy(), out.copy()
        BuildManager("X2_1204").build(kernel)(5, compiled)
        kernel(5, simulated)
        lane = np.arange(width)
        wanted = [lane, 5 + 2 * lane, 1 + lane if kind[0] == "u" else 1 - lane]
        assert compiled.tobytes() == simulated.tobytes()
        assert np.array_equal(compiled, np.concatenate(wanted).astype(element))


def over_lanes(kind: str) -> Any:
    lanes = dtype(kind).native_lanes

    @S.prim_func
    def both(x: S.ptr(kind, "global"), out: S.ptr(kind, "global")):
        S.vstore(S.vcumsum(S.vload(x)), out)
        S.vstore(S.vsort(S.vload(x)), out + lanes)
        S.vstore(S.vsort(S.vload(x), descending=True), out + 2 * lanes)

    return both, lanes


@pytest.mark.parametrize("kind", INT_TYPES)
def test_sums_and_order_of_integers(kind: str) -> None:
    kernel, lanes = over_lanes(kind)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    x = np.random.default_rng(7).integers(low, high, lanes, kind, endpoint=True)
    x[1] = x[2]
    for out in some(results(kernel, x, np.zeros(3 * lanes, kind))):
        assert np.array_equal(out[:lanes], np.cumsum(x, dtype=kind))
        assert np.array_equal(out[lanes : 2 * lanes], np.sort(x))
        assert np.array_equal(out[2 * lanes :], np.sort(x)[::-1])


def test_order_of_floats_keeps_every_lane() -> None:
    kernel, lanes = over_lanes("float32")
    x = np.array([2.5, -0.0, np.inf, -1e30, 0.0, 7, -np.inf, 1], "float32")
    for out in some(results(kernel, x, np.zeros(3 * lanes, "float32"))):
        assert np.array_equal(out[lanes : 2 * lanes], np.sort(x))
    x[3] = np.nan
    for out in some(results(kernel, x, np.zeros(3 * lanes, "float32"))):
        assert sorted(out[lanes : 2 * lanes].view("u4")) == sorted(x.view("u4"))


@S.prim_func
def while_sorting(x: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
    v = S.vload(x)
    n = 0
    while S.vcumsum(v)[7] > 0 and n < 4:
        v = v - 2
        n += 1
    out[0] = n


def test_a_condition_of_a_loop_is_computed_each_time() -> None:
    for out in some(results(while_sorting, np.full(8, 4, "int32"), np.zeros(1, "int32"))):
        assert out[0] == 2


@S.prim_func
def too_large(out: S.ptr("i8", "global")):
    S.vstore(S.iota("i8", 32, 100), out)


def test_lanes_that_do_not_fit_are_refused_in_pysim_too() -> None:
    for run in (lambda: BuildManager("X2_1204").build(too_large), lambda: too_large(np.zeros(32, "int8"))):
        with pytest.raises(CompassError, match="131 does not fit int8"):
            run()
