"""Declaration of operations: one `@op(...)` per operation, everything else derived from it.

An `Op` knows its signature and documentation, its typing rule (`typing`, shared by the compiler and PySim), how the IR
node is built, its NumPy meaning, how wide vectors are split, and how it is spelt in C.

Two kinds exist. A *value* operation (`value_op`) maps operands to a result lane by lane or register by register: its
typing rule is declared as data and the decorated function is its meaning on NumPy arrays, called as
`meaning(*arrays, dtype=result, **options)`. A *special* operation (`special_op`) builds its IR itself (`build`); the
decorated function is its PySim implementation.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import struct
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import FLOAT32, INT32, DataType, bool_of
from .masks import mask_bits, mask_error
from .typing import Operand, Typed, check_literal, fits, is_literal, literal_dtype, type_error

REGISTRY: dict[str, Op] = {}
MODULES = (
    "arithmetic",
    "products",
    "bitwise",
    "compare",
    "math",
    "convert",
    "permute",
    "memory",
    "dma",
    "sync",
    "misc",
)

TARGET: ContextVar[str] = ContextVar("target", default="")
"""Generation of the target being compiled for (`X2`, `X3P`, ...). Empty: unknown, every form is available."""


class LazyModule:
    """A module imported at the first use of one of its attributes; later uses are plain look-ups."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, attr: str) -> Any:
        value = getattr(importlib.import_module(self._name), attr)
        self.__dict__[attr] = value
        return value


np: Any = LazyModule("numpy")


@dataclass(frozen=True)
class Op:
    """One declared operation."""

    name: str
    group: str
    doc: str
    signature: inspect.Signature
    operands: tuple[str, ...]
    typing: Callable[..., Typed] | None
    meaning: Callable[..., Any]
    build: Callable[..., E.Expr]
    c: tuple[tuple[str, str], ...] = ()
    split: str = "lanes"
    r: str = "none"
    mask_like: int = 0
    effect: str = "pure"
    options: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def has_mask(self) -> bool:
        """Whether lanes can be switched off; an operand called `mask` is data."""
        return "mask" in self.signature.parameters and "mask" not in self.operands

    @property
    def special(self) -> bool:
        return self.typing is None


def get(name: str) -> Op:
    """The declaration of an operation; imports the operation modules on first use."""
    if name not in REGISTRY:
        load()
    return REGISTRY[name]


def load() -> dict[str, Op]:
    """All declared operations by name."""
    for module in MODULES:
        importlib.import_module(f"{__package__}.{module}")
    return REGISTRY


def _register(op: Op) -> Op:
    if op.name in REGISTRY:
        raise ValueError(f"operation {op.name} is declared twice")
    REGISTRY[op.name] = op
    return op


def _cases(c: Any) -> tuple[tuple[str, str], ...]:
    """C spellings as (condition, template) pairs; a plain string has no condition."""
    return tuple(("", item) if isinstance(item, str) else item for item in ((c,) if isinstance(c, str) else c))


@cache
def _signature(params: str) -> inspect.Signature:
    """The signature a parameter list stands for; defaults are literals."""
    items = (item.partition("=") for item in params.split(", "))
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=ast.literal_eval(value) if equals else inspect.Parameter.empty,
            )
            for name, equals, value in items
        ]
    )


def value_op(
    group: str,
    params: str,
    typing: Callable[..., Typed],
    *,
    c: Any,
    split: str = "lanes",
    r: str = "none",
    mask_like: int = 0,
    **extra: Any,
) -> Callable[[Callable[..., Any]], Op]:
    """Declare a value operation.

    `params`: the signature as Python text; parameters without default are operands, `mask` and `r` are recognised,
    the others are compile-time options. `typing(operands, **options) -> Typed`. `c`: spelling, a template or a list of
    (condition, template) tried in order. `r`: "param" (the option r), "auto" (the builtin needs a source but the DSL
    gives none) or "none". `mask_like`: operand whose lanes the mask has; -1 for the result. In `extra`:
    `mask_aware`: the meaning takes `mask` (bool array or None), and `r` if it is a parameter, and settles inactive
    lanes itself; `scalar_mask`: the all-scalar form ignores a mask; `scalar_ir`: makes the IR of the all-scalar form
    from its converted operands; `alias_of`: (operation, options) that the IR holds instead.
    """

    def decorate(meaning: Callable[..., Any]) -> Op:
        signature = _signature(params)
        names = list(signature.parameters.values())
        operands = tuple(p.name for p in names if p.default is p.empty)
        options = tuple(p.name for p in names if p.default is not p.empty and p.name not in ("mask", "r"))
        self = Op(
            meaning.__name__,
            group,
            inspect.getdoc(meaning) or "",
            signature,
            operands,
            typing,
            meaning,
            lambda *args, **kw: build_value(self, *args, **kw),
            _cases(c),
            split,
            r,
            mask_like,
            "pure",
            options,
            extra,
        )
        return _register(self)

    return decorate


