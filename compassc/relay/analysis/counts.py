"""Numbers about programs: operators, layers, multiplications, data types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from math import prod

from compassc.ir.errors import ExpressionError
from compassc.relay.attributes import Attrs
from compassc.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from compassc.relay.layouts import layout
from compassc.relay.module import MAIN, IRModule
from compassc.relay.operators import op_name
from compassc.relay.type_visit import everywhere
from compassc.relay.types import TensorType
from compassc.relay.visit import children, post_order


def post_order_visit(expr: Expr, fvisit: Callable[[Expr], object]) -> None:
    """Call a function with each expression once, children first: of a call the callee and then the arguments."""
    for e in post_order(expr):
        fvisit(e)


def list_op_freqs(mod: IRModule) -> dict[str, int]:
    """How many calls of each operator `main` has."""
    return dict(Counter(op_name(e) for e in post_order(mod[MAIN]) if op_name(e)))


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """How many calls of each operator lie between dequantisations and a quantisation, in all such regions of `main`."""
    found: Counter[str] = Counter()
    for e in post_order(mod[MAIN]):
        if op_name(e) == "qnn.quantize":
            assert isinstance(e, Call)
            found.update(op_name(inner) for inner in _region(e.args[0]) if op_name(inner))
    return dict(found)


def _region(end: Expr) -> Iterator[Expr]:
    """The expressions that one is made of, up to dequantisations."""
    seen, todo = {id(end)}, [end]
    while todo:
        e = todo.pop()
        if op_name(e) == "qnn.dequantize":
            continue
        yield e
        for child in children(e):
            if id(child) not in seen:
                seen.add(id(child))
                todo.append(child)


def all_dtypes(expr: Expr) -> set[str]:
    """The data types of the elements of all typed expressions in it."""
    found = [e.checked_type_ for e in post_order(expr) if e.checked_type_ is not None]
    return {part.dtype for t in found for part in everywhere(t) if isinstance(part, TensorType)}


def count_layers(expr: Expr | IRModule, valid_ops: Collection[str]) -> int:
    """The most calls of these operators on one way through the program."""
    root = expr[MAIN] if isinstance(expr, IRModule) else expr
    depth: dict[int, int] = {}
    for e in post_order(root):
        below = max([depth[id(c)] for c in children(e)], default=0)
        depth[id(e)] = below + (op_name(e) in valid_ops)
    return depth[id(root)]


# ------------------------------------------------------------------------------------------------------- multiplications


def get_total_mac_number(expr: Expr) -> int:
    """The multiplications of convolutions, dense layers and products of matrices in a typed program; 0 without types."""
    return sum(mac_number(e) for e in post_order(expr) if isinstance(e, Call))


def mac_number(e: Call) -> int:
    """The multiplications of one call; 0 of other operators, and without types."""
    if op_name(e) not in _MACS:
        return 0
    types = [a.checked_type_ for a in e.args[:2]] + [e.checked_type_]
    tensors = [t for t in types if isinstance(t, TensorType)]
    if len(tensors) != len(types):
        return 0
    shapes = [t.concrete_shape for t in tensors]
    return _MACS[op_name(e)](e.attrs, shapes)


def _convolution(attrs: Attrs | None, shapes: Sequence[Sequence[int]]) -> int:
    assert attrs is not None
    data, kernel, out = shapes
    if len(out) not in (4, 5):
        raise ExpressionError(f"a convolution's result has 4 or 5 axes, not {len(out)}")
    channels = prod([n for axis, n in zip(layout(attrs.data_layout).axes, data) if axis.primal == "C"])
    size = prod([n for axis, n in zip(layout(attrs.kernel_layout).axes, kernel) if axis.letter in ("H", "W")])
    return prod(out) * size * channels // int(attrs.groups)


def _dense(attrs: Attrs | None, shapes: Sequence[Sequence[int]]) -> int:
    data, weight, _ = shapes
    if len(data) != 2 or len(weight) != 2:
        raise ExpressionError("a dense layer's data has 2 axes")
    return data[0] * data[1] * weight[0]


def _batch_matmul(attrs: Attrs | None, shapes: Sequence[Sequence[int]]) -> int:
    x, y, _ = shapes
    return x[0] * x[1] * x[2] * y[1]


_MACS: dict[str, Callable[[Attrs | None, Sequence[Sequence[int]]], int]] = {
    "nn.conv2d": _convolution,
    "nn.conv2d_transpose": _convolution,
    "nn.dense": _dense,
    "nn.batch_matmul": _batch_matmul,
}


# ------------------------------------------------------------------------------------------------------------------ parts


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """A module whose `main` gives one expression of `main`: the one that is `%expr_id` where all calls, tuples and items are
    numbered."""
    numbered = [e for e in post_order(mod[MAIN].body) if isinstance(e, (Call, Tuple, TupleGetItem))]
    if not 0 <= expr_id < len(numbered):
        raise ExpressionError(f"there is no expression %{expr_id}", f"the last one is %{len(numbered) - 1}")
    made = IRModule.from_expr(numbered[expr_id], None, mod.type_definitions)
    for v, function in mod.functions.items():
        if v.name_hint != MAIN:
            made.functions.put(v, function)
    return made


def search_fc_transpose(expr: Expr) -> list[str]:
    """The names of the weights of dense layers that are transposed before: variables by name, constants by number."""
    found: list[str] = []
    for e in post_order(expr):
        if op_name(e) == "nn.dense" and isinstance(e, Call) and op_name(e.args[1]) == "transpose":
            transposed = e.args[1]
            assert isinstance(transposed, Call)
            weight = transposed.args[0]
            if isinstance(weight, Var):
                found.append(weight.name_hint)
            elif isinstance(weight, Constant):
                found.append(str(weight))
    return list(dict.fromkeys(found))


def functions_of(mod: IRModule) -> Iterator[tuple[str, Function]]:
    """The functions of graphs of a module by name."""
    return ((v.name_hint, f) for v, f in mod.functions.items() if isinstance(f, Function))
