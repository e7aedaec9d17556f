"""Promises of kernels: sums that need no clipping, and copies that are only read, are the same with them, on every kind of host."""

from typing import Any

import numpy as np
import pytest

from compass_core.hostcc import host, promises
from compassc.dsl import BuildManager
from compassc.dsl import script as S

PAIRS = [("i8", "i8"), ("i8", "u8"), ("u8", "i8"), ("u8", "u8"), ("i16", "i16"), ("i16", "u16"), ("u16", "u16")]
TYPES = {"i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16"}


def kernel(first: str, second: str, promised: bool) -> Any:
    """Adds the products of neighbours to accumulators, of all lanes and then of some."""
    sums, bits = "i32" if "i" in first + second else "u32", int(first[1:])
    add, lanes = S.vqdpa if bits == 8 else S.vdpa, 256 // bits

    @S.prim_func
    def summed(
        a: S.ptr(sums, "global"), x: S.ptr(first, "global"), w: S.ptr(second, "global"), y: S.ptr(sums, "global")
    ):
        if promised:
            S.assume_unclipped()
        total = add(S.vload(a), S.vload(x), S.vload(w))
        S.vstore(add(total, S.vload(x), S.vload(w), S.tail_mask(lanes // 2 + 1, lanes)), y)

    return summed


def values(kind: str, many: int) -> np.ndarray:
    """The ends of a type, of 16 bits of a quarter of it, and numbers in between."""
    info = np.iinfo(TYPES[kind])
    drawn = np.random.default_rng(many).integers(info.min, info.max, many, dtype=info.dtype, endpoint=True)
    drawn[: many // 2 : 2], drawn[1 : many // 2 : 2] = info.min, info.max
    return drawn if info.bits == 8 else drawn // 4


@pytest.mark.parametrize("level", ["native", "x86-64-v3"])
def test_sums_are_the_same_with_the_promise(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if level != "native" and host.missing_features(" ".join(host._LEVELS[level])):
        pytest.skip("the host is no such one")
    monkeypatch.setenv("COMPASS_HOST_CPU", level)
    for x, w in PAIRS:
        group = 32 // int(x[1:])
        a = np.arange(-4, 4).astype("int32" if "i" in x + w else "uint32") & 0xFFFFF
        first, second = values(x, 8 * group), values(w, 8 * group)[::-1].copy()
        products = first.astype(np.int64) * second
        once, some = products.reshape(8, group).sum(1), np.where(np.arange(8 * group) <= 4 * group, products, 0)
        wanted = a + once + some.reshape(8, group).sum(1)
        limits = np.iinfo(a.dtype)
        assert limits.min <= wanted.min() and wanted.max() <= limits.max, "the case keeps the promise"
        for promised in (False, True):
            made = kernel(x, w, promised)
            for run in (BuildManager().build(made), made):
                y = np.zeros_like(a)
                run(a, first, second, y)
                np.testing.assert_array_equal(y, wanted, err_msg=f"{x} {w} {promised}")


def test_only_a_text_that_promises_is_changed_and_nothing_moves() -> None:
    text = "a = __vqdpa(a, x, w, m); b = __vdpa(b, x, w, m); c = __vqdot(c, x, w, m); __my__vdpa(1);"
    assert promises.kept(text) == text
    said = f"#define {promises.UNCLIPPED}()\n{text}"
    assert promises.kept(said) == said
    called = f"{promises.UNCLIPPED}(); {text}"
    kept = promises.kept(called)
    assert kept == called.replace(" __vqdpa(", " __wqdpa(").replace(" __vdpa(", " __wdpa(") and len(kept) == len(called)


@S.prim_func
def keeps_its_promise(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), n: S.i32):
    tile = S.alloc(64, "fp32", "lsram")
    for i in range(n):
        here = tile + 0
        S.dma_copy(here, x + i * 64, 64, only_read=True)
        total = S.fp32x8(0)
        for j in range(0, 64, 8):
            total = total + S.vload(here + j)
        S.vstore(total, y + i * 8)


@S.prim_func
def breaks_its_promise(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    tile = S.alloc(8, "fp32", "lsram")
    if S.get_local_id() == 0:
        here = tile + 0
        S.dma_copy(here, x, 8, only_read=True)
        S.vstore(S.fp32x8(7), x)
        S.vstore(S.vload(here), y)


@S.prim_func
def writes_the_copy(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    tile = S.alloc(8, "fp32", "lsram")
    if S.get_local_id() == 0:
        here = tile + 0
        S.dma_copy(here, x, 8, only_read=True)
        S.vstore(S.fp32x8(7), here)
        S.vstore(S.vload(here), y)


@S.prim_func
def copies_rows(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    tile = S.alloc(8, "fp32", "lsram")
    here = tile + 0
    S.dma_copy(here, x, 4, 8, 2, only_read=True)
    S.vstore(S.vload(here), y)


def test_a_copy_that_is_only_read_is_the_same_with_the_promise() -> None:
    x, y, want = np.arange(192, dtype="float32"), np.zeros(24, "float32"), np.zeros(24, "float32")
    made = BuildManager().build(keeps_its_promise)
    assert promises.ONLY_READ in made.c_code
    made(x, y, 3)
    keeps_its_promise(x, want, 3)
    np.testing.assert_array_equal(y, want)


def test_plain_runs_read_the_source_and_profiles_the_copy() -> None:
    made = BuildManager().build(breaks_its_promise)
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    made(x.copy(), y)
    np.testing.assert_array_equal(y, np.full(8, 7, "float32"))
    for run in (made.profile, breaks_its_promise):
        y[:] = 0
        run(x.copy(), y)
        np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("made", [writes_the_copy, copies_rows])
def test_what_may_not_be_the_source_is_copied(made: Any) -> None:
    """A copy that is written too, and one whose rows lie elsewhere."""
    executor = BuildManager().build(made)
    assert promises.ONLY_READ not in executor.c_code
    x, y, want = np.arange(16, dtype="float32"), np.zeros(8, "float32"), np.zeros(8, "float32")
    executor(x, y)
    made(x, want)
    np.testing.assert_array_equal(y, want)
