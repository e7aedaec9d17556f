"""ONNX's own node tests as programs of Relay: `python -m tests.relay.onnx_programs [--by vm] [--match WORD] [--jobs N] [--count N]`.

Every node test of the package is imported (`relay.frontend.from_onnx`), run by the interpreter (`debug`) or by the virtual machine on the host
(`vm`), and held against the results that the package has. A model is refused, with its reason, or right.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from compass_core.errors import CompassError
from compassc import relay
from compassc.importers.refusals import RefusedModel
from compassc.relay import frontend, transform
from tests.importers.node_tests import compare, loaded


class Result(NamedTuple):
    """How a test went: "passed", "known" (passed once small inputs were known at import), "refused" (with the reason) or "failed"."""

    name: str
    status: str
    why: str = ""


def array_of(value: Any) -> Any:
    """A tensor of a test as an array, a sequence as a list of these."""
    if isinstance(value, TensorProto):
        return np.asarray(numpy_helper.to_array(value))
    return [array_of(v) for v in value] if isinstance(value, (list, tuple)) else np.asarray(value)


def values_of(found: Any) -> list[Any]:
    """What a program gave, by output."""
    if isinstance(found, (list, tuple)):
        return [v for f in found for v in ([values_of(f)] if isinstance(f, (list, tuple)) else values_of(f))]
    return [np.asarray(found.numpy() if hasattr(found, "numpy") else found)]


def with_known_inputs(model: Any, inputs: list[Any]) -> tuple[Any, list[Any]]:
    """The model with the content of inputs that have one axis at most, such as axes and shapes, and the inputs that are left."""
    made = ModelProto.FromString(model.SerializeToString())
    named = list(zip(made.graph.input, inputs, strict=True))
    small = [(i, v) for i, v in named if isinstance(v, np.ndarray) and v.ndim < 2 and v.dtype.kind in "iufb"]
    made.graph.initializer.extend(numpy_helper.from_array(v, i.name) for i, v in small)
    kept = [(i, v) for i, v in named if i.name not in {k.name for k, _ in small}]
    del made.graph.input[:]
    made.graph.input.extend(i for i, _ in kept)
    return made, [v for _, v in kept]


def try_one(test: Any, kind: str, known: bool) -> None:
    """Imports and runs a test. Assertion for results that are not right."""
    for inputs, outputs in test.data_sets:
        model, given = test.model, list(map(array_of, inputs))
        if known:
            model, given = with_known_inputs(model, given)
        module, _ = frontend.from_onnx(model)
        found = values_of(relay.create_executor(kind, transform.InferType()(module)).evaluate()(*given))
        single = len(outputs) == 1 and isinstance(array_of(outputs[0]), list)
        for got, want in zip([found] if single else found, map(array_of, outputs), strict=True):
            pairs = zip(got, want, strict=True) if isinstance(want, list) else [(got, want)]
            for one, other in pairs:
                compare(one, np.asarray(other), test)


def run(name: str, kind: str = "debug") -> Result:
    """Runs a test; where the model is refused once more with its small inputs known."""
    why = ""
    for known in (False, True):
        try:
            try_one(loaded()[name], kind, known)
            return Result(name, "known" if known else "passed", why)
        except RefusedModel as error:
            why = why or str(error.refusals[0])
        except CompassError as error:
            if not known or error.code != "onnx-model":  # with known inputs it may be no model any more
                return Result(name, "failed", " ".join(str(error).split())[:300])
        except Exception as error:  # noqa: BLE001 - one test must not end the run
            return Result(name, "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"[:300])
    return Result(name, "refused", why)


def run_all(names: list[str], kind: str, jobs: int) -> list[Result]:
    """Runs tests, in processes."""
    if jobs <= 1:
        return [run(name, kind) for name in names]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(run, names, [kind] * len(names), chunksize=16))


def main() -> int:
    parser = argparse.ArgumentParser(description="ONNX's backend tests as programs of Relay")
    parser.add_argument("--by", default="debug", choices=("debug", "vm", "graph"))
    parser.add_argument("--match", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="a sample of so many")
    parser.add_argument("--reasons", action="store_true", help="say why models are refused")
    given = parser.parse_args()
    names = [n for n in loaded() if re.search(given.match, n)]
    names = names[:: max(1, len(names) // given.count)] if given.count else names
    start = time.time()
    results = run_all(names, given.by, given.jobs)
    for result in results:
        if result.status == "failed" or given.reasons and result.status == "refused":
            print(f"{result.name}: {result.status} {result.why}")
    counts = Counter(r.status for r in results)
    print(
        f"{len(results)} tests: {dict(counts)}, {(counts['passed'] + counts['known']) / max(1, len(results)):.1%} right; {time.time() - start:.0f} s"
    )
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
