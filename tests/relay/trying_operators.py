"""Operators of Relay on the inputs of their samples: types, references, and expressions built for the host."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from compassc import targets, te
from compassc.operators.declare import Sample
from compassc.relay.operators import Op
from compassc.relay.types import Related, TensorType, TupleType, Type

TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}


def type_of(value: Any) -> Type:
    """The type of an array, or of a list of them."""
    if isinstance(value, (list, tuple)):
        return TupleType([type_of(v) for v in value])
    return TensorType(value.shape, str(value.dtype))


class Case:
    """An operator on one of its samples."""

    def __init__(self, op: Op, sample: Sample, kind: str) -> None:
        self.op, self.sample, self.kind = op, sample, kind
        arrays = sample.inputs(kind, zlib.crc32(op.name.encode()))[1]
        self.arrays = [np.asarray(3, kind) if isinstance(a, tuple) else a for a in arrays]  # () is a scalar
        self.attrs = op.record(**sample.options) if op.record else None
        assert op.relation is not None
        found = op.relation([type_of(a) for a in self.arrays], self.attrs)
        self.type = found.result if isinstance(found, Related) else found
        assert self.type is not None, f"{self} has no type"

    def __repr__(self) -> str:
        return f"{self.op.name} {self.kind} {[np.shape(a) for a in self.flat()]} {sorted(self.sample.options)}"

    def reference(self) -> list[Any]:
        """What the reference gives, one array after the other."""
        assert self.op.reference is not None
        found = self.op.reference(self.attrs, self.arrays, self.type)
        return list(found) if isinstance(found, tuple) else [found]

    def fields(self) -> list[TensorType]:
        return list(self.type.fields) if isinstance(self.type, TupleType) else [self.type]  # type: ignore

    def flat(self) -> list[Any]:
        return [a for given in self.arrays for a in (given if isinstance(given, list) else [given])]


def cases(op: Op) -> list[Case]:
    """An operator on all samples, with all types."""
    made = []
    for sample in op.samples:
        typed = any(isinstance(a, (tuple, list)) for a in sample.args)
        made += [Case(op, sample, kind) for kind in (op.types if typed else op.types[:1])]
    return made


def built(group: list[Case]) -> None:
    """All expressions of some cases in one kernel for the host, held against the references."""
    args, given, results, outs = [], [], [], []
    for case in group:
        arrays = case.flat()
        tensors = [te.placeholder(a.shape, str(a.dtype), name=f"x{len(args) + n}") for n, a in enumerate(arrays)]
        made = list(case.op.compute(case.attrs, tensors, case.type))
        assert len(made) == len(case.fields()), case
        args, given, outs = args + tensors, given + arrays, outs + made
        results.append((case, [np.zeros(t.shape, t.dtype) for t in case.fields()]))
    module = targets.build(te.create_schedule([t.op for t in outs]), [*args, *outs], "llvm -opt-level=1")
    module(*given, *(r for _, found in results for r in found))
    for case, found in results:
        compare(case, found, case.reference())


def compare(case: Case, found: list[Any], wanted: list[Any]) -> None:
    for f, w in zip(found, wanted, strict=True):
        assert f.shape == w.shape, case
        if f.dtype.kind in "iub":
            np.testing.assert_array_equal(f, w, err_msg=str(case))
        else:
            bound = TOLERANCE[str(f.dtype)]
            np.testing.assert_allclose(f.astype("f8"), w.astype("f8"), rtol=bound, atol=bound, err_msg=str(case))
