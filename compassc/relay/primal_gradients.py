"""The gradients of operators: of a call and the gradient of its result, those of its arguments.

Each is written in calls of operators, so that gradients of gradients are there, too. Operands that were stretched get the sum
(`collapse_sum_like`); whole numbers, conditions and what does not move results get zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.builders import build, call
from compassc.relay.expr import Call, Expr, Tuple, TupleGetItem
from compassc.relay.layouts import layout
from compassc.relay.operators import Op
from compassc.relay.passes._functions import scalar, tensor
from compassc.relay.types import TupleType

Gradient = Callable[[Call, Expr], Sequence[Expr]]
"""Of a typed call and the gradient of its result (a tuple's is a tuple): the gradients of its arguments."""
GRADIENTS: dict[str, Gradient] = {}
"""The gradients of operators. What programs register (`register_gradient`) holds against it."""


def gradient_of(op: Op) -> Gradient | None:
    """The gradient of an operator, None where there is none."""
    registered: Gradient | None = op.get_attr("FPrimalGradient")
    return registered or GRADIENTS.get(op.name)


def _gradient(*names: str) -> Callable[[Gradient], Gradient]:
    def keep(function: Gradient) -> Gradient:
        GRADIENTS.update(dict.fromkeys(names, function))
        return function

    return keep


def _number(value: float, like: Expr) -> Expr:
    return scalar(value, tensor(like).dtype)


def _extents(e: Expr) -> list[int]:
    """The extents of a tensor. ExpressionError where one is open."""
    return list(tensor(e).concrete_shape)


def zeros(e: Expr) -> Expr:
    """Zeros of the type of a value."""
    if isinstance(e.checked_type, TupleType):
        fields = [TupleGetItem(e, i).typed(t) for i, t in enumerate(e.checked_type.fields)]
        return Tuple([zeros(f) for f in fields])
    return call("zeros_like", e)


def _like(gradient: Expr, e: Expr) -> Expr:
    """A gradient in the shape of the operand that it is of."""
    return call("collapse_sum_like", gradient, e)


def _mask(condition: Expr, like: Expr) -> Expr:
    return call("cast", condition, dtype=tensor(like).dtype)


# ------------------------------------------------------------------------------------------------------- of each element


Number = Callable[[float], Expr]
"""Constants of the type that is differentiated in."""


def _power(x: Expr, exponent: Expr) -> Expr:
    return call("power", x, exponent)


_DERIVATIVES: dict[str, Callable[[Expr, Number], Expr]] = {
    "negative": lambda x, n: n(-1),
    "abs": lambda x, n: call("sign", x),
    "exp": lambda x, n: call("exp", x),
    "log": lambda x, n: n(1) / x,
    "log2": lambda x, n: n(1 / math.log(2)) / x,
    "log10": lambda x, n: n(1 / math.log(10)) / x,
    "sqrt": lambda x, n: n(0.5) * _power(x, n(-0.5)),
    "rsqrt": lambda x, n: n(-0.5) * _power(x, n(-1.5)),
    "sin": lambda x, n: call("cos", x),
    "cos": lambda x, n: -call("sin", x),
    "tan": lambda x, n: n(1) + _power(call("tan", x), n(2)),
    "sinh": lambda x, n: call("cosh", x),
    "cosh": lambda x, n: call("sinh", x),
    "tanh": lambda x, n: n(1) - call("tanh", x) * call("tanh", x),
    "asin": lambda x, n: _power(n(1) - x * x, n(-0.5)),
    "acos": lambda x, n: -_power(n(1) - x * x, n(-0.5)),
    "atan": lambda x, n: n(1) / (n(1) + x * x),
    "asinh": lambda x, n: _power(n(1) + x * x, n(-0.5)),
    "acosh": lambda x, n: _power(x * x - n(1), n(-0.5)),
    "atanh": lambda x, n: n(1) / (n(1) - x * x),
    "erf": lambda x, n: n(2 / math.sqrt(math.pi)) * call("exp", -(x * x)),
    "sigmoid": lambda x, n: call("sigmoid", x) * (n(1) - call("sigmoid", x)),
    "nn.relu": lambda x, n: call("where", call("greater", x, n(0)), n(1), n(0)),
    **{name: lambda x, n: n(0) for name in ("ceil", "floor", "round", "trunc", "sign")},
}
"""The derivatives of functions of one number."""


@_gradient(*_DERIVATIVES)
def _element(e: Call, grad: Expr) -> Sequence[Expr]:
    assert isinstance(e.op, Op)
    (x,) = e.args
    return [grad * _DERIVATIVES[e.op.name](x, lambda value: _number(value, x))]


@_gradient("nn.leaky_relu")
def _leaky_relu(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    (x,) = e.args
    return [call("where", call("greater", x, call("zeros_like", x)), grad, grad * _number(e.attrs["alpha"], x))]


@_gradient("clip")
def _clip(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    (x,) = e.args
    within = call(
        "logical_and",
        call("greater_equal", x, _number(e.attrs["a_min"], x)),
        call("less_equal", x, _number(e.attrs["a_max"], x)),
    )
    return [call("where", within, grad, call("zeros_like", grad))]


@_gradient("copy", "annotation.checkpoint", "on_device", "annotation.stop_fusion")
def _copy(e: Call, grad: Expr) -> Sequence[Expr]:
    return [grad]


@_gradient("cast", "cast_like")
def _cast(e: Call, grad: Expr) -> Sequence[Expr]:
    return [call("cast", grad, dtype=tensor(e.args[0]).dtype), *map(zeros, e.args[1:])]


@_gradient("nn.dropout")
def _dropout(e: Call, grad: Expr) -> Sequence[Expr]:
    return [TupleGetItem(grad, 0)]


@_gradient(
    *"zeros_like ones_like zeros ones arange shape_of ndarray_size argmax argmin argsort not_equal equal less "
    "less_equal greater greater_equal logical_and logical_or logical_not logical_xor dyn.zeros dyn.ones".split()
)
def _nothing(e: Call, grad: Expr) -> Sequence[Expr]:
    return [zeros(a) for a in e.args]


@_gradient("full", "dyn.full")
def _full(e: Call, grad: Expr) -> Sequence[Expr]:
    return [build("sum", grad), *map(zeros, e.args[1:])]


@_gradient("full_like")
def _full_like(e: Call, grad: Expr) -> Sequence[Expr]:
    return [zeros(e.args[0]), build("sum", grad)]


# ---------------------------------------------------------------------------------------------------------- of two numbers


@_gradient("add")
def _add(e: Call, grad: Expr) -> Sequence[Expr]:
    return [_like(grad, a) for a in e.args]


@_gradient("subtract")
def _subtract(e: Call, grad: Expr) -> Sequence[Expr]:
    return [_like(grad, e.args[0]), _like(call("negative", grad), e.args[1])]


@_gradient("multiply")
def _multiply(e: Call, grad: Expr) -> Sequence[Expr]:
    x, y = e.args
    return [_like(grad * y, x), _like(grad * x, y)]


@_gradient("divide")
def _divide(e: Call, grad: Expr) -> Sequence[Expr]:
    x, y = e.args
    return [_like(grad / y, x), _like(call("negative", grad * x / (y * y)), y)]


@_gradient("power")
def _raised(e: Call, grad: Expr) -> Sequence[Expr]:
    x, y = e.args
    return [
        _like(grad * y * call("power", x, y - _number(1, y)), x),
        _like(grad * call("log", x) * call("power", x, y), y),
    ]


@_gradient("maximum", "minimum")
def _chosen(e: Call, grad: Expr) -> Sequence[Expr]:
    x, y = e.args
    assert isinstance(e.op, Op)
    first = call("greater_equal" if e.op.name == "maximum" else "less_equal", x, y)
    nothing = call("zeros_like", grad)
    return [_like(call("where", first, grad, nothing), x), _like(call("where", first, nothing, grad), y)]


@_gradient("where")
def _where(e: Call, grad: Expr) -> Sequence[Expr]:
    condition, x, y = e.args
    nothing = call("zeros_like", grad)
    return [
        zeros(condition),
        _like(call("where", condition, grad, nothing), x),
        _like(call("where", condition, nothing, grad), y),
    ]


# -------------------------------------------------------------------------------------------------------------- reductions


def _axes(e: Call) -> list[int]:
    """The axes that a reduction is along."""
    attrs, rank = e.attrs, len(tensor(e.args[0]).shape)
    assert attrs is not None
    given = (
        range(rank) if attrs["axis"] is None else [attrs["axis"]] if isinstance(attrs["axis"], int) else attrs["axis"]
    )
    axes = {a % rank for a in given}
    return sorted(set(range(rank)) - axes if attrs["exclude"] else axes)


def _spread(e: Call, value: Expr) -> Expr:
    """What belongs to the result of a reduction at all places that it was made of."""
    assert e.attrs is not None
    for axis in [] if e.attrs["keepdims"] else _axes(e):
        value = call("expand_dims", value, axis=axis, num_newaxis=1)
    return call("broadcast_to_like", value, e.args[0])


def _count(e: Call) -> float:
    """How many elements are one in a reduction."""
    return math.prod([_extents(e.args[0])[a] for a in _axes(e)])


@_gradient("sum")
def _sum(e: Call, grad: Expr) -> Sequence[Expr]:
    return [_spread(e, grad)]


@_gradient("mean")
def _mean(e: Call, grad: Expr) -> Sequence[Expr]:
    return [_spread(e, grad) * _number(1 / _count(e), e.args[0])]


@_gradient("max", "min")
def _extreme(e: Call, grad: Expr) -> Sequence[Expr]:
    (x,) = e.args
    return [_spread(e, grad) * _mask(call("equal", x, _spread(e, Call(e.op, e.args, e.attrs))), x)]


@_gradient("variance")
def _variance(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    x, mean = e.args
    count = _count(e) - bool(e.attrs.get("unbiased"))
    found = _spread(e, grad) * _number(2 / count, x) * (x - mean)
    return [found, _like(call("negative", found), mean)]


# ----------------------------------------------------------------------------------------------------------------- shapes


@_gradient(
    *"reshape contrib_reverse_reshape dyn.reshape reshape_like nn.batch_flatten squeeze expand_dims dyn.squeeze dyn.expand_dims".split()
)
def _reshaped(e: Call, grad: Expr) -> Sequence[Expr]:
    return [
        call("reshape_like", grad, e.args[0], lhs_begin=0, lhs_end=None, rhs_begin=0, rhs_end=None),
        *map(zeros, e.args[1:]),
    ]


@_gradient("broadcast_to", "broadcast_to_like", "dyn.broadcast_to", "collapse_sum_to", "collapse_sum_like")
def _stretched(e: Call, grad: Expr) -> Sequence[Expr]:
    assert isinstance(e.op, Op)
    back = call("broadcast_to_like", grad, e.args[0]) if "collapse" in e.op.name else _like(grad, e.args[0])
    return [back, *map(zeros, e.args[1:])]


@_gradient("transpose")
def _transposed(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    rank = len(tensor(e).shape)
    order = [a % rank for a in e.attrs["axes"] or range(rank - 1, -1, -1)]
    return [call("transpose", grad, axes=[order.index(a) for a in range(rank)])]


@_gradient("layout_transform")
def _laid_out(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    back = call("layout_transform", grad, src_layout=e.attrs["dst_layout"], dst_layout=e.attrs["src_layout"])
    extents = _extents(e.args[0])
    filled = math.prod(_extents(e)) != math.prod(extents)
    return [build("strided_slice", back, [0] * len(extents), extents) if filled else back]


def _fields(e: Expr) -> Sequence[Expr]:
    """The parts of an argument that is a tuple."""
    t = e.checked_type
    assert isinstance(t, TupleType)
    return e.fields if isinstance(e, Tuple) else [TupleGetItem(e, i).typed(f) for i, f in enumerate(t.fields)]


@_gradient("concatenate")
def _joined(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    axis = e.attrs["axis"] % len(tensor(e).shape)
    ends: list[int] = []
    for f in _fields(e.args[0]):
        ends.append((ends[-1] if ends else 0) + _extents(f)[axis])
    return [build("split", grad, ends[:-1], axis) if ends[1:] else Tuple([grad])]


@_gradient("stack")
def _stacked(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    axis, count = e.attrs["axis"] % len(tensor(e).shape), len(_fields(e.args[0]))
    parts = build("split", grad, count, axis)
    return [Tuple([call("squeeze", TupleGetItem(parts, i), axis=[axis]) for i in range(count)])]


@_gradient("split")
def _split(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None and isinstance(e.checked_type, TupleType)
    parts = [TupleGetItem(grad, i) for i in range(len(e.checked_type.fields))]
    return [call("concatenate", Tuple(parts), axis=e.attrs["axis"])]


@_gradient("strided_slice")
def _sliced(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    extents, result, attrs = _extents(e.args[0]), _extents(e), e.attrs
    axes = attrs["axes"] or range(len(attrs["begin"]))
    begin, end, strides = [0] * len(extents), list(extents), [1] * len(extents)
    for i, axis in enumerate(a % len(extents) for a in axes):
        step = (
            1
            if attrs["slice_mode"] == "size" or not attrs["strides"]
            else attrs["strides"][i if len(attrs["strides"]) > 1 else 0]
        )
        first = attrs["begin"][i] + (extents[axis] if attrs["begin"][i] < 0 else 0)
        first = min(max(first, 0), extents[axis] - 1 if step < 0 else extents[axis])
        begin[axis], strides[axis] = first, step
        last = first + step * result[axis]
        end[axis] = last if last >= 0 else -extents[axis] - 1
    return [build("strided_set", zeros(e.args[0]), grad, *([int(v) for v in part] for part in (begin, end, strides)))]


@_gradient("nn.pad")
def _padded(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    if e.attrs["pad_mode"] != "constant":
        raise ExpressionError(f"nn.pad in mode {e.attrs['pad_mode']} has no gradient", "pad with a constant")
    widths = e.attrs["pad_width"]
    begin = [max(before, 0) for before, _ in widths]
    end = [n - max(behind, 0) for n, (_, behind) in zip(_extents(e), widths)]
    inner = build("strided_slice", grad, begin, end)
    back = build("nn.pad", inner, [(max(-before, 0), max(-behind, 0)) for before, behind in widths])
    return [back, _like(grad, e.args[1]) - _like(inner, e.args[1])]


@_gradient("tile")
def _tiled(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    reps, extents = list(e.attrs["reps"]), _extents(e.args[0])
    rank = max(len(reps), len(extents))
    reps, whole = [1] * (rank - len(reps)) + reps, [1] * (rank - len(extents)) + extents
    split = build("reshape", grad, [n for pair in zip(reps, whole) for n in pair])
    return [build("reshape", build("sum", split, axis=list(range(0, 2 * rank, 2))), extents)]


@_gradient("reverse")
def _reversed(e: Call, grad: Expr) -> Sequence[Expr]:
    return [Call(e.op, [grad], e.attrs)]


# ---------------------------------------------------------------------------------------------------------------- indices


@_gradient("gather_nd")
def _gathered(e: Call, grad: Expr) -> Sequence[Expr]:
    data, indices = e.args
    assert e.attrs is not None
    if e.attrs["batch_dims"]:
        raise ExpressionError("gather_nd with batch_dims has no gradient", "gather each of the batch")
    return [call("scatter_nd", zeros(data), indices, grad, mode="add"), zeros(indices)]


@_gradient("take")
def _taken(e: Call, grad: Expr) -> Sequence[Expr]:
    data, indices = e.args
    assert e.attrs is not None
    extents, where = _extents(data), _extents(indices)
    if e.attrs["batch_dims"]:
        raise ExpressionError("take with batch_dims has no gradient", "take from each of the batch")
    flat = e.attrs["axis"] is None
    axis = 0 if flat else e.attrs["axis"] % len(extents)
    size = math.prod(extents) if flat else extents[axis]
    kind = tensor(indices).dtype
    if e.attrs["mode"] == "wrap":
        places = call("floor_mod", indices, scalar(size, kind))
    else:
        places = call("clip", indices, a_min=0.0, a_max=float(size - 1))
    others = [] if flat else [n for i, n in enumerate(extents) if i != axis]
    inner = list(range(axis, axis + len(where)))
    order = inner + [i for i in range(len(where) + len(others)) if i not in inner]
    moved = build("reshape", call("transpose", grad, axes=order) if order else grad, [-1, *others])
    sums = build("zeros", [size, *others], tensor(data).dtype)
    added = call("scatter_nd", sums, build("reshape", places, [1, -1]), moved, mode="add")
    if flat:
        return [build("reshape", added, extents), zeros(indices)]
    back = [i + 1 if i < axis else 0 if i == axis else i for i in range(len(extents))]
    return [call("transpose", added, axes=back), zeros(indices)]


@_gradient("one_hot")
def _one_hot(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    kind, a = tensor(e).dtype, e.attrs
    mask = build("one_hot", e.args[0], scalar(1, kind), scalar(0, kind), a["depth"], a["axis"], kind)
    return [zeros(e.args[0]), build("sum", grad * mask), build("sum", grad * (scalar(1, kind) - mask))]


# --------------------------------------------------------------------------------------------------------------- products


@_gradient("nn.dense")
def _dense(e: Call, grad: Expr) -> Sequence[Expr]:
    data, weight = e.args
    units, inputs = _extents(weight)
    flat, rows = (
        (grad, data)
        if len(_extents(data)) == 2
        else (build("reshape", grad, (-1, units)), build("reshape", data, (-1, inputs)))
    )
    return [
        build("nn.dense", grad, build("transpose", weight), units=inputs),
        build("nn.dense", build("transpose", flat), build("transpose", rows), units=inputs),
    ]


@_gradient("nn.matmul", "nn.batch_matmul")
def _matrices(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None and isinstance(e.op, Op)
    x, y = e.args
    a, b, name = bool(e.attrs["transpose_a"]), bool(e.attrs["transpose_b"]), e.op.name
    if len(_extents(x)) > 2 and name == "nn.matmul":
        name = "nn.batch_matmul"
        y = call("expand_dims", y, axis=0, num_newaxis=1)

    def product(left: Expr, right: Expr, transpose_left: bool, transpose_right: bool) -> Expr:
        made: Expr = build(name, left, right, transpose_a=transpose_left, transpose_b=transpose_right)
        return made

    left = product(y, grad, b, True) if a else product(grad, y, False, not b)
    right = product(grad, x, True, a) if b else product(x, grad, not a, False)
    return [_like(left, x), _like(right, e.args[1])]


@_gradient("nn.bias_add")
def _biased(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    return [grad, build("sum", grad, axis=[e.attrs["axis"]], exclude=True)]


@_gradient("nn.softmax")
def _softmax(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    y = Call(e.op, e.args, e.attrs)
    return [(grad - build("sum", grad * y, axis=[e.attrs["axis"]], keepdims=True)) * y]


@_gradient("nn.log_softmax")
def _log_softmax(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    axis = e.attrs["axis"]
    return [grad - build("sum", grad, axis=[axis], keepdims=True) * build("nn.softmax", e.args[0], axis=axis)]


@_gradient("nn.cross_entropy", "nn.cross_entropy_with_logits")
def _cross_entropy(e: Call, grad: Expr) -> Sequence[Expr]:
    x, y = e.args
    assert isinstance(e.op, Op)
    share = call("negative", grad) * _number(1 / _extents(x)[0], x)
    if e.op.name.endswith("logits"):
        return [_like(share * y, x), _like(share * x, y)]
    return [_like(share * y / x, x), _like(share * call("log", x), y)]


# ---------------------------------------------------------------------------------------------------------------- windows


@_gradient("nn.max_pool2d", "nn.avg_pool2d")
def _pooled(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None and isinstance(e.op, Op)
    if any(d != 1 for d in e.attrs["dilation"]):
        raise ExpressionError(f"{e.op.name} with dilation has no gradient", "pool without dilation")
    names = "pool_size strides padding layout out_layout ceil_mode count_include_pad".split()
    given = {n: e.attrs[n] for n in names if n in e.attrs}
    return [build(f"{e.op.name}_grad", grad, e.args[0], **given)]


@_gradient("nn.global_avg_pool2d")
def _pooled_whole(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    axes = layout(str(e.attrs["layout"]))
    size = math.prod([_extents(e.args[0])[i] for s in "HW" for i in axes.parts(s)])
    return [call("broadcast_to_like", grad * _number(1 / size, e.args[0]), e.args[0])]


@_gradient("nn.conv2d")
def _convolved(e: Call, grad: Expr) -> Sequence[Expr]:
    assert e.attrs is not None
    a = e.attrs
    own, kernel, out = str(a["data_layout"]), str(a["kernel_layout"]), str(a["out_layout"] or a["data_layout"])

    def plain(x: Expr, source: str, to: str) -> Expr:
        return x if source == to else build("layout_transform", x, source, to)

    data, weight, given = plain(e.args[0], own, "NCHW"), plain(e.args[1], kernel, "OIHW"), plain(grad, out, "NCHW")
    at, window = layout(own), layout(kernel)
    sizes = [[_extents(x)[names.index_of(s)] for s in "HW"] for x, names in ((e.args[0], at), (e, layout(out)))]
    extents = [_extents(e.args[1])[window.index_of(s)] for s in "HW"]
    pads = list(a["padding"]) * (4 // len(a["padding"])) if len(a["padding"]) != 2 else [*a["padding"]] * 2
    missing = [
        n - ((m - 1) * stride - before - behind + (k - 1) * dilation + 1)
        for n, m, stride, before, behind, k, dilation in zip(
            *sizes, a["strides"], pads[:2], pads[2:], extents, a["dilation"]
        )
    ]
    options = {n: a[n] for n in ("strides", "padding", "dilation", "groups")}
    channels = math.prod([_extents(e.args[0])[i] for i in at.parts("C")])
    outputs = math.prod([_extents(e)[i] for i in layout(out).parts("C")])
    weight = build(
        "reshape", weight, [outputs, -1, *extents]
    )  # a kernel of several outputs for each channel is one of all
    to_data = build(
        "nn.conv2d_transpose", given, weight, channels=channels, kernel_size=extents, kernel_layout="IOHW",
        output_padding=missing, **options,
    )  # fmt: skip
    to_weight = build("nn.conv2d_backward_weight", given, data, channels=outputs, kernel_size=extents, **options)
    rows = math.prod([_extents(e.args[1])[i] for i in window.parts("O")])
    whole = build("reshape", to_weight, [rows, -1, *extents])
    return [plain(to_data, "NCHW", own), plain(whole, "OIHW", kernel)]
