"""Operators of the table on the inputs of their samples, held against their references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compassc import targets, te, topi
from compassc.operators.declare import Operator, Sample
from compassc.topi.schedules import inputs_of

TOLERANCE = {"float16": 2e-2, "float32": 2e-4}


def wanted_of(operator: Operator, sample: Sample, arrays: list[Any]) -> list[Any]:
    """What the reference gives, of narrow reals in float32."""

    def widened(a: Any) -> Any:
        if isinstance(a, list) and a and isinstance(a[0], np.ndarray):
            return [widened(x) for x in a]
        return a.astype("float32") if isinstance(a, np.ndarray) and a.dtype == np.float16 else a

    with np.errstate(all="ignore"):
        found = operator.evaluate(*map(widened, arrays), **sample.options)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def compare(name: str, kind: str, found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted), name
    for f, w in zip(found, wanted, strict=True):
        w = np.asarray(w).reshape(f.shape)
        if f.dtype.kind in "iub":
            np.testing.assert_array_equal(f, w.astype(f.dtype), err_msg=name)
        else:
            tolerance = TOLERANCE.get(kind, 2e-4)
            np.testing.assert_allclose(f.astype("f8"), w.astype("f8"), rtol=tolerance, atol=tolerance, err_msg=name)


def tried(
    operator: Operator,
    target: str,
    seed: int = 0,
    most: int = 99,
    together: bool = False,
    kinds: Sequence[str] = (),
) -> int:
    """Builds all samples of an operator for all types with default schedules, calls them and compares; gives how many.

    `most`: samples for each type; `together`: all in one kernel; `kinds`: of these types, all for none.
    """
    cases = []
    for kind in kinds or operator.types:
        for sample in operator.samples[:most]:
            tensors, arrays = sample.inputs(kind, seed)
            outs = operator.define(*tensors, **sample.options)
            outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
            cases.append((f"{operator.name} {kind} {sample}", kind, tensors, arrays, outs, sample))
    for group in [cases] if together else [[case] for case in cases]:
        _run(operator, group, target)
    return len(cases)


def _run(operator: Operator, cases: list[Any], target: str) -> None:
    """One kernel for some cases."""
    args, given, ends = [], [], []
    for label, kind, tensors, arrays, outs, sample in cases:
        args += [t for x in tensors for t in (x if isinstance(x, list) else [x]) if isinstance(t, te.Tensor)]
        given += [a for x in arrays for a in (x if isinstance(x, list) else [x]) if isinstance(a, np.ndarray)]
        results = [np.zeros([d.value for d in t.shape], str(t.dtype)) for t in outs]
        ends.append((label, kind, results, wanted_of(operator, sample, arrays)))
    outs = [t for case in cases for t in case[4]]
    try:
        assert set(inputs_of(outs)) <= set(args)
        module = targets.build(topi.schedule(outs, target), [*args, *outs], target)
        module(*given, *(r for _, _, results, _ in ends for r in results))
    except Exception as error:
        raise AssertionError(f"{cases[0][0]}: {error}") from error
    for label, kind, results, wanted in ends:
        compare(label, kind, results, wanted)
