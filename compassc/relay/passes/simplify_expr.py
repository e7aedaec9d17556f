"""Drop calls that change nothing, and join calls that undo or repeat each other.

Before: a typed module.
After: no operator asks only the shape of an argument that is known (`zeros_like`, `reshape_like`, ...); nothing is added that is 0
or multiplied by 1; a tensor of one number is that number where it changes no shape; reshapes, transposes and casts do not follow
each other; no bound is one that all numbers of a type keep, or follows another; order is not asked of dequantised numbers; sums of
squares and a product (`x*x + 2*x*y + y*y`) are products. Sums and products with
constants are put together, and a quotient of a square root is a product: within rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np

from compass_runtime.ndarray import NDArray
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError
from compassc.relay.attributes import Attrs
from compassc.relay.builders import build, call
from compassc.relay.expr import Call, Constant, Expr
from compassc.relay.layouts import Axis, converted, layout
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import rewrite_functions, scalar
from compassc.relay.types import TensorType, is_dynamic

NAME = "SimplifyExpr"
LEVEL = 0
REQUIRED = ("InferType",)
MOST_ROUNDS = 100
Rule = Callable[[Call, Call, TensorType], "Expr | None"]
"""A rule: of a call as it was typed, with its arguments simplified, and its type; None where it does not apply."""


def run(module: IRModule, operators: Collection[str] | None = None) -> IRModule:
    """`operators`: those whose calls are simplified; None for all."""
    for _ in range(MOST_ROUNDS):
        after = rewrite_functions(module, partial(_simplified, operators))
        if after is module:
            return module
        module = after
    raise ExpressionError(f"SimplifyExpr changes a program after {MOST_ROUNDS} rounds", "leave it out of this build")


def _simplified(operators: Collection[str] | None, before: Expr, after: Expr) -> Expr:
    rules = _RULES.get(op_name(after), ()) if operators is None or op_name(after) in operators else ()
    if not rules or not isinstance(before, Call) or not isinstance(after, Call):
        return after
    t = before.checked_type
    if not isinstance(t, TensorType) or any(a.checked_type_ is None for a in before.args):
        return after
    for rule in rules:
        found = rule(before, after, t)
        if found is not None:
            return found
    return after


def _type(e: Expr) -> TensorType | None:
    """The type of a tensor, where it is known in this round."""
    t = e.tensor_type if isinstance(e, Constant) else e.checked_type_
    return t if isinstance(t, TensorType) else None


def _same(a: TensorType | None, b: TensorType) -> bool:
    return a is not None and a.dtype == b.dtype and a.shape == b.shape and not is_dynamic(a)


def _attrs(e: Call) -> Attrs:
    assert e.attrs is not None
    return e.attrs


# ------------------------------------------------------------------------------------------- arguments that are only asked


def _fixed(make: Callable[[Call, TensorType], Expr]) -> Rule:
    """What takes the place of an operator whose result has a known shape."""
    return lambda before, after, t: None if is_dynamic(t) else make(after, t)


def _cast_like(before: Call, after: Call, t: TensorType) -> Expr | None:
    return call("cast", after.args[0], dtype=t.dtype)


# ----------------------------------------------------------------------------------------------------------------- numbers


def _all(e: Expr, value: float) -> bool:
    """Whether all elements of a tensor are known to be a number."""
    if op_name(e) in ("zeros", "zeros_like"):
        return value == 0
    if op_name(e) in ("ones", "ones_like"):
        return value == 1
    return isinstance(e, Constant) and not e.data.shape and bool(e.array == value)


def _neutral(value: float, places: Sequence[int]) -> Rule:
    """An operand that changes nothing at some of the places."""

    def rule(before: Call, after: Call, t: TensorType) -> Expr | None:
        for place in places:
            other = after.args[1 - place]
            if _all(after.args[place], value) and _same(_type(before.args[1 - place]), t):
                return other
        return None

    return rule


def _full(before: Call, after: Call, t: TensorType) -> Expr | None:
    """A tensor of one number beside one of the result's type is that number."""
    for place, other in ((0, 1), (1, 0)):
        own = _type(before.args[place])
        if own is None or own.dtype != t.dtype or not own.shape or not _same(_type(before.args[other]), t):
            continue
        name, operand = op_name(after.args[place]), after.args[place]
        number: Expr | None = scalar(_FULL[name], t.dtype) if name in _FULL else None
        if name in ("full", "full_like") and isinstance(operand, Call):
            number = operand.args[0 if name == "full" else 1]
        number_type = _type(number) if number is not None else None
        if number is not None and number_type is not None and number_type.dtype == t.dtype and not number_type.shape:
            args = list(after.args)
            args[place] = number
            return call(op_name(after), *args)
    return None


