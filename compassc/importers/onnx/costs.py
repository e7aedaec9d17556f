"""What the outputs of a node will take, from its inputs, before it is computed.

Operators that are not here are not computed at import: they become layers, also where their inputs are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from compass_core.namedtuple import NamedTuple

Inputs = Sequence[Any]
Attributes = dict[str, Any]
Size = Callable[[Inputs, Attributes], int]


class Cost(NamedTuple):
    """Elements of the outputs, and elements that are read and made for them."""

    made: int
    touched: int


SLOW = 100
"""What an element counts where the reference visits each in Python."""
VIEWS = frozenset("Flatten Identity Reshape Shape Size Slice Split Squeeze Transpose Unsqueeze".split())
"""Operators that look at no element."""
NO_LARGER = frozenset(
    "Abs Acos Acosh ArgMax ArgMin Asin Asinh Atan Atanh BitCast BitwiseNot Cast CastLike Ceil Celu "
    "Clip Compress Concat Cos Cosh CumProd CumSum DepthToSpace Dropout Elu Erf Exp EyeLike Floor "
    "GlobalAveragePool HardSigmoid HardSwish Hardmax InstanceNormalization IsInf IsNaN "
    "LayerNormalization LeakyRelu Log LogSoftmax MeanVarianceNormalization Mish Neg NonZero Not "
    "QuantizeLinear Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum ReduceSumSquare Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus "
    "Softsign SpaceToDepth Sqrt Swish Tan Tanh ThresholdedRelu TopK Trilu Unique Gelu "
    "RMSNormalization".split()
)
"""Operators whose outputs have no more elements than their inputs, but for a small factor."""
OF_ROWS = frozenset("Hardmax LogSoftmax Softmax".split())
"""Operators that are over several axes before opset 13, which ONNX's reference does not know."""
NO_LARGER_SLOW = frozenset("ReverseSequence ScatterElements Scatter ScatterND TensorScatter".split())
BROADCAST = frozenset(
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod "
    "Mul Or PRelu Pow Sub Sum Where Xor".split()
)


def _product(sizes: object) -> int:
    return prod(int(d) for d in np.asarray(sizes).reshape(-1))


def _broadcast(x: Inputs, given: Attributes) -> int:
    return prod(np.broadcast_shapes(*(a.shape for a in x if a is not None)))


def _expand(x: Inputs, given: Attributes) -> int:
    return prod(np.broadcast_shapes(x[0].shape, tuple(int(d) for d in x[1])))


def _pad(x: Inputs, given: Attributes) -> int:
    pads = [int(p) for p in (x[1] if len(x) > 1 else given.get("pads", ()))]
    axes = [int(a) for a in x[3]] if len(x) > 3 and x[3] is not None else range(x[0].ndim)
    shape = list(x[0].shape)
    for i, axis in enumerate(axes):
        shape[axis] += abs(pads[i]) + abs(pads[i + len(pads) // 2])
    return prod(shape)


def _gather(x: Inputs, given: Attributes) -> int:
    axis = int(given.get("axis", 0))
    found: int = int(x[1].size) * prod(d for i, d in enumerate(x[0].shape) if i != axis % max(x[0].ndim, 1))
    return found


def _gather_nd(x: Inputs, given: Attributes) -> int:
    indexed = x[1].shape[-1] + int(given.get("batch_dims", 0))
    found: int = prod(x[1].shape[:-1]) * prod(x[0].shape[indexed:])
    return found


def _range(x: Inputs, given: Attributes) -> int:
    start, limit, delta = (a.item() for a in x)
    return max(0, int(np.ceil((limit - start) / delta)))


def _centred(x: Inputs, given: Attributes) -> int:
    axes = given.get("axes", range(x[0].ndim))
    shape = list(x[0].shape)
    for axis, size in zip(axes, x[1].reshape(-1), strict=True):
        shape[axis] = max(shape[axis], int(size))
    return prod(shape)


def _product_of_matrices(a: tuple[int, ...], b: tuple[int, ...]) -> Cost:
    rows, columns = (a[:-1], (*b[:-2], *b[-1:])) if len(b) > 1 else (a[:-1], ())
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    made = prod(batch) * prod(rows[-1:]) * prod(columns[-1:])
    return Cost(made, made * a[-1])


def _matmul(x: Inputs, given: Attributes) -> Cost:
    return _product_of_matrices(x[0].shape, x[1].shape)


def _gemm(x: Inputs, given: Attributes) -> Cost:
    a, b = (s[::-1] if given.get(k) else s for s, k in ((x[0].shape, "transA"), (x[1].shape, "transB")))
    return _product_of_matrices(a, b)


def _einsum(x: Inputs, given: Attributes) -> Cost | None:
    """Each name of an axis counts once; not computed where axes have none (`...`)."""
    left, arrow, right = given["equation"].replace(" ", "").partition("->")
    terms = left.split(",")
    if "." in left or len(terms) != len(x):
        return None
    sizes = {c: d for term, a in zip(terms, x, strict=True) for c, d in zip(term, a.shape, strict=True)}
    out = right if arrow else [c for c in sizes if left.count(c) == 1]
    return Cost(prod(sizes[c] for c in out), prod(sizes.values()))


LARGER: dict[str, Size] = {
    "Expand": _expand,
    "Tile": lambda x, given: x[0].size * _product(x[1]),
    "Pad": _pad,
    "Gather": _gather,
    "OneHot": lambda x, given: x[0].size * _product(x[1]),
    "Range": _range,
    "ConstantOfShape": lambda x, given: _product(x[0]),
    "CenterCropPad": _centred,
    "BlackmanWindow": lambda x, given: _product(x[0]),
    "HammingWindow": lambda x, given: _product(x[0]),
    "HannWindow": lambda x, given: _product(x[0]),
    "MelWeightMatrix": lambda x, given: (_product(x[1]) // 2 + 1) * _product(x[0]) + _product(x[0]),
    "AffineGrid": lambda x, given: _product(x[1]),
}
LARGER_SLOW: dict[str, Size] = {"GatherND": _gather_nd, "GatherElements": lambda x, given: int(x[1].size)}
PRODUCTS: dict[str, Callable[[Inputs, Attributes], Cost | None]] = {
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "Det": lambda x, given: Cost(x[0].size, x[0].size * x[0].shape[-1]),
}


def cost(op: str, inputs: Inputs, given: Attributes) -> Cost | None:
    """The cost of a node with these inputs and attributes; None for operators that are not computed at import.

    What contradicts each other may raise the errors of NumPy and of lists.
    """
    read = sum(a.size for a in inputs if a is not None)
    if op in VIEWS:
        return Cost(0, 0)
    if op in PRODUCTS:
        return PRODUCTS[op](inputs, given)
    if op in LARGER or op in LARGER_SLOW:
        made = (LARGER.get(op) or LARGER_SLOW[op])(inputs, given)
        return Cost(made, read + made * (SLOW if op in LARGER_SLOW else 1))
    if op in BROADCAST:
        made = _broadcast(inputs, given)
        return Cost(made, made)
    if op in NO_LARGER:
        return Cost(0, read)
    return Cost(0, read * SLOW) if op in NO_LARGER_SLOW else None
