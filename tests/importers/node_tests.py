"""ONNX's own backend tests: `python -m tests.importers.node_tests [--device X2_1204] [--match WORD] [--jobs N]`.

Every node test with static shapes and tensors of numbers is imported and computed: by the references of layers
(REFERENCE), or on the simulator of a target, where at least `LEAST_SHARE` pass. `backend_tests.NOT_PASSED` lists those that do not pass, by the reason, and
`NO_KERNEL` why the build for a target refuses others.
"""

from __future__ import annotations

import argparse
import pickle
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto
from onnx.reference.ops import op_pool_common

from compass_core import files
from compass_core.errors import CompassError
from compassc import onnx_backend
from compassc.importers.onnx.backend_tests import no_kernel, reason
from compassc.importers.refusals import RefusedModel
from compassc.onnx_backend.running import as_array

LEAST = 1e-6
"""Absolute tolerance: sums in float32."""
LEAST_SHARE = 0.97
"""Of all tests but those of floats of 8 and 4 bits, how many pass on a target."""
SMALL_FLOATS = re.compile(r"float[84]|e4m3|e5m2|e8m0|e2m1", re.IGNORECASE)
STEPS = {"float16": 2e-3, "bfloat16": 1.6e-2}
"""Relative tolerance of types where one step is more than the test's own."""
STORE = Path(__file__).parents[2] / "build" / f"node-tests-{onnx.__version__}-{np.__version__}.pickle"
"""What `loaded` gives, by the versions that made it."""


class Result(NamedTuple):
    """How a test went: "passed", "refused" (with the reason), "no kernel" (a listed reason) or "failed".

    `folded`: nothing was left to compute.
    """

    name: str
    status: str
    why: str = ""
    folded: bool = False


def is_static(model: onnx.ModelProto) -> bool:
    """Whether all inputs and outputs are tensors of numbers with fixed shapes."""
    for value in (*model.graph.input, *model.graph.output):
        tensor = value.type.tensor_type
        if value.type.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
            return False
        if tensor.elem_type == TensorProto.STRING or any(not d.HasField("dim_value") for d in tensor.shape.dim):
            return False
    return True


POOLS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "AVG": lambda windows, p: windows.mean(-1),
    "MAX": lambda windows, p: windows.max(-1),
    "LPPOOL": lambda windows, p: (np.abs(windows) ** p).sum(-1) ** (1.0 / p),
}
"""What ONNX's reference computes of the numbers of each window, for all windows at once."""


