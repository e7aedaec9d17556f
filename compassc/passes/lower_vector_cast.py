"""Vector conversions as the instruction sequences of the target.

Before: `cast` calls on registers, one or several inputs, with part and saturate. After: none; a conversion is a
sequence of builtins. A combination without a sequence is a CompassError that names it.
"""

from __future__ import annotations

from collections.abc import Callable

from compass_core import targets
from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import FLOAT32, INT32, DataType, native
from ..ir.visit import Rewriter, rewrites
from ._vectors import builtin, reinterpret, zero
from .combine_instructions import pack, shift_narrow

NAME = "LowerVectorCast"
_I32, _F32 = native(INT32), native(FLOAT32)
_STEPS = {
    "low": ("l",),
    "high": ("h",),
    "ll": ("l", "l"),
    "lh": ("l", "h"),
    "hl": ("h", "l"),
    "hh": ("h", "h"),
}


class _Lower(Rewriter):
    interest = E.F_VCAST

    def __init__(self, is_x2: bool) -> None:
        super().__init__()
        self.is_x2 = is_x2

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        return self.lower(e) if e.op == "cast" else e

    def lower(self, e: E.Call) -> E.Expr:
        source, kind = e.args[0].data_type, e.data_type
        part, saturate = e.attr("part", "all"), bool(e.attr("saturate"))
        if source is kind and len(e.args) == 1:
            return e.args[0]
        form = FORMS.get((_class(source), _class(kind)))
        found = None
        if form is not None and (len(e.args) == 1 or kind.bits < source.bits):
            found = form(self, e.args, kind, part, saturate)
        if found is None:
            count = f"{len(e.args)} vectors of " if len(e.args) > 1 else ""
            raise CompassError(
                f"no conversion from {count}{source} to {kind} with part={part!r}, saturate={e.attr('saturate')}",
                code="vector-cast",
            )
        return found


def _class(t: DataType) -> str:
    return "h" if t.is_floating and t.bits == 16 else "f" if t.is_floating else "i"


Args = tuple[E.Expr, ...]
Form = Callable[[_Lower, Args, DataType, str, bool], "E.Expr | None"]


# -------------------------------------------------------------------------------------------------- integer to integer


def change_sign(x: E.Expr, kind: DataType, saturate: bool) -> E.Expr:
    """Same width, other sign; clipped to the values both types have, if asked."""
    if x.dtype is kind:
        return x
    if not saturate:
        return reinterpret(x, kind)
    (low, high), (to_low, to_high) = x.data_type.range(), kind.range()

    def splat(value: float) -> E.Expr:
        return E.Broadcast(E.IntImm(x.data_type.element_of, int(value)), x.dtype.lanes)

    below = E.Call("min", (x, splat(min(high, to_high))), x.dtype, r=x)
    return reinterpret(E.Call("max", (below, splat(max(low, to_low))), x.dtype, r=x), kind)


def widen(x: E.Expr, bits: int, part: str) -> E.Expr | None:
    """A part of an integer register at a larger width, same sign."""
    letter = "s" if x.dtype.is_int else "u"
    if part in ("even", "odd"):
        x = E.Call("vconcat", (x, x), x.dtype, attrs=(("part", part),))
        part = "low"
    steps = _STEPS.get(part, ())
    if x.dtype.bits << len(steps) != bits:
        return None
    for half in steps:
        x = builtin(f"__v{letter}xt{half}", x, dtype=native(x.data_type.element_of.with_bits(x.dtype.bits * 2)))
    return x


def int_to_int(lower: _Lower, args: Args, kind: DataType, part: str, saturate: bool) -> E.Expr | None:
    source = args[0].data_type
    if kind.bits > source.bits:
        wide = widen(args[0], kind.bits, part)
        return None if wide is None else change_sign(wide, kind, saturate)
    if part != "all":
        return None
    if kind.bits == source.bits:
        return change_sign(args[0], kind, saturate)
    if len(args) > source.bits // kind.bits:
        return None
    return pack([narrowed(x, kind, saturate) for x in args], source, kind)


def narrowed(x: E.Expr, kind: DataType, saturate: bool) -> E.Expr:
    """A register of narrower elements whose every `ratio`-th one is the converted value."""
    if not saturate:
        return reinterpret(x, kind)
    shift = zero(x.data_type.with_uint())
    return shift_narrow((x, shift), kind, saturate=True)


# ------------------------------------------------------------------------------------------------------ floating point


def int_to_float(lower: _Lower, args: Args, kind: DataType, part: str, saturate: bool) -> E.Expr | None:
    x: E.Expr | None = args[0]
    if args[0].dtype.bits < 32:
        x = widen(args[0], 32, part)
    elif args[0].dtype.is_uint or part != "all":
        return None
    return None if x is None else builtin("__vcvt", reinterpret(x, _I32), dtype=kind)


def float_to_int(lower: _Lower, args: Args, kind: DataType, part: str, saturate: bool) -> E.Expr | None:
    if part != "all" or (kind.bits == 32 and kind.is_uint):
        return None
    words = tuple([builtin("convert_int8", x, dtype=_I32) for x in args])
    return words[0] if kind.bits == 32 else int_to_int(lower, words, kind, "all", False)


def to_half(lower: _Lower, args: Args, kind: DataType, part: str, saturate: bool) -> E.Expr | None:
    if part != "all" or args[0].dtype.bits != 32 or args[0].dtype.is_uint or len(args) > 2:
        return None
    return builtin("__vcvtd" if kind.is_float else "__vcvtd_tbf16", args[0], args[-1], dtype=kind)


def half_to_half(lower: _Lower, args: Args, kind: DataType, part: str, saturate: bool) -> E.Expr | None:
    return builtin("__vcvt", args[0], dtype=kind) if part == "all" else None


def _half_part(lower: _Lower, x: E.Expr, part: str, finish: Callable[[E.Expr], E.Expr]) -> E.Expr | None:
    """A part of a 16-bit float register as float32, `finish` applied; X2 reads only even and odd elements."""

    def unpack(letter: str) -> E.Expr:
        return finish(builtin(f"__vcvtu{letter}_tfp32", x, dtype=_F32))

    if part in ("even", "odd") or (part in ("low", "high") and not lower.is_x2):
        return unpack(part[0])
    if part not in ("low", "high"):
        return None
    even, odd = unpack("e"), unpack("o")
    return E.Call("vzip", (even, odd), even.dtype, attrs=(("part", part),))


def half_to_float(lower: _Lower, args: Args, kind: DataType, part: str, saturate: bool) -> E.Expr | None:
    return _half_part(lower, args[0], part, lambda x: x)


def half_to_int(lower: _Lower, args: Args, kind: DataType, part: str, saturate: bool) -> E.Expr | None:
    source = args[0].dtype
    if kind.bits != 32 or (kind.is_uint and not source.is_float):
        return None
    found = _half_part(lower, args[0], part, lambda x: builtin("convert_int8", x, dtype=_I32))
    return None if found is None else reinterpret(found, kind)


FORMS: dict[tuple[str, str], Form] = {
    ("i", "i"): int_to_int,
    ("i", "f"): int_to_float,
    ("i", "h"): to_half,
    ("f", "i"): float_to_int,
    ("f", "h"): to_half,
    ("h", "h"): half_to_half,
    ("h", "f"): half_to_float,
    ("h", "i"): half_to_int,
}
"""By the kinds of source and target: `i` integer, `f` float32, `h` 16-bit floating point."""


def run(module: S.IRModule) -> S.IRModule:
    is_x2 = targets.load(module.target).version == "X2"
    return module.map_functions(lambda f: _Lower(is_x2).function(f))
