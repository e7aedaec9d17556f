"""Arrays of other sizes than estimated or declared: what a kernel certainly accesses counts, nothing else."""

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S

SOURCE = """
@S.prim_func
def odd_even(x: S.ptr("i32", "global"), n: S.i32):
    for turn in range(64):
        for i in range(32):
            j = i * 2 + turn % 2
            if j + 1 < n:
                a, b = x[j], x[j + 1]
                if a > b:
                    x[j] = b
                    x[j + 1] = a


@S.prim_func
def positive(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    for i in range(64):
        if x[0] > i:
            y[i] = x[0] - i


@S.prim_func
def rest(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    for i in S.vectorized(n % 8):
        y[i] = x[i] + 1


@S.prim_func
def declared(X: S.ptr("i32", "global"), Y: S.ptr("i32", "global")):
    x = S.match_buffer(X, (4, 4))
    y = S.match_buffer(Y, (4, 4))
    for i, j in S.grid(4, 4):
        y[i, j] = x[j, i]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    from compassc.dsl import load_kernels

    path = tmp_path_factory.mktemp("sizes") / "k.py"
    path.write_text("from compassc.dsl import script as S\n\n" + SOURCE)
    kernels = load_kernels(path)
    return {name: BuildManager().build(kernels.entry(name)) for name in ("odd_even", "positive", "rest", "declared")}


def test_a_padded_sort_takes_as_many_as_there_are(built):
    x = np.random.default_rng(3).integers(-99, 99, 37).astype("int32")
    expected = np.sort(x)
    built["odd_even"](x, 37)
    assert np.array_equal(x, expected)


def test_accesses_that_depend_on_data_need_no_array(built):
    x, y = np.array([5], "int32"), np.zeros(5, "int32")
    built["positive"](x, y)
    assert y.tolist() == [5, 4, 3, 2, 1]
    with pytest.raises(CompassError, match="'x' has 0 elements, but the kernel accesses 1"):
        built["positive"](np.zeros(0, "int32"), y)


def test_memory_is_there_for_what_an_estimate_says(built):
    """Accesses beyond the array, which only may happen, hit no other tensor."""
    x, y = np.array([64], "int32"), np.zeros(8, "int32")
    built["positive"](x, y)
    assert x[0] == 64 and y.tolist() == list(range(64, 56, -1))


@pytest.mark.parametrize("n", [5, 13, 16, 37])
def test_a_vectorized_rest_needs_the_rest(built, n):
    x = np.arange(n % 8, dtype="int32")
    y = np.zeros(n % 8, "int32")
    built["rest"](x, y, n)
    assert np.array_equal(y, x + 1)


def test_an_array_may_be_larger_than_declared(built):
    x, y = np.arange(40, dtype="int32"), np.full(40, -1, "int32")
    built["declared"](x, y)
    assert np.array_equal(y[:16].reshape(4, 4), x[:16].reshape(4, 4).T)
    assert (y[16:] == -1).all()


def test_an_array_must_not_be_smaller_than_declared(built):
    with pytest.raises(CompassError, match="'x' is to have 16 elements"):
        built["declared"](np.zeros(15, "int32"), np.zeros(16, "int32"))


@S.prim_func
def where_a_narrow_scalar_is_small(y: S.ptr("i32", "global"), n: S.i32):
    if S.i16(n) < S.i16(2):
        y[9] = 1


@pytest.mark.parametrize("n", [1, 3, 40000, 65535 + 3, -1])
def test_conditions_on_narrowed_scalars_are_those_of_the_kernel(n):
    """40000 is negative as an int16, so that the kernel writes."""
    narrow = (n + 32768) % 65536 - 32768
    executor = BuildManager("X2_1204").build(where_a_narrow_scalar_is_small)
    y = np.zeros(4, "int32")
    if narrow < 2:
        with pytest.raises(CompassError, match="y"):
            executor(y, n)
    else:
        executor(y, n)


@S.prim_func
def at_a_converted_float(y: S.ptr("i32", "global"), f: S.fp32):
    y[S.i32(f) & 3] = 7


def test_a_float_that_is_no_number_leaves_the_size_open():
    y = np.zeros(8, "int32")
    BuildManager("X2_1204").build(at_a_converted_float)(y, float("nan"))
    assert (y == 7).sum() == 1
