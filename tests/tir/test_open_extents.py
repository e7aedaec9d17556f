"""Steps on loops whose extents are known at run time only."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te, tir
from compassc.analysis.interpret import Interpreter


def rows():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "int32", name="A")
    k = te.reduce_axis((0, m), name="k")
    return te.create_prim_func([a, te.compute((n,), lambda i: te.sum(a[i, k], k), name="B")])


def tables():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "int32", name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2, name="B")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: b[i, j] + j, name="C")])


def _partial(s, factors, place, axis):
    made = s.rfactor(s.split(s.get_loops("B")[1], factors)[place], axis)
    s.compute_at(made, s.get_loops("B")[0])


def _reindexed(s):
    made = s.reindex_cache_write("B", 0, "lsram", lambda i, k: (i,))
    s.reverse_compute_at(made, s.get_loops("B")[0])


def _swapped(s):
    s.transform_layout("B", "B", lambda i, j: (j, i))
    s.compute_at("B", s.get_loops("C")[1])


ON_ROWS = {
    "rfactor of an inner loop": lambda s: _partial(s, [None, 4], 1, 1),
    "rfactor of an outer loop": lambda s: _partial(s, [4, None], 0, -1),
    "a loop for each TEC": lambda s: s.bind(s.split(s.get_loops("B")[1], [4, None])[0], "threadIdx.x"),
    "write_at": lambda s: s.write_at(s.get_loops("B")[0], "B", 0, "lsram"),
    "reindex_cache_write": _reindexed,
    "transform_block_layout": lambda s: s.transform_block_layout("B", lambda i, k: (k, i)),
    "decompose_reduction": lambda s: s.decompose_reduction("B", s.get_loops("B")[0]),
}
ON_TABLES = {
    "transform_layout": _swapped,
    "compute_at": lambda s: s.compute_at("B", s.get_loops("C")[1]),
    "reindex": lambda s: (s.compute_at(s.reindex("C", ("read", 0)), s.get_loops("C")[1]), s.compute_inline("B")),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("C"),
}


@pytest.mark.parametrize("step", ON_ROWS)
def test_sums_of_open_extents(step):
    s = tir.Schedule(rows())
    ON_ROWS[step](s)
    kernel = Interpreter(tir.lower(s.mod, "X2_1204").entry_func)
    for n, m in ((5, 7), (8, 16), (1, 1), (16, 3), (3, 0)):
        a, b = np.arange(n * m, dtype="int32").reshape(n, m), np.full(n, 7, "int32")
        kernel(a, b, n, m)
        np.testing.assert_array_equal(b, a.sum(1))


@pytest.mark.parametrize("step", ON_TABLES)
def test_elements_of_open_extents(step):
    s = tir.Schedule(tables())
    ON_TABLES[step](s)
    kernel = Interpreter(tir.lower(s.mod, "X2_1204").entry_func)
    for n, m in ((5, 7), (8, 16), (1, 1), (3, 0)):
        a, c = np.arange(n * m, dtype="int32").reshape(n, m), np.zeros((n, m), "int32")
        kernel(a, c, n, m)
        np.testing.assert_array_equal(c, a * 2 + np.arange(m))


def test_maps_of_open_extents_exchange_axes_only():
    s = tir.Schedule(tables())
    with pytest.raises(tir.ScheduleError, match="the map back is found for constant extents only, that of 'i' is n"):
        s.transform_block_layout("C", lambda i, j: (i // 4, j, i % 4))
    with pytest.raises(tir.ScheduleError, match="no known extent"):
        s.transform_layout("B", "B", lambda i, j: (i + j, j))
