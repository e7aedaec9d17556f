"""Loads and stores of all lanes: plain accesses for hosts, the calls of the dialect for checks and for profiles."""

from pathlib import Path

import numpy as np
import pytest

from compass_core.hostcc import whole_vectors
from compassc.dsl import BuildManager
from compassc.dsl import script as S


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("  int8 a = __vload((__global int8*)x, ALL_TRUE_w);", "__fload"),
        ("  v[0] = (v[0] + __vload((__lsram float8*)(x + (8 * (i + f(j, k)))), ALL_TRUE_w));", "__fload"),
        ("  v[0] = __vload((__local uchar32*)(__local char*)(x + 1), ALL_TRUE_b);", "__fload"),
        ("  __vstore(__vadd(a, b, c, ALL_TRUE_h), (__global half16*)(y + (i * 16)), ALL_TRUE_h);", "__fstore"),
        ("  __vstore(v[1], (__lsram bf1616*)y, ALL_TRUE_h);", "__fstore"),
    ],
)
def test_they_have_other_names_and_nothing_moves(text: str, wanted: str) -> None:
    made = whole_vectors.accessed(text)
    assert made == text.replace(wanted.replace("f", "v", 1), wanted) != text
    assert whole_vectors.called(made) == text


@pytest.mark.parametrize(
    "text",
    [
        "  __vload((__global int8*)x, ALL_TRUE_w);",  # a statement: there would be a warning of a value that is not used
        "  int8 a = __vload((__global int8*)x, m);",
        "  int8 a = __vload((__global int8*)x, __vand(m, n, ALL_TRUE_w));",
        "  int8 a = __vload(x, ALL_TRUE_w);",
        "  int8 a = __vload((__global int*)x, ALL_TRUE_w);",  # which clang refuses
        "  int8 a = __vload((__global int8*)x + 1, ALL_TRUE_w);",
        "  int8 a = __vload_stride((__global int8*)x, 8, ALL_TRUE_w);",
        "  __vstore(a, (__global int8*)x, m), g((__global int8*)x, ALL_TRUE_w);",
        "  __vstore(a, b, (__global int8*)x, ALL_TRUE_w);",
        "  __vstore(a, (__constant int8*)x, ALL_TRUE_w);",
    ],
)
def test_others_stay(text: str) -> None:
    assert whole_vectors.accessed(text) == text


def test_brackets_that_never_close_take_no_time() -> None:
    text = "  __vstore(" + "(a(b)(c(d(e" * 20000
    assert whole_vectors.accessed(text) == text


@S.prim_func
def moved(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
    held = S.alloc_buffer((16,), "int32", scope="lsram")
    if S.get_local_id() == 0:
        S.vstore(S.vload(x + 1) + S.vload(y), held.addr_of(3))
        S.vstore(S.vload(held.addr_of(3)), out + 5)


def test_memory_is_that_of_calls(tmp_path: Path) -> None:
    """At addresses of elements, where no whole vector begins."""
    x, y, out = np.arange(9, dtype="int32"), np.full(8, 1000, "int32"), np.full(16, 7, "int32")
    made = BuildManager(output_dir=str(tmp_path)).build(moved)
    (unit,) = tmp_path.rglob("*.cc.cl")
    assert (unit.read_text().count("__fload("), unit.read_text().count("__fstore(")) == (3, 2)
    made(x, y, out)
    np.testing.assert_array_equal(out, [7] * 5 + list(x[1:] + 1000) + [7] * 3)


@S.prim_func
def picked(x: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.vstore(S.vbcast(S.vload(x + 1)[5], lanes=8), out)


def test_an_element_of_what_is_loaded() -> None:
    out = np.zeros(8, "int32")
    BuildManager().build(picked)(np.arange(9, dtype="int32"), out)
    np.testing.assert_array_equal(out, [6] * 8)


def test_profiles_count_them_as_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    given = np.zeros(9, "int32"), np.zeros(8, "int32"), np.zeros(16, "int32")
    found = BuildManager().build(moved).profile(*given)
    monkeypatch.setattr(whole_vectors, "accessed", str)
    assert found == BuildManager().build(moved).profile(*given) > 0
