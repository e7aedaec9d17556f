"""Graphs of layers as programs: the body of a layer type, which says in calls of operators what a layer is, makes expressions where
`call` is a `Meaning`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import LayerError
from compassc.importers.refusals import Refusal
from compassc.importers.values import Refused
from compassc.layers.declare import all_types
from compassc.relay.expr import Expr, Var
from compassc.relay.frontend.operators.elementwise import rounded
from compassc.relay.frontend.terms import Expressions, Operand, Term
from compassc.relay.types import TensorType

Made = Callable[..., Term | list[Term]]
MOVING = (
    "Concat",
    "Crop",
    "Flatten",
    "Permute",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unsqueeze",
)
"""Layers that do the same with whole numbers as with real ones."""


class Meaning:
    """Calls of operators as expressions. Refused for operators that have none here."""

    def __init__(self, b: Expressions) -> None:
        self.b = b

    def constant(self, array: Array) -> Term:
        return self.b.known(array)

    def __call__(self, name: str, *operands: Operand, **attributes: object) -> Term | list[Term]:
        if name in PLAIN:
            return self.b.call(PLAIN[name], *_alike(operands), **attributes)
        if name not in MEANINGS:
            raise Refused(f"the operator {name} has no expression")
        return MEANINGS[name](self.b, *operands, **attributes)


def _alike(operands: Sequence[Operand]) -> Sequence[Operand]:
    """The operands, those of no tensor first where a tensor says their type."""
    first = next((o for o in operands if isinstance(o, Term)), None)
    return [o if isinstance(o, Term) or first is None else np.asarray(o, first.dtype) for o in operands]


PLAIN: Mapping[str, str] = {
    **{
        n: n
        for n in (
            "abs acos acosh add asin asinh atan atanh ceil cos cosh divide equal erf exp floor greater greater_equal isnan less "
            "less_equal log logical_and logical_not logical_or logical_xor maximum minimum multiply negative not_equal rsqrt sigmoid sign "
            "sin sinh sqrt subtract tan tanh trunc"
        ).split()
    },
    "relu": "nn.relu",
}
"""Operators of elements that are those of Relay."""


def _where(b: Expressions, condition: Term, x: Operand, y: Operand) -> Term:
    return b.call("where", condition, *_alike([x, y]))


def _power(b: Expressions, x: Term, y: Operand) -> Term:
    return b.call("power", *_alike([x, y]))


def _slice(
    b: Expressions, x: Term, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None, axes: Sequence[int] | None = None
) -> Term:  # fmt: skip
    return b.call(
        "strided_slice",
        x,
        begin=list(begin),
        end=list(end),
        strides=strides and list(strides),
        axes=axes and list(axes),
    )


def _pad(b: Expressions, x: Term, before: Sequence[int], after: Sequence[int] | None = None, value: float = 0) -> Term:
    widths = list(zip(before, before if after is None else after, strict=True))
    return b.call("nn.pad", x, pad_width=widths, pad_value=np.asarray(value, x.dtype))


def _conv(
    b: Expressions, x: Term, w: Term, stride: object, padding: object, dilation: object = 1, groups: int = 1
) -> Term:
    return b.call(
        "nn.conv2d", x, w, strides=stride, padding=padding, dilation=dilation, groups=groups, channels=w.shape[3],
        kernel_size=list(w.shape[:2]), data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip


def _depthwise(b: Expressions, x: Term, w: Term, stride: object, padding: object, dilation: object = 1) -> Term:
    h, k, channels, many = w.shape
    filters = b.call("reshape", w, newshape=[h, k, 1, channels * many])
    return _conv(b, x, filters, stride, padding, dilation, channels)


def _pool(
    b: Expressions, x: Term, kernel: object, stride: object, dilation: object, padding: object, kind: str, ceil_mode: bool = False,
    layout: str = "NCHW", count_include_pad: bool = True,
) -> Term:  # fmt: skip
    counted = {"count_include_pad": count_include_pad} if kind == "avg" else {}
    return b.call(
        f"nn.{kind}_pool2d", x, pool_size=kernel, strides=stride, dilation=dilation, padding=padding, ceil_mode=ceil_mode,
        layout=layout, **counted,
    )  # fmt: skip


def _elu(b: Expressions, x: Term, alpha: float = 1.0) -> Term:
    below = b.call("multiply", b.call("subtract", b.call("exp", b.call("minimum", x, 0)), 1), alpha)
    return b.call("where", b.call("greater", x, 0), x, below)


def _hard_swish(b: Expressions, x: Term) -> Term:
    part = b.call("clip", b.call("add", x, 3), a_min=0.0, a_max=6.0)
    return b.call("divide", b.call("multiply", x, part), 6)


def _half_of(b: Expressions, x: Term, share: Term) -> Term:
    return b.call("multiply", b.call("multiply", x, 0.5), b.call("add", share, 1))


def _gelu(b: Expressions, x: Term) -> Term:
    return _half_of(b, x, b.call("erf", b.call("multiply", x, 0.5**0.5)))


def _gelu_tanh(b: Expressions, x: Term) -> Term:
    cube = b.call("multiply", b.call("multiply", b.call("multiply", x, x), x), 0.044715)
    return _half_of(b, x, b.call("tanh", b.call("multiply", b.call("add", x, cube), (2 / np.pi) ** 0.5)))


def _reduction(name: str) -> Made:
    return lambda b, x, axis=None, keepdims=False: b.call(name, x, axis=axis, keepdims=keepdims)


MEANINGS: dict[str, Made] = {
    **{n: _reduction(n) for n in ("sum", "mean", "max", "min", "prod", "all", "any")},
    "batch_matmul": lambda b, x, y, turn_x=False, turn_y=True: b.call(
        "nn.batch_matmul", x, y, transpose_a=turn_x, transpose_b=turn_y
    ),
    "clip": lambda b, x, low, high: b.call("clip", x, a_min=float(low), a_max=float(high)),
    "concatenate": lambda b, xs, axis=0: b.call("concatenate", list(xs), axis=axis),
    "conv2d_nhwc": _conv,
    "dense": lambda b, x, w: b.call("nn.dense", x, w),
    "depthwise_conv2d_nhwc": _depthwise,
    "elu": _elu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "group_conv2d_nhwc": _conv,
    "hard_swish": _hard_swish,
    "identity": lambda b, x: x,
    "leaky_relu": lambda b, x, alpha: b.call("nn.leaky_relu", x, alpha=float(alpha)),
    "log_softmax": lambda b, x, axis=-1: b.call("nn.log_softmax", x, axis=axis),
    "matmul": lambda b, x, y, turn_x=False, turn_y=False: b.call(
        "nn.matmul", x, y, transpose_a=turn_x, transpose_b=turn_y
    ),
    "max_pool2d": _pool,
    "pad": _pad,
    "power": _power,
    "reciprocal": lambda b, x: b.call("divide", b.of(1, x), x),
    "reshape": lambda b, x, shape: b.call("reshape", x, newshape=[int(d) for d in shape]),
    "round": rounded,
    "silu": lambda b, x: b.call("multiply", x, b.call("sigmoid", x)),
    "softmax": lambda b, x, axis=-1: b.call("nn.softmax", x, axis=axis),
    "split": lambda b, x, parts, axis=0: b.calls(
        "split", x, indices_or_sections=parts if isinstance(parts, int) else tuple(parts), axis=axis
    ),
    "square": lambda b, x: b.call("multiply", x, x),
    "strided_slice": _slice,
    "tile": lambda b, x, reps: b.call("tile", x, reps=list(reps)),
    "transpose": lambda b, x, axes=None: b.call("transpose", x, axes=axes and list(axes)),
    "where": _where,
}
"""Operators by the functions that make expressions, with the operators' own parameters."""