_FULL = {"zeros": 0, "zeros_like": 0, "ones": 1, "ones_like": 1}


def _twice(before: Call, after: Call, t: TensorType) -> Expr | None:
    a, b = after.args
    return call("multiply", a, scalar(2, t.dtype)) if a is b and t.dtype != "bool" else None


def _root(before: Call, after: Call, t: TensorType) -> Expr | None:
    by = after.args[1]
    if op_name(by) != "sqrt" or not data_type(t.dtype).is_floating:
        return None
    assert isinstance(by, Call)
    return call("multiply", after.args[0], call("rsqrt", by.args[0]))


def _constants(name: str) -> Rule:
    """Two constants of sums, or of products, are one."""
    compute = np.add if name == "add" else np.multiply

    def rule(before: Call, after: Call, t: TensorType) -> Expr | None:
        inner, outer = _with_constant(after)
        if op_name(inner) != name or outer is None or not isinstance(inner, Call):
            return None
        value, first = _with_constant(inner)
        if first is None or isinstance(value, Constant):
            return None
        return call(name, value, Constant(NDArray(np.asarray(compute(first.array, outer.array)))))

    return rule


def _distributed(before: Call, after: Call, t: TensorType) -> Expr | None:
    """A sum with a constant, times a constant: that is a product, and a constant."""
    inner, outer = _with_constant(after)
    if op_name(inner) != "add" or outer is None or not isinstance(inner, Call):
        return None
    value, first = _with_constant(inner)
    if first is None or isinstance(value, Constant):
        return None
    return call(
        "add", call("multiply", value, outer), Constant(NDArray(np.asarray(np.multiply(first.array, outer.array))))
    )


def _with_constant(e: Call) -> tuple[Expr, Constant | None]:
    """The operands of a call of which one is a constant: that one last."""
    a, b = e.args
    if isinstance(b, Constant):
        return a, b
    return (b, a) if isinstance(a, Constant) else (a, None)


# -------------------------------------------------------------------------------------------------------- moves and casts


def _reshape(before: Call, after: Call, t: TensorType) -> Expr | None:
    data = after.args[0]
    if is_dynamic(t):
        return None
    if op_name(data) in ("reshape", "contrib_reverse_reshape"):
        assert isinstance(data, Call)
        return call("reshape", data.args[0], newshape=t.concrete_shape)
    return data if _same(_type(before.args[0]), t) else None


def _axes(e: Call, rank: int) -> list[int]:
    axes = _attrs(e)["axes"]
    return [a % rank for a in axes] if axes is not None else list(range(rank))[::-1]


def _permuted(e: Call, rank: int) -> list[int] | None:
    """The axes of its argument that the axes of a call's result are, where it only changes their order."""
    if op_name(e) == "transpose":
        return _axes(e, rank)
    source, to = (layout(str(_attrs(e)[n])) for n in ("src_layout", "dst_layout"))
    if sorted(source.axes, key=str) != sorted(to.axes, key=str):
        return None
    return [source.axes.index(a) for a in to.axes]


def _moved(before: Call, after: Call, t: TensorType) -> Expr | None:
    """Two moves of axes are one, none where they undo each other."""
    data, own = after.args[0], _permuted(after, len(t.shape))
    if own is not None and own == list(range(len(own))):
        return data
    between = _type(before.args[0])
    if op_name(data) not in ("transpose", "layout_transform") or not isinstance(data, Call) or between is None:
        return None
    x, first = data.args[0], _permuted(data, len(between.shape))
    if own is not None and first is not None:
        axes = [first[a] for a in own]
        return x if axes == list(range(len(axes))) else call("transpose", x, axes=axes)
    source, to = _joined_layouts(after, own, data, first)
    start = _type(x)
    if not source or start is None or is_dynamic(t) or converted(start.shape, source, to) != list(t.shape):
        return None
    return x if source == to else call("layout_transform", x, src_layout=source, dst_layout=to)


