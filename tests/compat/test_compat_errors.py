"""What programs written for the vendor's packages catch, compare and count when something is wrong."""

import contextlib
import importlib

import numpy as np
import pytest

from compass_core import vendor
from compass_core.errors import CompassError
from compassc.dsl import BuildManager, hw_native_vdtype
from compassc.dsl import script as S

ZERO = 0


@S.prim_func
def shifted(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    b[0] = a[n]


@S.prim_func
def moved(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    p = a + n
    b[0] = p[0]


@S.prim_func
def moved_vector(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    S.vstore(S.vload(a + n), b)


@S.prim_func
def buffered(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    m = S.match_buffer(a, (2, 4))
    b[0] = m[1, n]


@S.prim_func
def divided(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    b[0] = S.ceildiv(a[0], n)


@S.prim_func
def python_division(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    b[0] = 5 // ZERO


@S.prim_func
def no_name(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    b[0] = S.no_such_operation(a[0])


@S.prim_func
def no_attribute(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    b[0] = a.lanes


@S.prim_func
def assembly(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    S.asm("nop;")


@S.prim_func
def events(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    S.alloc_events(5)


@S.prim_func
def good(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    S.vstore(S.vload(a) + n, b)


def ints(n=8):
    return np.arange(n, dtype=np.int32)


WRONG_IN_PYSIM = [
    (shifted, 8, IndexError),
    (buffered, 4, IndexError),
    (moved, 8, AssertionError),
    (moved, 9, AssertionError),
    (shifted, -1, AssertionError),
    (moved_vector, 4, IndexError),
    (python_division, 0, ZeroDivisionError),
    (no_name, 0, AttributeError),
    (no_attribute, 0, AttributeError),
    (assembly, 0, NotImplementedError),
    (events, 0, AssertionError),
]


@pytest.mark.parametrize(("kernel", "n", "kind"), WRONG_IN_PYSIM)
def test_errors_of_pysim_are_the_built_in_ones_too(kernel, n, kind):
    with pytest.raises(kind) as caught:
        kernel(ints(), ints(), n)
    assert isinstance(caught.value, CompassError) and caught.value.span.file == __file__


@pytest.mark.usefixtures("names")
def test_ceildiv_by_zero_is_an_error_under_the_vendors_names():
    divided(ints(), out := ints(), 0)
    assert out[0] == 0
    importlib.import_module("tvm")
    with pytest.raises(ZeroDivisionError):
        divided(ints(), ints(), 0)
    BuildManager().build(divided)(ints(), out := ints() + 1, 0)
    assert out[0] == 0


@pytest.mark.parametrize("kernel", [no_name, no_attribute, python_division])
def test_every_error_of_a_build_is_a_runtime_error(kernel):
    with pytest.raises(RuntimeError):
        BuildManager().build(kernel)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: BuildManager("X9"),
        lambda: BuildManager().build(3),
        lambda: hw_native_vdtype("bool"),
        lambda: BuildManager(disabled_pass=["No"]).build(good),
    ],
)
def test_every_error_is_a_runtime_error(wrong):
    with pytest.raises(RuntimeError):
        wrong()


@pytest.fixture(scope="module")
def built():
    return BuildManager().build(good)


def call(how, built, *args):
    (good if how == "pysim" else built)(*args)


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("given", [0, 1, 2, 4])
@pytest.mark.parametrize("how", ["pysim", "executor"])
def test_the_number_of_arguments_in_the_vendors_words(how, built, given):
    importlib.import_module("tvm")
    with pytest.raises(AssertionError) as caught:
        call(how, built, *[ints(), ints(), 1, 2][:given])
    assert str(caught.value).endswith(f'The function "good" expect 3 args, but got: "{given}".')


@pytest.mark.parametrize("how", ["pysim", "executor"])
def test_the_number_of_arguments_in_our_words(how, built):
    assert not vendor.names_in_use
    with pytest.raises(AssertionError, match="good takes 3 arguments, 2 given"):
        call(how, built, ints(), ints())


@pytest.mark.parametrize(
    "wrong", [(3.5, ints(), 1), (ints(), "text", 1), (ints(), [1, 2], 1), (ints(), ints(), "x"), (ints(), ints(), None)]
)
@pytest.mark.parametrize("how", ["pysim", "executor"])
def test_the_kind_of_arguments_is_asserted(how, built, wrong):
    with pytest.raises(AssertionError, match="argument [123]"):
        call(how, built, *wrong)


@pytest.mark.parametrize("how", ["pysim", "executor"])
@pytest.mark.parametrize("other", [{}, {"b": None}])
def test_arrays_of_another_type_are_told_of_once_a_call(how, built, other, caplog):
    arguments = ints().view(np.float32), 0 if "b" in other else ints(), 1  # a null pointer is looked at twice
    with pytest.raises(CompassError) if "b" in other else contextlib.nullcontext():
        call(how, built, *arguments)
    told = [r for r in caplog.records if r.name == "Compass" and "argument 1" in r.getMessage()]
    assert len(told) == 1 and "float32" in told[0].getMessage() and "int32" in told[0].getMessage()


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("name", ["no_such_operation", "fp8x32", "i32x", "bf16x17", "size_u8", "serial"])
def test_unknown_names_of_the_script_module(name):
    from tvm.compass.dsl import script

    with pytest.raises(AttributeError) as caught:
        getattr(script, name)
    assert str(caught.value) == f"module 'tvm.compass.dsl.script' has no attribute '{name}'"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: hw_native_vdtype("bool"),
        lambda: S.prim_func(is_inline=3),
        lambda: S.prim_func(unannotated),
        lambda: S.prim_func(wrong_result),
        lambda: BuildManager(5),
        lambda: BuildManager("X1_1204"),
    ],
)
def test_wrong_use_is_asserted(wrong):
    with pytest.raises(AssertionError) as caught:
        wrong()
    assert isinstance(caught.value, CompassError)


def unannotated(a):
    a[0] = 1


def wrong_result(a: S.ptr("int32", "global")) -> int:
    return a[0]
