"""Compute in floats of fewer bits where operators say that this is good enough.

Before: any module.
After: calls of operators that are always computed in the type (`MIXED_PRECISION_ALWAYS`) are, with casts in front of them; those
that follow are where all their floats are in the type, are variables or constants; all others are computed in float32. `missing_op_mode`
says what becomes of operators that say nothing: 0 refuses, 1 warns, 2 has them follow without a word. With the setting
`relay.ToMixedPrecision.keep_orig_output_dtype` results have the types that they had.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from compassc.ir.errors import ExpressionError
from compassc.pass_manager.context import PassContext
from compassc.relay.attributes import Attrs
from compassc.relay.builders import call
from compassc.relay.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.infer import infer_local
from compassc.relay.module import MAIN, IRModule
from compassc.relay.operators import Op, op_name
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.types import TensorType, TupleType, Type
from compassc.relay.visit import children, is_primitive, post_order, with_children

NAME = "ToMixedPrecision"
LEVEL = 0
REQUIRED = ()
KEEP_TYPES = "relay.ToMixedPrecision.keep_orig_output_dtype"
MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER = 0, 1, 2
WIDE = "float32"
LARGEST = {"float16": 65504.0, "bfloat16": float.fromhex("0x1.fep127")}
"""The types of few bits, and the largest number of each."""
_FLOATS = ("float16", "bfloat16", "float32", "float64")
Conversion = Callable[[Call, str], Sequence[int | str]]
"""What an operator registers: of a call and the type, the category, the type it sums up in, and the type of its result."""

CATEGORIES: Mapping[int, str] = {
    MIXED_PRECISION_ALWAYS: """
        nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose nn.dense nn.batch_matmul""",
    MIXED_PRECISION_NEVER: """
        exp power nn.cross_entropy nn.cross_entropy_with_logits nn.softmax nn.l2_normalize erf arange nn.global_avg_pool2d
        nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d sum mean variance nn.layer_norm""",
    MIXED_PRECISION_FOLLOW: """
        nn.pad nn.batch_flatten concatenate zeros split squeeze transpose expand_dims reshape dyn.reshape broadcast_to_like
        dyn.broadcast_to strided_slice dyn.strided_slice take argwhere where tile dyn.tile scatter scatter_elements scatter_nd full
        dyn.full nn.depth_to_space less greater less_equal greater_equal copy cast cast_like add subtract multiply divide nn.bias_add
        nn.batch_norm sqrt shape_of max min maximum minimum argmax argmin nn.relu nn.leaky_relu nn.prelu nn.dropout sigmoid tanh
        fast_exp fast_erf fast_tanh nn.fast_softmax clip nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d
        nn.avg_pool3d nn.global_max_pool2d nn.adaptive_max_pool1d nn.adaptive_max_pool2d nn.adaptive_max_pool3d image.resize2d""",
}
"""The operators of each category. What programs register (`register_mixed_precision_conversion`) holds against it."""
_BY_NAME = {name: category for category, names in CATEGORIES.items() for name in names.split()}


class NoMode(ExpressionError, ValueError):
    """An option of the pass that has no such value."""


def run(module: IRModule, mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> IRModule:
    if missing_op_mode not in (0, 1, 2):
        raise NoMode(f"missing_op_mode is {missing_op_mode}", "0 refuses, 1 warns, 2 says nothing")
    if mixed_precision_type not in LARGEST:
        raise NoMode(f"{mixed_precision_type} is no float of 16 bits", " or ".join(LARGEST))
    module = infer_type.run(module)
    keep = bool(PassContext.current().config.get(KEEP_TYPES, False))
    missing: Counter[str] = Counter()
    made = dict(module.functions.items())
    for v, f in module.functions.items():
        if isinstance(f, Function) and not any(f.attrs.get(a) for a in ("Compiler", "Extern", "SkipOptimization")):
            one = _Mixed(f, mixed_precision_type, keep or v.name_hint != MAIN, infer_type.ModuleDefinitions(module))
            made[v] = one.function()
            missing += one.missing
    _report(missing, missing_op_mode)
    return module if all(made[v] is f for v, f in module.functions.items()) else infer_type.run(changed(module, made))


def _report(missing: Counter[str], mode: int) -> None:
    if not missing or mode == 2:
        return
    text = ", ".join(f"{name} ({n} calls)" for name, n in missing.items())
    if mode == 0:
        raise ExpressionError(
            f"it is not known whether these may be computed with fewer bits: {text}",
            "register_mixed_precision_conversion says so of an operator; missing_op_mode=1 has them follow",
        )
    warnings.warn(f"ToMixedPrecision has operators follow that say nothing of it: {text}", stacklevel=4)


def category_of(e: Call, low: str) -> tuple[int, str, str] | None:
    """The category of a call, the type it sums up in and the type of its result; None where its operator says nothing."""
    assert isinstance(e.op, Op)
    given: Conversion | None = e.op.get_attr("FTVMMixedPrecisionConversionType")
    if given is None:
        known = _BY_NAME.get(e.op.name)
        return None if known is None else (known, low, low)
    found = list(given(e, low))
    if len(found) != 3 or found[0] not in CATEGORIES:
        raise ExpressionError(
            f"what is registered for mixed precision of {e.op.name} gave {found}",
            "give [category, type of sums, type of the result], where the category is 0 (always), 1 (follow) or 2 (never)",
        )
    return int(found[0]), str(found[1]), str(found[2])


def _is_float(t: Type) -> bool:
    return isinstance(t, TensorType) and t.dtype in _FLOATS


def _is_low(t: Type, low: str) -> bool:
    """Whether all floats of a type are in the type of few bits."""
    if isinstance(t, TupleType):
        return all(_is_low(f, low) for f in t.fields)
    return not _is_float(t) or (isinstance(t, TensorType) and t.dtype == low)


class _Mixed:
    """A function in mixed precision."""

    def __init__(self, f: Function, low: str, keep: bool, definitions: infer_type.ModuleDefinitions) -> None:
        self.f, self.low, self.keep, self.definitions = f, low, keep, definitions
        self.missing: Counter[str] = Counter()
        self.made: dict[int, Expr] = {}
        self._casts: dict[tuple[int, str], tuple[Expr, Expr]] = {}
        self._lets: dict[int, list[Var]] = {}
        """The variables that a value is bound to."""

    def function(self) -> Function:
        """The function with other types within."""
        order = list(post_order(self.f, is_primitive))
        for e in order:
            if isinstance(e, Let) and not isinstance(e.value, Function):
                self._lets.setdefault(id(e.value), []).append(e.var)
        for e in order:
            closed = e is not self.f and is_primitive(e)
            if id(e) not in self.made:
                self.made[id(e)] = e if closed else self._one(e, [self.made[id(c)] for c in children(e)])
            for v in self._lets.get(id(e), ()):
                self.made[id(v)] = self._renamed(v, self.made[id(e)])
        made = self.made[id(self.f)]
        assert isinstance(made, Function), "a function stays one"
        return made

    def _renamed(self, v: Var, value: Expr) -> Var:
        t = value.checked_type
        if v.checked_type_ == t:
            return v
        made = Var(v.name_hint, t, v.span)
        made.typed(t)
        return made

    def _one(self, e: Expr, args: list[Expr]) -> Expr:
        if isinstance(e, Function):
            return self._of_function(e, args)
        if isinstance(e, Call):
            args = self._arguments(e, args)
            if isinstance(e.op, Op):
                return self._call(e, args[1:])
        elif isinstance(e, (If, Match, RefCreate, RefWrite, RefRead)):
            args = [self._as(a, c.checked_type) for a, c in zip(args, children(e))]
        made = with_children(e, args)
        if made is not e and isinstance(made, (Tuple, TupleGetItem, Call, Let)):
            infer_local(made, self.definitions)
        elif made is not e:
            made.typed(e.checked_type)
        return made

    def _of_function(self, e: Function, args: list[Expr]) -> Expr:
        body = args[-1]
        if self.keep or e is not self.f:
            body = self._as(body, e.body.checked_type)
        if body is e.body:
            return e
        made = e.replace(body=body, ret_type=None)
        made.typed(e.checked_type)
        return made

    def _arguments(self, e: Call, args: list[Expr]) -> list[Expr]:
        """The callee and the arguments of a call: of what is no operator those of the types that they had."""
        if isinstance(e.op, Op):
            return args
        assert isinstance(e.op, (Function, GlobalVar, Var, Constructor, Call, TupleGetItem, RefRead, If, Match, Let))
        return [args[0], *(self._as(a, c.checked_type) for a, c in zip(args[1:], e.args))]

    def _call(self, e: Call, args: Sequence[Expr]) -> Expr:
        """A call of an operator in the type that its category says."""
        known = category_of(e, self.low)
        if known is None:
            self.missing[op_name(e)] += 1
            known = MIXED_PRECISION_FOLLOW, self.low, self.low
        category, sums, result = known
        if category == MIXED_PRECISION_FOLLOW:
            follows = all(_is_low(a.checked_type, self.low) or isinstance(a, (Var, Constant)) for a in args)
            category = MIXED_PRECISION_ALWAYS if follows else MIXED_PRECISION_NEVER
        if self._is_clip_beyond(e):
            category = MIXED_PRECISION_NEVER
        low = category == MIXED_PRECISION_ALWAYS
        given = [self._cast(a, self.low if low else WIDE) for a in args]
        attrs = _with_type(e.attrs, sums) if low else e.attrs
        if attrs == e.attrs and all(a is b for a, b in zip(given, e.args)):
            return e
        made = Call(e.op, given, attrs, (), e.span)
        infer_local(made, self.definitions)
        return self._cast(made, result) if low and sums != result else made

    def _is_clip_beyond(self, e: Call) -> bool:
        """Whether a call bounds numbers by what the type cannot hold."""
        if op_name(e) != "clip" or e.attrs is None:
            return False
        return max(-float(e.attrs["a_min"]), float(e.attrs["a_max"])) > LARGEST[self.low]

    def _as(self, e: Expr, wanted: Type) -> Expr:
        """A value with the floats that a type has."""
        t = e.checked_type
        if t == wanted:
            return e
        if isinstance(t, TupleType) and isinstance(wanted, TupleType):
            return self._tuple([self._as(f, w) for f, w in zip(_fields(e, t), wanted.fields)])
        return self._cast(e, wanted.dtype) if isinstance(wanted, TensorType) else e

    def _cast(self, e: Expr, dtype: str) -> Expr:
        """A value with all its floats cast; of what is a cast what it was made of, where that is it."""
        t = e.checked_type
        if isinstance(t, TupleType):
            fields = _fields(e, t)
            cast = [self._cast(f, dtype) for f in fields]
            return e if all(a is b for a, b in zip(cast, fields)) else self._tuple(cast)
        if not isinstance(t, TensorType) or not _is_float(t) or t.dtype == dtype:
            return e
        if (id(e), dtype) not in self._casts:
            made = call("cast", e, dtype=dtype).typed(TensorType(t.shape, dtype))
            self._casts[id(e), dtype] = e, made
            self._casts[id(made), t.dtype] = made, e
        return self._casts[id(e), dtype][1]

    def _tuple(self, fields: Sequence[Expr]) -> Expr:
        return Tuple(fields).typed(TupleType([f.checked_type for f in fields]))


def _fields(e: Expr, t: TupleType) -> list[Expr]:
    """The fields of a tuple, as they are written or as items of it."""
    if isinstance(e, Tuple):
        return list(e.fields)
    return [TupleGetItem(e, i).typed(f) for i, f in enumerate(t.fields)]


def _with_type(attrs: Attrs | None, dtype: str) -> Attrs | None:
    """Attributes that ask for results of a type, where they ask for floats or for none."""
    if attrs is None:
        return None
    found = {n: dtype for n in ("out_dtype", "dtype") if n in attrs and (attrs[n] in _FLOATS or not attrs[n])}
    return attrs.changed(**found) if found else attrs
