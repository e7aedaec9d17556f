"""A product of matrices on the host with its default schedule, against NumPy's BLAS on as many threads."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

from benchmarks.core import Goal, Result

SIZES, THREADS = (512, 1024), (1, 2)
GOALS = {
    f"{size} {count}": Goal(
        f"float32 {size}^3 with its default schedule against NumPy, threads: {count}", "x", 0.6, at_most=False
    )
    for size in SIZES
    for count in THREADS
}
_PROGRAM = """
import sys, time
import numpy as np
from compassc import targets, te, topi
n = int(sys.argv[1])
a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
c = topi.matmul(a, b)
module = targets.build(topi.schedule(c, "llvm"), [a, b, c], "llvm")
x, y = (np.random.default_rng(i).random((n, n), "f4") for i in (0, 1))
own, theirs = np.zeros((n, n), "f4"), np.zeros((n, n), "f4")
def one(f):
    start = time.perf_counter(); f(); return time.perf_counter() - start
runs = [lambda: module(x, y, own), lambda: np.matmul(x, y, out=theirs)]
for f in runs: f()
assert np.allclose(own, theirs, rtol=1e-3)
times = [[one(f) for f in runs] for _ in range(40)]
print(*[min(column) for column in zip(*times)])
"""


def measure() -> dict[str, Result]:
    """Each number of threads in a process of its own: BLAS reads it when it is loaded. The least of times by turns."""
    results = {}
    for size, count in product(SIZES, THREADS):
        own = {
            name: str(count)
            for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "COMPASS_THREADS")
        }
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(size)],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=True,
        )
        ours, blas = map(float, done.stdout.split())
        results[f"{size} {count}"] = Result(blas / ours, f"{1e3 * ours:.2f} ms, NumPy {1e3 * blas:.2f} ms")
    return results