def _joined_layouts(outer: Call, own: list[int] | None, inner: Call, first: list[int] | None) -> tuple[str, str]:
    """The layouts of one transformation that does what two moves do, one of which splits axes; "" where they name them
    otherwise."""
    if first is not None:
        source = layout(str(_attrs(outer)["src_layout"])).axes
        return _written([source[first.index(i)] for i in range(len(first))]), str(_attrs(outer)["dst_layout"])
    names = str(_attrs(inner)["src_layout"]), str(_attrs(inner)["dst_layout"])
    if own is not None:
        to = layout(names[1]).axes
        return names[0], _written([to[i] for i in own])
    return (names[0], str(_attrs(outer)["dst_layout"])) if names[1] == _attrs(outer)["src_layout"] else ("", "")


def _written(axes: Sequence[Axis]) -> str:
    return "".join(f"{a.factor or ''}{a.letter}" for a in axes)


def _cast(before: Call, after: Call, t: TensorType) -> Expr | None:
    data, source = after.args[0], _type(before.args[0])
    if source is not None and source.dtype == t.dtype:
        return data
    if op_name(data) != "cast" or not isinstance(data, Call) or source is None:
        return None
    inner = before.args[0]
    first = _type(inner.args[0]) if isinstance(inner, Call) and op_name(inner) == "cast" else None
    if first is None or not _holds(first.dtype, source.dtype):
        return None
    return call("cast", data.args[0], dtype=t.dtype)


def _within(e: Expr, dtype: str) -> bool:
    """Whether an expression is a bound of whole numbers by ones that a type has."""
    if op_name(e) != "clip" or not isinstance(e, Call) or not _is_whole(dtype):
        return False
    low, high = data_type(dtype).range()
    return bool(low <= _attrs(e)["a_min"] and _attrs(e)["a_max"] <= high)


def _is_whole(dtype: str) -> bool:
    kind = data_type(dtype)
    return not kind.is_floating and not kind.is_bool


def _bounded_cast(before: Call, after: Call, t: TensorType) -> Expr | None:
    """Bounded numbers by way of a type that has them are cast at once."""
    middle, inner = after.args[0], before.args[0]
    if op_name(middle) != "cast" or not isinstance(middle, Call) or not isinstance(inner, Call):
        return None
    source, between = _type(inner.args[0]) if op_name(inner) == "cast" else None, _type(inner)
    if source is None or between is None or not _is_whole(source.dtype) or not _within(middle.args[0], between.dtype):
        return None
    return call("cast", middle.args[0], dtype=t.dtype)


def _clip(before: Call, after: Call, t: TensorType) -> Expr | None:
    """A bound that all numbers of the type keep; behind quantised operators it may be a part of what is looked for."""
    if not _is_whole(t.dtype) or op_name(after.args[0]) in ("qnn.requantize", "qnn.add"):
        return None
    low, high = data_type(t.dtype).range()
    return after.args[0] if _attrs(after)["a_min"] <= low and _attrs(after)["a_max"] >= high else None


def _bounded_twice(before: Call, after: Call, t: TensorType) -> Expr | None:
    """Two bounds are one: the inner limits within the outer ones."""
    inner = after.args[0]
    if op_name(inner) != "clip" or not isinstance(inner, Call):
        return None
    ends = [(float(_attrs(e)["a_min"]), float(_attrs(e)["a_max"])) for e in (inner, after)]
    ordered = all(low <= high for low, high in ends)
    if not ordered or (_is_whole(t.dtype) and not all(end.is_integer() for pair in ends for end in pair)):
        return None
    (low, high), (least, most) = ends
    limits = {"a_min": min(max(low, least), most), "a_max": min(max(high, least), most)}
    return call("clip", inner.args[0], **limits)


# --------------------------------------------------------------------------------------------------------------- binomials


def _parts(name: str, e: Expr, most: int) -> list[Expr]:
    """The operands of calls of an operator within each other, from the left; of more than `most` none."""
    found = [e]
    while len(found) <= most:
        place = next((i for i, part in enumerate(found) if op_name(part) == name), None)
        if place is None:
            return found
        nested = found[place]
        assert isinstance(nested, Call)
        found[place : place + 1] = nested.args
    return []