def pool(
    padded: np.ndarray,
    x_shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    out_shape: Sequence[int],
    kind: str,
    *padding: object,
    p: int = 1,
    _of_onnx: Callable[..., np.ndarray] = op_pool_common.pool,
    **rest: object,
) -> np.ndarray:
    """ONNX's reference of pools, but that windows without padding or gaps are computed together: to the bit the same."""
    if padding or rest:
        return _of_onnx(padded, x_shape, kernel, strides, out_shape, kind, *padding, p=p, **rest)
    axes = tuple(range(2, padded.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(kernel), axes)
    windows = windows[(..., *(slice(None, None, s) for s in strides), *(slice(None) for _ in axes))]
    return POOLS[kind](windows.reshape(*windows.shape[: padded.ndim], -1), p).astype(padded.dtype)


@cache
def loaded() -> dict[str, Any]:
    """All node tests by name. ONNX takes seconds to compute them, so that processes share them in a file."""
    from onnx.backend.test.case import base
    from onnx.backend.test.loader import load_model_tests

    if STORE.exists():
        return pickle.loads(STORE.read_bytes())
    # reading the source of each test, for ONNX's pages, takes long, and windows one by one take most of the time
    pages = mock.patch.object(base, "process_snippet", return_value=("", ""))
    with warnings.catch_warnings(), pages, mock.patch.object(op_pool_common, "pool", pool):
        warnings.simplefilter("ignore")
        tests = {t.name: t for t in load_model_tests(kind="node") if t.model is not None}
    files.write(STORE, pickle.dumps(tests))
    return tests


@cache
def all_tests() -> dict[str, Any]:
    """The tests that graphs can be held against, by name."""
    return {name: t for name, t in loaded().items() if is_static(t.model)}


def run(name: str, device: str) -> Result:
    """Runs a test."""
    test = loaded()[name]
    folded = False
    try:
        rep = onnx_backend.prepare(test.model, device)
        for inputs, outputs in test.data_sets:
            with np.errstate(all="ignore"):
                found = rep.run(inputs)
            graphs = [g for g, _ in rep.runnable._made.values()]
            folded = all(layer.type in ("Input", "Constant", "Reshape") for g in graphs for layer in g.layers)
            for got, want in zip(found, outputs, strict=True):
                compare(got, as_array(want), test)
    except RefusedModel as error:
        return Result(name, "refused", str(error.refusals[0]))
    except (CompassError, AssertionError) as error:
        if known := no_kernel(reasons_of(error)):
            return Result(name, "no kernel", known)
        return Result(name, "failed", " ".join(str(error).split())[:200])
    except Exception as error:  # noqa: BLE001 - one test must not end the run
        return Result(name, "failed", f"{type(error).__name__}: {error}"[:200])
    return Result(name, "passed", folded=folded)


def reasons_of(error: Exception) -> list[str]:
    """Why layers have no kernels: what each error of a build says with its notes; empty for other errors."""
    found = getattr(error, "errors", (error,))
    if any(getattr(e, "code", "") != "no-plugin" for e in found):
        return []
    return [" ".join([e.message, *(n.message for n in e.notes)]) for e in found]


def compare(got: np.ndarray, want: np.ndarray, test: Any) -> None:
    """Assertion that two arrays are equal within the test's tolerance."""
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    assert got.dtype == want.dtype, f"type {got.dtype}, expected {want.dtype}"
    relative = max(test.rtol, STEPS.get(want.dtype.name, 0))
    wide = [a.astype(np.float64) for a in (got, want)]
    np.testing.assert_allclose(*wide, rtol=relative, atol=max(test.atol, LEAST))


def run_all(names: list[str], device: str, jobs: int) -> list[Result]:
    """Runs tests in processes."""
    if jobs <= 1:
        return [run(name, device) for name in names]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(run, names, [device] * len(names), chunksize=8))


def main() -> int:
    parser = argparse.ArgumentParser(description="ONNX's backend tests")
    parser.add_argument("--device", default=onnx_backend.REFERENCE)
    parser.add_argument("--match", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="a sample of so many")
    given = parser.parse_args()
    names = [n for n in all_tests() if re.search(given.match, n)]
    names = names[:: max(1, len(names) // given.count)] if given.count else names
    start = time.time()
    results = run_all(names, given.device, given.jobs)
    unexpected = 0
    for result in results:
        listed = bool(reason(result.name))
        if (
            (result.status == "passed") == listed
            and given.device == onnx_backend.REFERENCE
            or (result.status not in ("passed", "no kernel") and not listed)
        ):
            unexpected += 1
            print(f"{result.name}: {result.status} {result.why}{' (it is listed)' if listed else ''}")
    counts = Counter(r.status for r in results)
    folded = sum(r.folded for r in results)
    share = counts["passed"] / max(1, len(results))
    wide = [r for r in results if not SMALL_FLOATS.search(r.name)]
    of_wide = sum(r.status == "passed" for r in wide) / max(1, len(wide))
    print(
        f"{len(results)} tests: {dict(counts)}, {share:.1%} passed, of which {folded} computed at import; "
        f"{time.time() - start:.0f} s on {given.device}; without floats of 8 and 4 bits {of_wide:.1%} of {len(wide)}"
    )
    whole = not given.match and not given.count
    return 1 if unexpected or (whole and of_wide < LEAST_SHARE) else 0


if __name__ == "__main__":
    sys.exit(main())
