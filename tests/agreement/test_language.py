"""Whole small kernels, compiled and in PySim: null pointers, text with numbers, pointers as numbers, no outputs."""

import logging

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.pysim.checks import checking


@S.prim_func
def is_given(p: S.ptr("i32", "global")) -> S.i32:
    found = S.i32(0)
    if p is not None:
        found = S.i32(1)
    return found


@S.prim_func
def null(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    y[0] = is_given(x)
    if x is None:
        y[1] = 1
    if x == None:
        y[2] = 1
    if n is None:
        y[3] = 1
    if not (x != None or n == 3):
        y[4] = 1


@pytest.mark.parametrize("given", [True, False])
def test_none_follows_the_argument(given: bool) -> None:
    executor = BuildManager("X2_1204").build(null)
    for run in (executor, null):
        y = np.zeros(5, "int32")
        run(np.zeros(4, "int32") if given else None, y, 5)
        assert y.tolist() == [int(given), int(not given), int(not given), 0, int(not given)]


@S.prim_func
def texts(n: S.i32, u: S.u32, b: S.i8):
    if S.get_local_id() == 0:
        name = S.meta_var("n")
        S.printf(f"{name} = {n}, {u!s}, {b:d}; {3:02d} %d\n", n + 1)
        S.printf("{1} {0} {x}\n".format(n, u, x=b))  # noqa: UP032
        S.printf("n = " + str(n) + ", " + str(7) + "\n")
        S.printf("%d and %s of %s\n" % (n, u, "three"))  # noqa: UP031
        S.printf(
            "last" + f" {n}\n",
        )


def test_text_shows_the_numbers_of_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    executor = BuildManager("X2_1204").build(texts)
    wanted = "n = -5, 4000000000, -3; 03 -4\n4000000000 -5 -3\nn = -5, 7\n-5 and 4000000000 of three\nlast -5\n"
    for run in (executor, texts):
        run(-5, 4000000000, -3)
        assert capfd.readouterr().out == wanted


@S.prim_func
def says_hello():
    S.printf("hello\n")


@S.prim_func
def shows(x: S.ptr("i32", "global"), n: S.i32):
    print("x:", x[0], n)
    S.printf("%d\n", x[0] + n)


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
def test_kernels_need_no_output_and_no_parameter(target: str, capfd: pytest.CaptureFixture[str]) -> None:
    built = [BuildManager(target).build(kernel) for kernel in (says_hello, shows)]
    built[0]()
    built[1](np.array([4], "int32"), 3)
    assert sorted(capfd.readouterr().out.splitlines()) == ["7"] * 4 + ["hello"] * 4
    says_hello()
    shows(np.array([4], "int32"), 3)
    assert sorted(capfd.readouterr().out.split("\n"))[1:] == ["7"] * 4 + ["hello"] * 4 + ["x: 4 3"] * 4


@S.prim_func
def numbers(x: S.ptr("i32", "global"), y: S.ptr("u32", "global")):
    first = S.reinterpret(x, "uint32")
    fourth = S.reinterpret(x + 3, "uint32")
    tile = S.alloc(8, "i16", "lsram")
    tile[2] = S.i16(5)
    back = S.reinterpret(fourth, "global i32*")
    moved = S.reinterpret(S.reinterpret(tile, "int32") + 4, "lsram i16*")
    y[0] = fourth - first
    y[1] = first % 32
    y[2] = S.u32(back[0])
    y[3] = S.reinterpret(tile + 2, "uint32") - S.reinterpret(tile, "uint32")
    y[4] = S.u32(moved[0])
    y[5] = S.u32(1) if back == x + 3 else S.u32(0)


def test_pointers_have_numbers_that_agree_with_arithmetic() -> None:
    executor = BuildManager("X2_1204").build(numbers)
    for run in (executor, numbers):
        y = np.zeros(6, "uint32")
        run(np.arange(8, dtype="int32"), y)
        assert y.tolist() == [12, 0, 3, 4, 5, 1]


@S.prim_func
def unwritten(y: S.ptr("i32", "global")):
    tile = S.alloc(8, "i32", "lsram")
    for i in range(3):
        y[i] = tile[i]


def test_reading_memory_that_nobody_wrote_is_warned_of_once_a_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "Compass"):
        unwritten(np.zeros(3, "int32"))
    [record] = [r for r in caplog.records if r.name == "Compass"]
    line = unwritten.py_func.__code__.co_firstlineno + 4
    assert f"{__file__}:{line}:" in record.getMessage() and "of lsram array tile" in record.getMessage()
    caplog.clear()
    with checking():
        unwritten(np.zeros(3, "int32"))
    assert not caplog.records
    with checking("uninit"), pytest.raises(CompassError) as told:
        unwritten(np.zeros(3, "int32"))
    assert told.value.code == "uninitialised"


TABLE = np.arange(32, dtype="int32")


@S.prim_func
def tables(y: S.ptr("i32", "global")):
    t = S.alloc_const((4, 8), "int32", TABLE)
    p = t + 8
    q = 4 + t
    q = q - 1
    y[0] = p[0]
    y[1] = q[1]
    y[2] = (t + 8)[1]
    y[8:16] = t[2, 0:8]
    S.vstore(S.vload(t + 16), y + 16)
    S.vstore(p[0:8], y + 24)


def test_tables_are_pointers_too() -> None:
    executor = BuildManager("X2_1204").build(tables)
    for run in (executor, tables):
        y = np.zeros(32, "int32")
        run(y)
        assert y[:3].tolist() == [8, 4, 9]
        assert y[8:].tolist() == [*range(16, 24), *range(16, 24), *range(8, 16)]


@S.prim_func
def products(x: S.ptr("i16", "global"), y: S.ptr("i32", "global"), z: S.ptr("i16", "global")):
    v = S.vload(x)
    S.vstore(S.vmull(v, v), y)
    S.vstore(S.vdiv(v, v), z)


def test_a_store_loads_nothing_that_the_kernel_does_not() -> None:
    """All TECs store the same, which is no race; a load of the old content would be one."""
    executor = BuildManager("X2_1204").build(products)
    assert executor.c_code.count("__vload(") == 1
    executor.check(np.ones(16, "int16"), np.zeros(8, "int32"), np.zeros(16, "int16"), modes="race")


@S.prim_func
def shifted(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        for i in range(7):
            y[i + 1] = x[i] + 1


def test_arguments_that_share_memory_have_buffers_of_their_own() -> None:
    executor = BuildManager("X2_1204").build(shifted)
    for views in (lambda a: (a, a), lambda a: (a[1:], a), lambda a: (a[:-1], a[1:]), lambda a: (a[::2], a)):
        found = []
        for run in (executor, shifted):
            found.append(np.arange(16, dtype="int32") * 3)
            run(*views(found[-1]))
        assert np.array_equal(*found)
