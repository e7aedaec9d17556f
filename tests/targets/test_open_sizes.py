"""Sizes that are known when a kernel is called: variables that nobody gives, for they are dimensions of its tensors."""

from __future__ import annotations

import numpy as np
import pytest

from compass_runtime import load_module
from compass_runtime.arguments import parameters_of
from compassc import targets, te, tir

TARGETS = ("llvm", "X2_1204")


def corners() -> list[te.Tensor]:
    n = te.var("n")
    a = te.placeholder((n, n), "int32", name="a")
    return [a, te.compute((n - 2, n - 2), lambda i, j: a[i, j] - a[i + 2, j + 1], name="b")]


def given_and_wanted(n: int) -> tuple[np.ndarray, np.ndarray]:
    a = np.random.default_rng(n).integers(-99, 99, (n, n)).astype("int32")
    return a, a[:-2, :-2] - a[2:, 1:-1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("blocks", [False, True])
def test_sizes_are_those_of_the_arrays(target, blocks, tmp_path):
    tensors = corners()
    made = te.create_prim_func(tensors) if blocks else te.create_schedule(tensors[1])
    module = targets.build(tir.Schedule(made).mod if blocks else made, tensors, target, "corners")
    module.export_library(str(tmp_path / "corners.tar"))
    for run, n in ((module, 5), (module, 8), (load_module(str(tmp_path / "corners.tar")), 6)):
        a, wanted = given_and_wanted(n)
        b = np.zeros_like(wanted)
        run(a, b)
        np.testing.assert_array_equal(b, wanted)
    a, _ = given_and_wanted(6)
    for arrays, said in (
        ((a,), "takes 2 arguments, 1"),
        ((a, a, 6), "takes 2 arguments, 3"),
        ((a, np.zeros((4, 5), "int32")), r"'b'.*shape \(4, 4\)"),
        ((a[0], a), r"'a'.*2 dimensions"),
        ((a[:5], a), r"'a'.*shape \(5, 5\)"),
    ):
        with pytest.raises(Exception, match=said):
            module(*arrays)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_may_have_one_name(target):
    rows, columns = te.var(), te.var()
    a = te.placeholder((rows, columns), "int32", name="tindex")
    k = te.reduce_axis((0, columns), "k")
    b = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="b")
    given, found = np.arange(35, dtype="int32").reshape(5, 7), np.zeros(5, "int32")
    te.build(te.create_schedule(b), [a, b], target)(given, found)
    np.testing.assert_array_equal(found, given.sum(1))


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_are_arguments_are_given(target):
    n = te.size_var("n")
    a = te.placeholder((n,), "int32", name="a")
    b = te.compute((n,), lambda i: a[n - 1 - i], name="b")
    module = te.build(te.create_schedule(b), [n, a, b], target)
    found = np.zeros(4, "int32")
    module(4, np.arange(4, dtype="int32"), found)
    np.testing.assert_array_equal(found, [3, 2, 1, 0])


def test_launches_of_cuda_count_by_the_sizes():
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b)
    outer, inner = s[b].split(b.op.axis[0], factor=64)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    description = te.build(s, [a, b], "cuda").imported_modules[0].description
    assert [p for p in description["params"] if p.get("implied")] == [{"name": "n", "dtype": "int32", "implied": True}]
    assert "n" in str(description["launches"][0]["grid"])


def test_a_variable_that_nothing_tells_is_refused():
    q, a = te.var("q", "float32"), te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] * q, name="b")
    with pytest.raises(te.LowerError, match="'q' is used, but is neither an argument nor a size"):
        te.lower(te.create_schedule(b), [a, b])


@pytest.mark.parametrize(
    "size", ["m", ["add", "n"], ["no such", "n", 1], ["add", ["add", "n", "q"], 1], {"n": 1}, None]
)
def test_a_file_s_sizes_are_checked_before_they_are_computed(size):
    params = [{"name": "a", "dtype": "int32", "shape": ["n", size]}, {"name": "n", "dtype": "int32", "implied": True}]
    with pytest.raises((ValueError, TypeError, KeyError)):
        parameters_of({"params": params})
    assert parameters_of({"params": [{**params[0], "shape": ["n", ["sub", "n", 1]]}, params[1]]})[1].implied