def special_op(
    group: str, build: Callable[..., E.Expr], *, c: Any = (), split: str = "none", effect: str = "pure", **extra: Any
) -> Callable[[Callable[..., Any]], Op]:
    """Declare a special operation: `build(...)` makes the IR from expressions and literals, the decorated function with
    the same signature is its PySim implementation. `effect`: pure, read, write, sync or io. In `extra`: `ir_operands`
    names the arguments of the IR node where they are not the parameters without default."""

    def decorate(meaning: Callable[..., Any]) -> Op:
        signature = inspect.signature(build)
        operands = extra.pop("ir_operands", None)
        if operands is None:
            operands = tuple(p.name for p in signature.parameters.values() if p.default is p.empty)
        doc = inspect.getdoc(meaning) or inspect.getdoc(build) or ""
        name = meaning.__name__
        return _register(
            Op(
                name,
                group,
                doc,
                signature,
                operands,
                None,
                meaning,
                build,
                _cases(c),
                split,
                effect=effect,
                extra=extra,
            )
        )

    return decorate


# ------------------------------------------------------------------------------------------- building IR from operands


def operand_of(x: Any) -> Operand:
    """The typing rules' view of an argument: its type, or the literal itself."""
    if isinstance(x, E.Expr):
        if isinstance(x, E.Pointer) or not isinstance(x.dtype, DataType):
            raise type_error(f"a pointer ({x.dtype}) cannot be a value operand", "load the value first")
        return x.dtype
    if is_literal(x):
        return x
    raise type_error(f"{type(x).__name__} is not a value", "pass a number, a variable or an expression")


def imm(value: float | bool, dtype: DataType) -> E.Expr:
    """A literal of a scalar type; values that do not fit keep a conversion, as C would."""
    dtype = dtype.element_of
    if dtype.is_floating:
        return E.FloatImm(dtype, value)
    if type(value) is float or not fits(value, dtype):
        own = literal_dtype(value)
        if type(value) is float:
            single = rounded(value, FLOAT32)
            if math.isfinite(single) and fits(int(single), dtype):
                return E.IntImm(dtype, int(single))
        return E.Cast(dtype, E.FloatImm(FLOAT32, value) if own is FLOAT32 else E.IntImm(INT32, int(value)))
    return E.IntImm(dtype, int(value))


def scalar_cast(e: E.Expr, dtype: DataType) -> E.Expr:
    """A scalar expression converted by C rules; constants are folded when they fit."""
    if e.dtype is dtype:
        return e
    if type(e) is E.IntImm and (dtype.is_floating or fits(e.value, dtype)):
        return imm(e.value, dtype)
    if type(e) is E.FloatImm:
        value = rounded(e.value, e.dtype)
        if dtype.is_floating or (math.isfinite(value) and fits(int(value), dtype)):
            return imm(value, dtype)
    return E.Cast(dtype, e)


