"""Write normalisations as what they are at inference, and drop dropout.

Before: a typed module.
After: no first result of `nn.batch_norm` and `nn.dropout` is asked for, and there is no `nn.layer_norm`, `nn.instance_norm`,
`nn.group_norm` and `nn.l2_normalize`: means, variances, products and sums take their places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, TupleGetItem
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import rewrite_functions, scalar, shape, tensor

NAME = "SimplifyInference"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return rewrite_functions(module, _simplified)


def _simplified(before: Expr, after: Expr) -> Expr:
    if isinstance(after, TupleGetItem) and isinstance(before, TupleGetItem) and after.index == 0:
        of = after.tuple_value
        if op_name(of) == "nn.dropout":
            assert isinstance(of, Call)
            return of.args[0]
        if op_name(of) == "nn.batch_norm":
            assert isinstance(of, Call) and isinstance(before.tuple_value, Call)
            return _batch_norm(before.tuple_value, of)
        return after
    rule = _RULES.get(op_name(after))
    if rule is None:
        return after
    assert isinstance(before, Call) and isinstance(after, Call)
    return rule(before, after)


def along(vector: Expr, axis: int, rank: int) -> Expr:
    """A vector with axes of extent 1 behind it, so that it lies along an axis of a tensor."""
    behind = rank - 1 - axis % rank
    return call("expand_dims", vector, axis=1, num_newaxis=behind) if behind else vector


def _batch_norm(before: Call, after: Call) -> Expr:
    data, gamma, beta, mean, variance = after.args
    attrs, dtype = after.attrs, tensor(before.args[3]).dtype
    assert attrs is not None
    deviation = call("sqrt", call("add", variance, scalar(attrs["epsilon"], dtype)))
    scale: Expr = call("divide", scalar(1.0, dtype), deviation)
    if attrs["scale"]:
        scale = call("multiply", scale, gamma)
    shift: Expr = call("multiply", call("negative", mean), scale)
    if attrs["center"]:
        shift = call("add", shift, beta)
    rank, axis = len(shape(before.args[0])), attrs["axis"]
    return call("add", call("multiply", data, along(scale, axis, rank)), along(shift, axis, rank))


def _normalised(before: Call, after: Call, data: Expr, axes: Sequence[int], dtype: str) -> Expr:
    """The data less its mean, over its deviation, along axes."""
    assert after.attrs is not None
    epsilon = scalar(after.attrs["epsilon"], dtype)
    mean = call("mean", data, axis=list(axes), keepdims=True, exclude=False)
    variance = call("variance", data, mean, axis=list(axes), keepdims=True, exclude=False, unbiased=False)
    deviation = call("sqrt", call("add", variance, epsilon))
    return call("divide", call("subtract", data, mean), deviation)


def _scaled(after: Call, made: Expr, axis: int, rank: int) -> Expr:
    assert after.attrs is not None
    _, gamma, beta = after.args
    if after.attrs["scale"]:
        made = call("multiply", made, along(gamma, axis, rank))
    return call("add", made, along(beta, axis, rank)) if after.attrs["center"] else made


def _layer_norm(before: Call, after: Call) -> Expr:
    assert after.attrs is not None
    t, axis = tensor(before.args[0]), after.attrs["axis"]
    made = _normalised(before, after, after.args[0], [axis], t.dtype)
    return _scaled(after, made, axis, len(t.shape))


def _instance_norm(before: Call, after: Call) -> Expr:
    assert after.attrs is not None
    t, axis = tensor(before.args[0]), after.attrs["axis"]
    rank = len(t.shape)
    others = [i for i in range(1, rank) if i != axis % rank]
    return _scaled(after, _normalised(before, after, after.args[0], others, t.dtype), axis, rank)


def _group_norm(before: Call, after: Call) -> Expr:
    assert after.attrs is not None
    t, axis, groups = tensor(before.args[0]), after.attrs["axis"], after.attrs["num_groups"]
    sizes, rank = list(t.concrete_shape), len(t.shape)
    axis %= rank
    parted = [*sizes[:axis], groups, sizes[axis] // groups, *sizes[axis + 1 :]]
    data = call("reshape", after.args[0], newshape=parted)
    made = _normalised(before, after, data, [i for i in range(1, rank + 1) if i != axis], t.dtype)
    return _scaled(after, call("reshape", made, newshape=sizes), axis, rank)


def _l2_normalize(before: Call, after: Call) -> Expr:
    assert after.attrs is not None
    data = after.args[0]
    axes = after.attrs["axis"]
    total = call("sum", call("multiply", data, data), axis=axes, keepdims=True, exclude=False)
    bounded = call("maximum", total, scalar(after.attrs["eps"], tensor(before.args[0]).dtype))
    return call("divide", data, call("sqrt", bounded))


_RULES: Mapping[str, Callable[[Call, Call], Expr]] = {
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _instance_norm,
    "nn.group_norm": _group_norm,
    "nn.l2_normalize": _l2_normalize,
}
