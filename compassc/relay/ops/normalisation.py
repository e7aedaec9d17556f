"""Softmax, normalisations, and losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.operators.calls import CallOperator, References, X
from compassc.operators.declare import Whole, sample
from compassc.operators.expressions import define
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, TupleWrapper
from compassc.relay.ops.declare import ANCHOR, OPAQUE, Meanings, declare, record
from compassc.relay.ops.elementwise import on_axis
from compassc.relay.ops.indexing import whole
from compassc.relay.ops.relations import axes_of, axis_of, differ, require, shaped
from compassc.relay.ops.shapes import extents
from compassc.relay.types import Related, TensorType, TupleType, Type
from compassc.te.tensor import Tensor


def _rows(a: Attrs, x: TensorType) -> Type:
    axis_of(a.axis, len(x.shape))
    return x


_soft_attrs = record("SoftmaxAttrs", axis=-1)
_SOFT = (sample((4, 9)), sample((3, 5, 2), axis=1), sample((7,)))
for _name, _body in (("softmax", "softmax"), ("fast_softmax", "softmax"), ("log_softmax", "log_softmax")):
    declare(f"nn.{_name}", "data, axis=-1", _rows, ANCHOR, *_SOFT, record=_soft_attrs, types=("float32", "float16"), level=1,
            body=lambda call, a, t, x, name=_body: call(name, x, a.axis))  # fmt: skip


def _vectors(count: int) -> Callable[..., Related]:
    """The rule of a tensor with so many vectors on its axis."""

    def rule(a: Attrs, x: TensorType, *rest: Type) -> Related:
        vector = TensorType((x.shape[axis_of(a.axis, len(x.shape))],), x.dtype)
        result: Type = x if count == 2 else TupleType([x, vector, vector])
        return Related(result, {n: vector for n in range(1, count + 1)})

    return rule


def _scaled(call: CallOperator[X], a: Attrs, shape: Sequence[int], normal: X, gamma: X, beta: X) -> X:
    """Numbers that are normal, by the factors and addends of their axis, where these are asked for."""
    made = call("multiply", normal, on_axis(call, a.axis, shape, gamma)) if a.scale else normal
    return call("add", made, on_axis(call, a.axis, shape, beta)) if a.center else made


def _batch(call: CallOperator[X], a: Attrs, t: TupleType, x: X, gamma: X, beta: X, mean: X, variance: X) -> Sequence[X]:
    shape = extents(x)
    spread = call("sqrt", call("add", variance, float(a.epsilon)))
    apart = call("subtract", x, on_axis(call, a.axis, shape, mean))
    normal = call("divide", apart, on_axis(call, a.axis, shape, spread))
    return [_scaled(call, a, shape, normal, gamma, beta), call("identity", mean), call("identity", variance)]


_NORM: dict[str, object] = {"epsilon": 1e-5, "center": True, "scale": True}
_PARAMETERS = "epsilon=1e-5, center=True, scale=True"
declare(
    "nn.batch_norm", f"data, gamma, beta, moving_mean, moving_var, axis=1, {_PARAMETERS}", _vectors(4), ANCHOR,
    sample((2, 3, 4), (3,), (3,), (3,), (3,), low=0.1), sample((2, 3), (3,), (3,), (3,), (3,), low=0.1, axis=-1, scale=False),
    record=record("BatchNormAttrs", axis=1, **_NORM), partial="gamma beta moving_mean moving_var", body=_batch, results=3,
    level=1,
)  # fmt: skip


def _normal(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    x = x.astype("float64")
    made: Array = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return made


def _normalised(axes: Callable[[Attrs, int], list[int]]) -> Meanings:
    """Reference and expression of a normalisation over the axes that a function of attributes and rank says."""

    def reference(a: Attrs, t: TensorType, x: Array, gamma: Array, beta: Array) -> Array:
        return _scaled(References(), a, x.shape, _normal(x, tuple(axes(a, x.ndim)), a.epsilon), gamma, beta)

    def compute(a: Attrs, t: TensorType, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        over = axes(a, x.ndim)
        mean = define("mean", x, over, True)
        apart = define("subtract", x, mean)
        variance = define("mean", define("multiply", apart, apart), over, True)
        normal = define("multiply", apart, define("rsqrt", define("add", variance, float(a.epsilon))))
        return _scaled(define, a, extents(x), normal, gamma, beta)

    return {"reference": reference, "compute": compute}


def _space(a: Attrs, rank: int) -> list[int]:
    """All axes but the batch and the channels."""
    return [d for d in range(1, rank) if d != a.axis % rank]


declare(
    "nn.instance_norm", f"data, gamma, beta, axis=1, {_PARAMETERS}", _vectors(2), OPAQUE, sample((2, 3, 4, 5), (3,), (3,)),
    sample((2, 4, 5, 3), (3,), (3,), axis=-1, center=False), record=record("InstanceNormAttrs", axis=1, **_NORM),
    partial="gamma beta", **_normalised(_space),
)  # fmt: skip
declare(
    "nn.layer_norm", f"data, gamma, beta, axis=-1, {_PARAMETERS}", _vectors(2), OPAQUE, sample((2, 3, 4), (4,), (4,)),
    sample((2, 3, 4), (3,), (3,), axis=1), record=record("LayerNormAttrs", axis=-1, **_NORM), partial="gamma beta",
    **_normalised(lambda a, rank: [a.axis % rank]),
)  # fmt: skip


def _groups(a: Attrs, x: TensorType, *rest: Type) -> Related:
    extent = x.shape[axis_of(a.axis, len(x.shape))]
    require(a.num_groups > 0 and not (isinstance(extent, int) and extent % a.num_groups), lambda: f"{extent} channels of {x} are no {a.num_groups} groups")  # fmt: skip
    return _vectors(2)(a, x, *rest)


def _in_groups(call: CallOperator[X], a: Attrs, x: X) -> tuple[X, list[int], list[int]]:
    """Groups as an axis of their own before the channels; the axes to normalise over; the shape without groups."""
    shape, at = extents(x), a.axis % x.ndim
    parts = [*shape[:at], a.num_groups, shape[at] // a.num_groups, *shape[at + 1 :]]
    return call("reshape", x, parts), [d for d in range(1, len(parts)) if d != at], shape


def _grouped(a: Attrs, t: TensorType, x: Array, gamma: Array, beta: Array) -> Array:
    parts, axes, shape = _in_groups(References(), a, x)
    return _scaled(References(), a, shape, _normal(parts, tuple(axes), a.epsilon).reshape(shape), gamma, beta)


def _grouped_value(a: Attrs, t: TensorType, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    parts, axes, shape = _in_groups(define, a, x)
    mean = define("mean", parts, axes, True)
    apart = define("subtract", parts, mean)
    variance = define("mean", define("multiply", apart, apart), axes, True)
    normal = define("multiply", apart, define("rsqrt", define("add", variance, float(a.epsilon))))
    return _scaled(define, a, shape, define("reshape", normal, shape), gamma, beta)


declare(
    "nn.group_norm", f"data, gamma, beta, num_groups, axis=1, {_PARAMETERS}", _groups, OPAQUE,
    sample((2, 6, 3, 4), (6,), (6,), num_groups=3), record=record("GroupNormAttrs", num_groups=0, axis=1, **_NORM),
    partial="gamma beta", reference=_grouped, compute=_grouped_value,
)  # fmt: skip


def _local(call: CallOperator[X], a: Attrs, t: TensorType, x: X) -> X:
    """Over a power of the sum of the squares of neighbours on an axis."""
    require(a.size % 2 == 1, lambda: f"size must be odd, it is {a.size}")
    shape, at, half = extents(x), a.axis % x.ndim, a.size // 2
    ends = [half if d == at else 0 for d in range(x.ndim)]
    squares = call("pad", call("multiply", x, x), ends, ends, 0.0)
    total = call("strided_slice", squares, [0], [shape[at]], [1], [at])
    for n in range(1, 2 * half + 1):
        total = call("add", total, call("strided_slice", squares, [n], [n + shape[at]], [1], [at]))
    scale = call("add", call("multiply", total, float(a.alpha / a.size)), float(a.bias))
    return call("divide", x, call("power", scale, float(a.beta)))


declare(
    "nn.lrn", "data, size=5, axis=1, bias=2, alpha=1e-05, beta=0.75", _rows, OPAQUE, sample((1, 7, 3, 2), size=3, alpha=0.1),
    record=record("LRNAttrs", size=5, axis=1, bias=2, alpha=0.0001, beta=0.75), body=_local,
)  # fmt: skip


def _unit(call: CallOperator[X], a: Attrs, t: TensorType, x: X) -> X:
    axes = axes_of(a.axis or None, x.ndim)
    total = call("sum", call("multiply", x, x), axes, True)
    return call("divide", x, call("sqrt", call("maximum", total, float(a.eps))))


def _unit_rule(a: Attrs, x: TensorType) -> Type:
    axes_of(a.axis or None, len(x.shape))
    return x


declare(
    "nn.l2_normalize", "data, eps, axis=None", _unit_rule, OPAQUE, sample((2, 3, 4), eps=1e-3, axis=[1]), sample((2, 3), eps=1e-3),
    record=record("L2NormalizeAttrs", eps=..., axis=None), body=_unit,
)  # fmt: skip
declare(
    "nn.dropout", "data, rate", lambda a, x: TupleType([x, x]), OPAQUE, sample((3, 4)), record=record("DropoutAttrs", rate=0.5),
    reference=lambda a, t, x: (x, np.ones_like(x)), stateful=True, build=False, level=1,
)  # fmt: skip


@builder("nn.dropout_raw")
def dropout_raw(data: object, rate: float = 0.5) -> TupleWrapper:
    """Elements at random as 0, others the larger, and which ones; where networks are run, all as they are."""
    return TupleWrapper(call("nn.dropout", data, rate=rate), 2)


@builder("nn.dropout")
def dropout(data: object, rate: float = 0.5) -> Expr:
    """The first result of `dropout_raw`."""
    return dropout_raw(data, rate)[0]


# ------------------------------------------------------------------------------------------------------------------ losses


def _loss(a: object, x: TensorType, y: TensorType) -> Type:
    require(
        len(x.shape) == 2 and len(y.shape) == 2, lambda: f"predictions and targets have two dimensions, not {x} and {y}"
    )
    require(not any(map(differ, x.shape, y.shape)), lambda: f"predictions {x} and targets {y} have different shapes")
    require(x.dtype == y.dtype, lambda: f"predictions {x} and targets {y} have different data types")
    return shaped(x, [])


def _entropy(call: CallOperator[X], a: Attrs, t: TensorType, x: X, y: X) -> X:
    return _entropy_of(call, call("log", x), y)


def _entropy_of(call: CallOperator[X], logarithms: X, y: X) -> X:
    total = call("sum", call("multiply", logarithms, y))
    return call("divide", call("negative", total), float(extents(y)[0]))


_LOSS = sample((3, 4), (3, 4), low=0.1, high=1.0)
declare("nn.cross_entropy", "predictions, targets", _loss, OPAQUE, _LOSS, body=_entropy)
declare("nn.cross_entropy_with_logits", "predictions, targets", _loss, OPAQUE, _LOSS,
        body=lambda call, a, t, x, y: _entropy_of(call, x, y))  # fmt: skip


def _likelihood(a: Attrs, x: TensorType, targets: TensorType, weights: Type) -> Related:
    require(len(x.shape) >= 2, lambda: f"the predictions need two dimensions, they are {x}")
    whole(targets, "the targets")
    wanted = [x.shape[0], *x.shape[2:]]
    fits = len(wanted) == len(targets.shape) and not any(map(differ, wanted, targets.shape))
    require(fits, lambda: f"the targets {targets} of predictions {x} must have the shape {tuple(wanted)}")
    require(a.reduction in ("none", "mean", "sum"), lambda: f"reduction is none, mean or sum, not '{a.reduction}'")
    return Related(shaped(x, wanted if a.reduction == "none" else []), {2: TensorType((x.shape[1],), x.dtype)})


def _nll(a: Attrs, t: TensorType, x: Array, targets: Array, weights: Array) -> Array:
    counted = targets != a.ignore_index
    places = np.where(counted, targets, 0)
    chosen = np.take_along_axis(x, np.expand_dims(places, 1), 1).squeeze(1).astype("float64")
    factors = np.where(counted, weights[places], 0).astype("float64")
    losses: Array = -chosen * factors
    if a.reduction != "none":
        losses = losses.sum() if a.reduction == "sum" else losses.sum() / factors.sum()
    return losses


declare(
    "nn.nll_loss", 'predictions, targets, weights, reduction="mean", ignore_index=-100', _likelihood, ANCHOR,
    sample((3, 4, 2), Whole((3, 2), 0, 4), (4,), low=0.1, ignore_index=1),
    sample((3, 4), Whole((3,), 0, 4), (4,), low=0.1, reduction="none", ignore_index=-100),
    record=record("NLLLossAttrs", reduction="mean", ignore_index=...), partial="weights", reference=_nll,
)  # fmt: skip