def _term(e: Expr) -> tuple[float, list[Expr]] | None:
    """A product of two values and numbers: the product of the numbers, and the values."""
    number, values = 1.0, []
    for part in _parts("multiply", e, 4):
        if isinstance(part, Constant) and not part.data.shape:
            number *= part.array.item()
        else:
            values.append(part)
    return (number, values) if len(values) == 2 else None


def _binomial(before: Call, after: Call, t: TensorType) -> Expr | None:
    """`a*x*x + b*x*y + c*y*y` with real roots is `a*((x + p*y) * (x + q*y))`; of whole numbers with whole roots."""
    terms = [_term(e) for e in _parts("add", after, 3)]
    if t.dtype not in ("int32", "float32", "float64") or len(terms) != 3:
        return None
    (a, xx), (b, xy), (c, yy) = [term if term is not None else (0.0, [after, before]) for term in terms]
    x, y = xx[0], yy[0]
    squares = xx[1] is x and yy[1] is y and x is not y and {*map(id, xy)} == {id(x), id(y)}
    if not squares or not a or b * b < 4 * a * c or not (_same(_type(x), t) and _same(_type(y), t)):
        return None
    root = math.sqrt(b * b - 4 * a * c)
    p, q = (b - root) / (2 * a), (b + root) / (2 * a)
    if t.dtype == "int32" and not (p.is_integer() and q.is_integer() and a * (p + q) == b and a * p * q == c):
        return None
    first, second = (call("add", x, call("multiply", scalar(factor, t.dtype), y)) for factor in (p, q))
    return call("multiply", scalar(a, t.dtype), call("multiply", first, second))


def _order(before: Call, after: Call, t: TensorType) -> Expr | None:
    """Places by the order of numbers that are dequantised are those of the numbers, where different ones stay different."""
    of, inner = after.args[0], before.args[0]
    if op_name(of) != "qnn.dequantize" or not isinstance(of, Call) or not isinstance(inner, Call):
        return None
    own, (scale, zero) = _type(inner.args[0]), of.args[1:]
    if own is None or own.dtype not in ("int8", "uint8", "int16", "uint16") or _attrs(of)["out_dtype"] != "float32":
        return None
    if not isinstance(scale, Constant) or not isinstance(zero, Constant) or scale.array.size * zero.array.size != 1:
        return None
    if not 1e-30 < float(scale.array.reshape(())) < 1e30 or abs(int(zero.array.reshape(()))) > 1 << 20:
        return None
    return call(op_name(after), of.args[0], **_attrs(after))


def _holds(narrow: str, wide: str) -> bool:
    """Whether a data type has all values of another one."""
    if "bfloat" in narrow + wide or "bool" in (narrow, wide):
        return False
    return bool(np.can_cast(narrow, wide, "safe"))


_RULES: Mapping[str, Sequence[Rule]] = {
    "zeros_like": [_fixed(lambda e, t: build("zeros", t.concrete_shape, t.dtype))],
    "ones_like": [_fixed(lambda e, t: build("ones", t.concrete_shape, t.dtype))],
    "full_like": [_fixed(lambda e, t: build("full", e.args[1], t.concrete_shape, t.dtype))],
    "reshape_like": [_fixed(lambda e, t: call("reshape", e.args[0], newshape=t.concrete_shape))],
    "broadcast_to_like": [_fixed(lambda e, t: build("broadcast_to", e.args[0], t.concrete_shape))],
    "collapse_sum_like": [_fixed(lambda e, t: build("collapse_sum_to", e.args[0], t.concrete_shape))],
    "cast_like": [_cast_like],
    "add": [_neutral(0, (0, 1)), _full, _twice, _constants("add"), _binomial],
    "subtract": [_neutral(0, (1,)), _full],
    "multiply": [_neutral(1, (0, 1)), _full, _constants("multiply"), _distributed],
    "divide": [_neutral(1, (1,)), _full, _root],
    **{name: [_full] for name in ("maximum", "minimum", "power", "mod", "floor_divide", "floor_mod")},
    "reshape": [_reshape],
    "contrib_reverse_reshape": [_reshape],
    **{name: [_moved] for name in ("transpose", "layout_transform")},
    "cast": [_cast, _bounded_cast],
    "clip": [_clip, _bounded_twice],
    **{name: [_order] for name in ("argmax", "argmin", "argsort")},
}