def rounded(value: float, dtype: DataType) -> float:
    """The number that a literal of a floating-point type stands for: nearest even, through float32 as in C."""
    try:
        single = struct.pack("<f", value)
        if dtype.bits == 32:
            return struct.unpack("<f", single)[0]
        if dtype.is_float:
            return struct.unpack("<e", struct.pack("<e", *struct.unpack("<f", single)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    bits = int.from_bytes(single, "little")
    if not math.isnan(value):
        bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", (bits & 0xFFFF0000).to_bytes(4, "little"))[0]


def convert(x: Any, dtype: DataType) -> E.Expr:
    """An operand as an expression of `dtype`: literals become constants, scalars are cast and broadcast."""
    if is_literal(x):
        check_literal(x, dtype)
        e = imm(x, dtype)
    elif x.dtype is dtype:
        return x
    elif x.dtype.is_vector:
        return E.Call("cast", (x,), dtype, attrs=(("part", "all"), ("saturate", None)))
    else:
        e = scalar_cast(x, dtype.element_of)
    if dtype.is_scalar:
        return e
    if dtype.is_bool and type(e) is E.IntImm:
        return E.ConstMask((1 << dtype.lanes) - 1 if e.value else 0, dtype.lanes)
    return E.Broadcast(e, dtype.lanes)


def build_mask(mask: Any, lanes: int) -> E.Expr | None:
    """A mask argument as an expression of `lanes` lanes; None when every lane is active."""
    if mask is None:
        return None
    if isinstance(mask, E.Expr):
        if not mask.dtype.is_mask and mask.dtype is not bool_of(lanes):
            raise mask_error(f"a mask is a vector of bools, got {mask.dtype}")
        if mask.dtype.lanes != lanes:
            raise mask_error(f"the mask has {mask.dtype.lanes} lanes, its vector {lanes}")
        return None if type(mask) is E.ConstMask and mask.all_true else mask
    bits = mask_bits(mask, lanes)
    return None if bits == (1 << lanes) - 1 else E.ConstMask(bits, lanes)


def r_dtype_ok(x: Operand, result: DataType) -> bool:
    """Whether an `r` argument can be converted to the result type."""
    if not is_literal(x) and x.element_of is result.element_of:
        return x.is_scalar or x.lanes == result.lanes
    is_float = type(x) is float if is_literal(x) else x.is_float
    if is_float and result.is_integer:
        return False
    own = literal_dtype(x) if is_literal(x) else x
    either_sign = own.is_integer and result.is_integer and not result.is_bool
    return fits(x, result) or (either_sign and fits(x, result.with_uint() if result.is_int else result.with_int()))


def build_r(r: Any, result: DataType) -> E.Expr | None:
    """The `r` argument converted to the result type."""
    if r is None:
        return None
    x = operand_of(r)
    if not r_dtype_ok(x, result):
        what = f"{r!r}" if is_literal(r) else str(r.dtype)
        raise type_error(f"r ({what}) cannot be converted to {result}")
    return convert(r, result)


def require_target(what: str, targets: tuple[str, ...]) -> None:
    """Refuse a form that the generation being compiled for does not have; empty `targets` means all have it."""
    current = TARGET.get()
    if targets and current and current not in targets:
        raise CompassError(
            f"{what} does not exist on {current}", code="target", help=f"it needs {' or '.join(targets)}"
        )


def bind(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The value of every parameter of a call, defaults included."""
    try:
        bound = op.signature.bind(*args, **kwargs)
    except TypeError as e:
        raise CompassError(
            f"S.{op.name}: {e}", code="arguments", help=f"its signature is S.{op.name}{op.signature}"
        ) from None
    bound.apply_defaults()
    return dict(bound.arguments)


def infer(op: Op, operands: list[Operand], options: dict[str, Any]) -> Typed:
    """The operation's typing rule, with the check that the target has the form."""
    assert op.typing is not None
    typed = op.typing(operands, **options)
    require_target(f"this form of S.{op.name}", typed.targets)
    return typed


def mask_lanes_of(op: Op, typed: Typed) -> int:
    """How many lanes the mask of a call has."""
    return typed.mask_lanes or (typed.result if op.mask_like < 0 else typed.operands[op.mask_like]).lanes


def build_value(op: Op, *args: Any, **kwargs: Any) -> E.Expr:
    """The IR node of a value operation."""
    values = bind(op, args, kwargs)
    mask, r = values["mask"] if op.has_mask else None, values.get("r")
    options = {name: values[name] for name in op.options}
    operands = [values[name] for name in op.operands]
    typed = infer(op, [operand_of(x) for x in operands], options)
    converted = tuple(convert(typed.literals.get(i, x), t) for i, (x, t) in enumerate(zip(operands, typed.operands)))
    name, fixed = op.extra.get("alias_of", (op.name, {}))
    attrs = tuple(sorted((k, v) for k, v in {**options, **fixed}.items() if k != "out_sign"))
    if typed.result.is_scalar and not any(t.is_vector for t in typed.operands):
        if mask is not None and not op.extra.get("scalar_mask"):
            raise type_error(f"S.{op.name}: a mask needs vector arguments")
        scalar_ir = op.extra.get("scalar_ir")
        return scalar_ir(*converted) if scalar_ir else E.Call(name, converted, typed.result, attrs=attrs)
    mask_expr = build_mask(mask, mask_lanes_of(op, typed))
    r_expr = build_r(r, typed.result) if op.r == "param" else None
    if op.r == "param" and r_expr is None and not (mask_expr is not None and mask_expr.flags & E.F_FUNC):
        mask_expr = None  # inactive lanes are undefined; a sub-function in the mask is called all the same
    return E.Call(name, converted, typed.result, mask_expr, r_expr if mask_expr is not None else None, attrs)
