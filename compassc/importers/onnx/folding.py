"""Nodes whose inputs are known are computed at import.

`QUICK` has the arithmetic on shapes that most models are full of; everything else is computed by the reference
implementation of the package onnx, which takes a moment to load. What that takes is known before
(`compassc.importers.onnx.costs`); operators whose cost is not known become layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compass_core.reading.budget import Budget
from compass_core.reading.limits import COMPUTED_BYTES, COMPUTED_ELEMENTS
from compassc.importers.onnx.costs import OF_ROWS, Attributes, Inputs, cost
from compassc.importers.onnx.protobuf import array_of, attribute_value, elem_type, numpy_type
from compassc.importers.values import Refused

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, SparseTensorProto

RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


def is_random(node: NodeProto) -> bool:
    """Whether a node gives other numbers each time."""
    training = node.op_type == "Dropout" and len(node.input) > 2
    return node.op_type in RANDOM or training


def evaluate(node: NodeProto, inputs: Sequence[Any], opset: int, budget: Budget) -> list[Array] | None:
    """The outputs of a node for known inputs; None when it is not one of those that are computed at import
    (`compassc.importers.onnx.costs`). What it takes is asked of the budget before."""
    where = f"the node '{node.name or node.op_type}' ({node.op_type})"
    if node.op_type == "Constant":
        return [_constant(node, budget, where)]
    if node.domain not in ("", "ai.onnx") or node.op_type in OF_ROWS and opset < 13:
        return None
    attributes = {a.name: attribute_value(a) for a in node.attribute}
    needed = cost(node.op_type, inputs, attributes)
    if needed is None:
        return None
    if any(a is not None and a.dtype.kind in "OUS" for a in inputs):
        raise Refused("text is not supported")
    budget.take(COMPUTED_ELEMENTS, needed.touched, where)
    width = max((a.itemsize for a in inputs if a is not None), default=8)
    budget.take(COMPUTED_BYTES, needed.made * width, where)
    made = _evaluated(node, inputs, opset, attributes)
    if not needed.made:
        copies = (a for a in made or () if not any(np.may_share_memory(a, i) for i in inputs if i is not None))
        budget.take(COMPUTED_BYTES, sum(a.nbytes for a in copies), where)
    return made


def _evaluated(node: NodeProto, inputs: Sequence[object], opset: int, given: Attributes) -> list[Array] | None:
    if node.op_type in QUICK:
        found = QUICK[node.op_type](inputs, given)
        if found is not None:
            return [np.asarray(found)]
    return _by_reference(node, inputs, opset)


def _by_reference(node: NodeProto, inputs: Sequence[object], opset: int) -> list[Array] | None:
    from onnx.reference import ReferenceEvaluator

    feeds = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
    with np.errstate(all="ignore"):
        try:
            found = ReferenceEvaluator(_model(node, feeds, opset)).run(None, feeds)
        except NotImplementedError:
            return None
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    if any(not isinstance(f, (np.ndarray, np.generic)) for f in found):
        return None
    arrays = [np.asarray(f) for f in found]
    return arrays if all(a.dtype.kind not in "OUS" for a in arrays) else None


def _constant(node: NodeProto, budget: Budget, where: str) -> Array:
    """The content of a Constant node."""
    for a in node.attribute:
        if a.name == "value":
            array = array_of(a.t)
            budget.take(COMPUTED_BYTES, array.nbytes, where)
            return array
        if a.name in ("value_float", "value_floats"):
            return np.asarray(attribute_value(a), np.float32)
        if a.name in ("value_int", "value_ints"):
            return np.asarray(attribute_value(a), np.int64)
        if a.name == "sparse_value":
            return dense(a.sparse_tensor, budget)
    raise Refused("text constants are not supported")


def dense(sparse: SparseTensorProto, budget: Budget) -> Array:
    """A sparse tensor with its zeros."""
    values, indices = array_of(sparse.values), array_of(sparse.indices)
    where = f"the sparse tensor '{sparse.values.name}'"
    budget.take(COMPUTED_BYTES, prod(sparse.dims) * values.itemsize, where)
    full = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        full.reshape(-1)[indices] = values
    else:
        full[tuple(indices.T)] = values
    return full


def _model(node: NodeProto, feeds: dict[str, Any], opset: int) -> ModelProto:
    """A model of one node."""
    from onnx import helper

    inputs = [helper.make_tensor_value_info(n, elem_type(v.dtype), v.shape) for n, v in feeds.items()]
    outputs = [helper.make_empty_tensor_value_info(n) for n in node.output if n]
    graph = helper.make_graph([node], "constant", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


# -- arithmetic on shapes

Quick = Callable[[Inputs, Attributes], Any]


def _gather(x: Inputs, given: Attributes) -> Any:
    return np.take(x[0], x[1], given.get("axis", 0))


def _concat(x: Inputs, given: Attributes) -> Array:
    return np.concatenate([a for a in x if a is not None], given["axis"])


def _cast(x: Inputs, given: Attributes) -> Any:
    to = numpy_type(given["to"])
    plain = x[0].dtype.kind in "iub" and to.kind in "iu" or to == np.float32 and x[0].dtype.kind in "iubf"
    return x[0].astype(to) if plain else None


def _axes(x: Inputs, given: Attributes) -> tuple[int, ...] | None:
    listed = x[1] if len(x) > 1 else given.get("axes")
    return None if listed is None else tuple(int(a) for a in np.asarray(listed).reshape(-1))


def _slice(x: Inputs, given: Attributes) -> Any:
    if len(x) < 3:
        return None
    starts, ends = (np.asarray(v).reshape(-1) for v in x[1:3])
    axes = x[3].reshape(-1) if len(x) > 3 and x[3] is not None else range(len(starts))
    steps = x[4].reshape(-1) if len(x) > 4 and x[4] is not None else [1] * len(starts)
    at: list[slice] = [slice(None)] * x[0].ndim
    for a, s, e, t in zip(axes, starts, ends, steps, strict=True):
        at[int(a)] = slice(max(int(s), -x[0].shape[int(a)]), int(e), int(t))
    return x[0][tuple(at)]


def _divide(x: Inputs, given: Attributes) -> Any:
    if x[0].dtype.kind in "iu":
        if (x[1] == 0).any():
            return None
        return (np.sign(x[0]) * np.sign(x[1]) * (np.abs(x[0]) // np.abs(x[1]))).astype(x[0].dtype)
    return x[0] / x[1]


def _reshape(x: Inputs, given: Attributes) -> Any:
    shape = [int(d) for d in x[1]] if len(x) > 1 else list(given["shape"])
    if not given.get("allowzero"):
        shape = [x[0].shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return x[0].reshape(shape)


def _constant_of_shape(x: Inputs, given: Attributes) -> Array:
    value = given.get("value", np.zeros(1, np.float32)).reshape(-1)[0]
    return np.full([int(d) for d in x[0]], value)


def _same_types(make: Callable[[Any, Any], object]) -> Quick:
    return lambda x, given: make(x[0], x[1]) if x[0].dtype == x[1].dtype and not given else None


QUICK: dict[str, Quick] = {
    "Identity": lambda x, given: x[0],
    "Shape": lambda x, given: np.asarray(x[0].shape[slice(given.get("start", 0), given.get("end"))], np.int64),
    "Size": lambda x, given: np.asarray(x[0].size, np.int64),
    "Gather": _gather,
    "Concat": _concat,
    "Cast": _cast,
    "Squeeze": lambda x, given: np.squeeze(x[0], _axes(x, given)),
    "Unsqueeze": lambda x, given: np.expand_dims(x[0], _axes(x, given) or ()),
    "Slice": _slice,
    "Add": _same_types(np.add),
    "Sub": _same_types(np.subtract),
    "Mul": _same_types(np.multiply),
    "Div": _divide,
    "Equal": _same_types(np.equal),
    "Greater": _same_types(np.greater),
    "Less": _same_types(np.less),
    "And": _same_types(np.logical_and),
    "Not": lambda x, given: ~x[0] if x[0].dtype == bool else None,
    "Where": lambda x, given: np.where(x[0], x[1], x[2]) if x[1].dtype == x[2].dtype else None,
    "Reshape": _reshape,
    "Transpose": lambda x, given: np.transpose(x[0], given.get("perm")),
    "Expand": lambda x, given: x[0] * np.ones([int(d) for d in x[1]], x[0].dtype) if x[0].dtype != bool else None,
    "ConstantOfShape": _constant_of_shape,
    "Range": lambda x, given: np.arange(*(v.item() for v in x), dtype=x[0].dtype) if x[0].dtype.kind == "i" else None,
    "Sqrt": lambda x, given: np.sqrt(x[0]) if x[0].dtype == np.float32 else None,
    "Neg": lambda x, given: -x[0],
}
"""Each gives None for the forms it leaves to the reference."""
