"""Reductions of axes, what is largest, and normalisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from compassc.importers.declare import Constant
from compassc.importers.onnx.names import SAME_REDUCTIONS
from compassc.importers.onnx.protobuf import numpy_type
from compassc.importers.onnx.reading import Reducing
from compassc.importers.values import Refused
from compassc.relay.frontend.terms import INDEX, Expressions, Term, operator

Step = Callable[[Expressions, Term], Term]


def _same(b: Expressions, x: Term) -> Term:
    return x


def _unary(name: str) -> Step:
    return lambda b, x: b.call(name, x)


def _square(b: Expressions, x: Term) -> Term:
    return b.call("multiply", x, x)


def _root(b: Expressions, x: Term) -> Term:
    return b.call("sqrt", x) if x.is_float else b.cast(b.call("sqrt", b.cast(x, "float64")), x.dtype)


REDUCTIONS: dict[str, tuple[Step, str, Step]] = {
    **{onnx: (_same, relay, _same) for relay, onnx in SAME_REDUCTIONS.items()},
    "ReduceL1": (_unary("abs"), "sum", _same),
    "ReduceL2": (_square, "sum", _root),
    "ReduceSumSquare": (_square, "sum", _same),
    "ReduceLogSum": (_same, "sum", _unary("log")),
}
"""What is done with elements, what reduces them, and what is done with that."""


def reduced(b: Expressions, name: str, x: Term, axes: Sequence[int], keep: bool) -> Term:
    """A reduction over axes, counted from the front."""
    first, relay, last = REDUCTIONS[name]
    if not axes:
        return last(b, first(b, x))
    along = {"axis": list(axes), "keepdims": keep}
    if x.kind == "bool":  # the largest is whether there is one
        return b.call({"max": "any", "min": "all"}[relay], x, **along)
    if 0 in x.shape and relay in ("max", "min"):
        return _of_nothing(b, x, relay, along)
    return last(b, b.call(relay, first(b, x), **along))


def _of_nothing(b: Expressions, x: Term, relay: str, along: Mapping[str, object]) -> Term:
    """The extreme of no elements: that of all numbers of the type."""
    low, high = (-np.inf, np.inf) if x.is_float else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    shape = b.call("sum", x, **along).shape
    return b.full(b.of(np.asarray(low if relay == "max" else high, x.dtype)), list(shape))


def _stable(b: Expressions, x: Term, axes: Sequence[int], keep: bool) -> Term:
    """The logarithm of the sum of exponentials, which does not overflow."""
    if not axes:
        return x
    if 0 in x.shape:
        return b.call("log", reduced(b, "ReduceSum", b.call("exp", x), axes, keep))
    kind = x.kind if x.is_float else "float64"
    wide = b.cast(x, kind)
    top = reduced(b, "ReduceMax", wide, axes, True)
    zero = b.call("where", b.call("isfinite", top), top, b.call("zeros_like", top))
    total = b.call("log", reduced(b, "ReduceSum", b.call("exp", b.call("subtract", wide, zero)), axes, True))
    made = b.call("add", total, zero)
    return b.cast(made if keep else b.squeeze(made, axes), x.dtype)


def _reduction(name: str, b: Expressions, x: Term, axes: Constant | None = None, *, asked: Reducing) -> Term:
    chosen, keep = asked.over(x, axes), bool(asked.keepdims)
    return _stable(b, x, chosen, keep) if name == "ReduceLogSumExp" else reduced(b, name, x, chosen, keep)


for _name in (*REDUCTIONS, "ReduceLogSumExp"):
    operator(_name)(partial(_reduction, _name))


@operator("ArgMax", "ArgMin")
def place_of_extreme(b: Expressions, x: Term, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Term:
    found = b.call(b.op.lower(), x, axis=axis, keepdims=bool(keepdims), select_last_index=bool(select_last_index))
    return b.cast(found, INDEX)


# -- normalisations


@operator("Softmax", "LogSoftmax", since=13)
def softmax(b: Expressions, x: Term, *, axis: int = -1) -> Term:
    return b.call({"Softmax": "nn.softmax", "LogSoftmax": "nn.log_softmax"}[b.op], x, axis=x.axis(axis))


@operator("Hardmax", since=13)
def hardmax(b: Expressions, x: Term, *, axis: int = -1) -> Term:
    at = x.axis(axis)
    size = x.shape[at]
    if not isinstance(size, int):
        raise Refused("the size of its axis is only known at run time")
    places = b.call("argmax", x, axis=at)
    one, zero = (np.asarray(v, x.dtype) for v in (1, 0))
    return b.call("one_hot", places, one, zero, depth=size, axis=at, dtype=x.kind)


@operator("BatchNormalization")
def batch_normalization(
    b: Expressions, x: Term, scale: Term, bias: Term, mean: Term, variance: Term, *, epsilon: float = 1e-5,
    momentum: float = 0.9, training_mode: int = 0, spatial: int = 1,
) -> Term:  # fmt: skip
    if training_mode:
        raise Refused("operators of training are not supported")
    if not spatial:
        raise Refused("its attribute 'spatial' is 0")
    wide = [b.cast(v, x.dtype) for v in (scale, bias, mean, variance)]
    return b.call("nn.batch_norm", x, *wide, axis=1 if x.rank > 1 else 0, epsilon=epsilon)


def _scaled(b: Expressions, x: Term, wide: Term, axes: list[int], epsilon: float, scale: Term) -> tuple[Term, Term]:
    """By the root of the mean of squares, and one over it."""
    spread = b.call("mean", b.call("multiply", wide, wide), axis=axes, keepdims=True)
    by = b.call("divide", b.of(1, wide), b.call("sqrt", b.call("add", spread, epsilon)))
    return b.call("multiply", b.cast(b.call("multiply", wide, by), x.dtype), scale), by


@operator("LayerNormalization", since=17)
def layer_normalization(
    b: Expressions, x: Term, scale: Term, bias: Term | None = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> list[Term]:  # fmt: skip
    """Over all axes from `axis` on; its mean and one over its deviation are results, too."""
    axes, wide = list(range(x.axis(axis), x.rank)), b.cast(x, numpy_type(stash_type))
    mean = b.call("mean", wide, axis=axes, keepdims=True)
    made, by = _scaled(b, x, b.call("subtract", wide, mean), axes, epsilon, scale)
    return [made if bias is None else b.call("add", made, bias), mean, by]


@operator("RMSNormalization")
def rms_normalization(
    b: Expressions, x: Term, scale: Term, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Term:
    wide = b.cast(x, numpy_type(stash_type))
    return _scaled(b, x, wide, list(range(x.axis(axis), x.rank)), epsilon, scale)[0]


@operator("InstanceNormalization", since=6)
def instance_normalization(b: Expressions, x: Term, scale: Term, bias: Term, *, epsilon: float = 1e-5) -> Term:
    return b.call("nn.instance_norm", x, scale, bias, axis=1, epsilon=epsilon)


@operator("LRN")
def local_response(
    b: Expressions, x: Term, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Term:
    if size % 2:
        return b.call("nn.lrn", x, size=size, axis=1, alpha=alpha, beta=beta, bias=bias)
    raise Refused(f"its size {size} is even")


@operator("LpNormalization")
def lp_normalization(b: Expressions, x: Term, *, axis: int = -1, p: int = 2) -> Term:
    norm = reduced(b, "ReduceL1" if p == 1 else "ReduceL2", x, [x.axis(axis)], True)
    nothing = b.call("equal", norm, 0)
    return b.call("where", nothing, b.call("zeros_like", x), b.call("divide", x, norm))