def program_of(b: Expressions, graph: Graph, names: Sequence[str]) -> tuple[list[Var], list[Expr]]:
    """The inputs of a graph of real numbers, called `names`, and its outputs as expressions. Layers that are none are refused
    (`b.refusals`), and then there are no outputs."""
    variables = [Var(n, TensorType(t.shape, t.dtype)) for n, t in zip(names, graph.inputs, strict=True)]
    return variables, [t.expr for t in terms_of(b, graph, [b.term(v) for v in variables])]


def terms_of(b: Expressions, graph: Graph, operands: Sequence[Term]) -> list[Term]:
    """The outputs of a graph for the tensors of its inputs. Layers that are no expressions are refused (`b.refusals`), and then
    there are none."""
    before = len(b.refusals)
    made = {t.name: v for t, v in zip(graph.inputs, operands, strict=True)}
    for layer in graph.layers:
        if layer.type == "Input" or any(t.name not in made for t in layer.inputs):
            continue  # what it takes is refused
        try:
            found = _made(b, layer, [made[t.name] for t in layer.inputs])
        except (Refused, CompassError, LayerError) as error:
            said = error.message if isinstance(error, CompassError) else str(error)
            b.refusals.append(Refusal(f"the layer '{layer.name}'", layer.type, said))
            continue
        for t, term in zip(layer.outputs, found, strict=True):
            as_said = term.shape == t.shape and term.kind == t.dtype
            made[t.name] = term if as_said else b.cast(b.reshape(term, list(t.shape)), t.dtype)
    return [made[t.name] for t in graph.outputs] if len(b.refusals) == before else []


def _made(b: Expressions, layer: Layer, operands: list[Term]) -> list[Term]:
    if layer.type == "Constant":
        return [b.known(layer.constant("weights"))]
    body = all_types()[layer.type].body
    if body is None or layer.is_quantised and layer.type not in MOVING:
        raise Refused("it has no definition by operators of real numbers")
    found = body(Meaning(b), layer, *operands)
    return list(found) if isinstance(found, (tuple, list)) else [found]
