"""Dot products that add to an accumulator, near both ends of its range, where hosts take rarely used ways."""

import numpy as np
import pytest

from compassc.dsl import BuildManager, load_kernels

KERNEL = """
from compassc.dsl import script as S

@S.prim_func
def k(acc: S.ptr("{r}", "global"), x: S.ptr("{x}", "global"), y: S.ptr("{y}", "global"), out: S.ptr("{r}", "global"), n: S.i32):
    for i in range(S.get_local_id(), n, S.get_local_size()):
        S.vstore(S.{op}(S.vload(acc + i * {lanes}), S.vload(x + i * {many}), S.vload(y + i * {many})), out + i * {lanes})
"""
VECTORS, FIRST = 1500, 24
TERMS = {"vdpa": 2, "vqdpa": 4}


def edges(rng, dtype, shape):
    """Numbers of which half are an end of the type; the first vectors have its smallest, the next its largest only."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    kind = rng.integers(0, 4, shape)
    x = np.where(kind == 0, low, np.where(kind == 1, high, rng.integers(low, high, shape, endpoint=True)))
    x[:8], x[8:16] = low, high
    return x.astype(dtype)


def accumulators(rng, dtype, shape):
    """Numbers near both ends, anywhere, and near 0; in the first vectors each end, and what one step from 0 is."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    near, kind = rng.integers(0, high // 8, shape), rng.integers(0, 4, shape)
    anywhere = rng.integers(low, high, shape, endpoint=True)
    x = np.select([kind == 0, kind == 1, kind == 2], [high - near, low + near, anywhere], near % 9)
    for first in (0, 8):
        x[first : first + 4] = np.array([low, high, max(low, -1), 0])[:, None]
    return x.astype(dtype)


@pytest.mark.parametrize("march", ["native", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("y", ["int", "uint"])
@pytest.mark.parametrize("x", ["int", "uint"])
@pytest.mark.parametrize(("op", "bits"), [("vdpa", 8), ("vdpa", 16), ("vqdpa", 8)])
def test_sums_are_cut_once_and_exactly(op, bits, x, y, march, tmp_path):
    terms = TERMS[op]
    lanes = 256 // bits // terms
    dtypes = {"x": f"{x}{bits}", "y": f"{y}{bits}", "r": f"{'uint' if x == y == 'uint' else 'int'}{bits * terms}"}
    (tmp_path / "k.py").write_text(KERNEL.format(op=op, lanes=lanes, many=lanes * terms, **dtypes))
    rng = np.random.default_rng(bits + terms)
    a, b = (edges(rng, dtypes[n], (VECTORS, lanes, terms)) for n in "xy")
    acc = accumulators(rng, dtypes["r"], (VECTORS, lanes))
    ends = np.iinfo(dtypes["r"])
    sums = acc.astype(object) + (a.astype(object) * b.astype(object)).sum(axis=2)
    expected = np.clip(sums, ends.min, ends.max).astype(dtypes["r"])
    kernel = load_kernels(tmp_path / "k.py").entry()
    for run, n in ((BuildManager(cc_options=f"-march={march}").build(kernel), VECTORS), (kernel, FIRST)):
        out = np.zeros_like(acc)
        run(acc[:n].reshape(-1), a[:n].reshape(-1), b[:n].reshape(-1), out.reshape(-1), n)
        assert (out[:n] == expected[:n]).all()
    assert (expected != sums).any() and (expected == sums).any()
