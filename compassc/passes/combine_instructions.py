"""Replace combinations of operations by one instruction that does the same.

Patterns, each on directly nested single-register calls: a narrowing conversion of right shifts (narrowing shift), a
product of widened factors (widening multiply), and/or with an inverted operand, inverted and/or of masks, and the
conversion of a rounded value. Rewritten calls are matched again until no pattern applies.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import exprs as E
from ..ir.dtypes import DataType, native
from ..ir.visit import Rewriter, for_each_function, rewrites
from ._vectors import builtin, cast, is_all_true, is_call

NAME = "CombineInstructions"

Pattern = Callable[[E.Call], "E.Expr | None"]


# ------------------------------------------------------------------------------------------------------ narrowing shift


def narrowing_shift(e: E.Call) -> E.Expr | None:
    source = e.args[0].data_type
    if not (e.dtype.is_integer and source.is_integer and e.dtype.is_native and e.dtype.bits < source.bits):
        return None
    saturate = bool(e.attr("saturate"))
    shifted: list[E.Expr] = []
    for x in e.args:
        if not is_call(x, "vsr") or not is_all_true(x.mask):
            return None
        shifted.append(shift_narrow(x.args, e.data_type, saturate, bool(x.attr("with_round"))))
    return pack(shifted, source, e.data_type)


def shift_narrow(args: tuple[E.Expr, ...], kind: DataType, saturate: bool, rounded: bool = False) -> E.Call:
    """A narrowing shift to elements of type `kind`."""
    return E.Call(
        "vnsr", args, kind, attrs=(("saturate", saturate), ("to_h", kind.bits == 16), ("with_round", rounded))
    )


def pack(parts: list[E.Call] | list[E.Expr], source: DataType, kind: DataType) -> E.Expr:
    """Narrowed registers, whose results lie at every `ratio`-th element, as one register."""

    def even(x: E.Expr, y: E.Expr) -> E.Expr:
        return E.Call("vconcat", (x, y), kind, attrs=(("part", "even"),))

    first, last = parts[0], parts[-1]
    if source.bits == 2 * kind.bits:
        return even(first, last)
    if len(parts) == 1:
        lowest = E.ConstMask(sum(1 << i for i in range(0, kind.lanes, 4)), kind.lanes)
        return builtin("__vcompt", first, dtype=kind, mask=lowest)
    low = even(parts[0], parts[1])
    return even(low, low if len(parts) == 2 else even(parts[2], last))


# ---------------------------------------------------------------------------------------------------- widening multiply

_LOW_FIRST = ("low", "ll", "lh")
_LOW_LAST = ("low", "ll", "hl")
_PARTS = ("low", "high", "ll", "lh", "hl", "hh")


def _widened(e: E.Expr) -> E.Call | None:
    """An integer conversion of one register to a wider type, not saturating, of a contiguous part."""
    if type(e) is not E.Call or e.op != "cast" or len(e.args) != 1 or e.attr("saturate"):
        return None
    source = e.args[0].dtype
    fits = source.is_integer and e.dtype.is_integer and source.bits < e.dtype.bits
    return e if fits and e.attr("part") in _PARTS else None


def _widened_splat(e: E.Expr, like: E.Call) -> E.Call | None:
    """A splat of a scalar conversion, as the conversion of a splat."""
    if type(e) is not E.Broadcast or type(e.value) is not E.Cast:
        return None
    narrow, source = e.value.value, like.args[0].dtype
    if not narrow.dtype.is_integer or narrow.dtype.bits != source.bits:
        return None
    return cast((E.Broadcast(narrow, source.lanes),), e.dtype, like.attr("part"))


def widening_multiply(e: E.Call) -> E.Expr | None:
    x = _widened(e.args[0])
    y = _widened(e.args[1])
    if x is not None and y is None and _is_static(e.mask):
        y = _widened_splat(e.args[1], x)
    if x is None or y is None or not e.dtype.is_integer:
        return None
    part = x.attr("part")
    a, b = x.args[0], y.args[0]
    if part != y.attr("part") or a.dtype.bits != b.dtype.bits or a.dtype.bits >= e.dtype.bits:
        return None
    if e.dtype.bits == 4 * a.dtype.bits:
        middle = "low" if part in _LOW_FIRST else "high"
        a, b = (cast((v,), native(v.data_type.element_of.with_bits(16)), middle) for v in (a, b))
    low = part in _LOW_LAST
    name = "vmull" if low else "vmulh"
    if not _is_static(e.mask):
        product = E.Call(name, (a, b), e.dtype)
        return product if e.r is None else E.Call("vsel", (product, e.r), e.dtype, e.mask)
    return E.Call(name, (a, b), e.dtype, _expanded(e.mask, a.dtype.lanes, low), e.r)


def _is_static(mask: E.Expr | None) -> bool:
    return mask is None or isinstance(mask, (E.ConstMask, E.TailMask))


def _expanded(mask: E.Expr | None, lanes: int, low: bool) -> E.Expr | None:
    """The mask of a product as a mask of its factors: the half that is not multiplied does not matter."""
    if isinstance(mask, E.ConstMask):
        other = lanes - mask.lanes
        ones = (1 << other) - 1
        return E.ConstMask(mask.bits | ones << mask.lanes if low else mask.bits << other | ones, lanes)
    if isinstance(mask, E.TailMask):
        extra = E.IntImm(mask.count.data_type, lanes - mask.lanes)
        return E.TailMask(mask.count if low else E.Binary("add", mask.count, extra), lanes)
    return mask


# ---------------------------------------------------------------------------------------------------- inverted operands


def _covers(inner: E.Expr | None, outer: E.Expr | None) -> bool:
    """Whether a constant mask is true wherever another one is."""
    if inner is None or (type(inner) is E.ConstMask and inner.all_true):
        return outer is None or type(outer) is E.ConstMask
    return isinstance(inner, E.ConstMask) and isinstance(outer, E.ConstMask) and outer.bits & ~inner.bits == 0


def _inverted_operand(name: str) -> Pattern:
    def match(e: E.Call) -> E.Expr | None:
        for x, y in (e.args, e.args[::-1]):
            if type(y) is E.Call and y.op == "vinv" and _covers(y.mask, e.mask):
                return E.Call(name, (x, y.args[0]), e.dtype, e.mask, e.r)
        return None

    return match


def inverted_result(e: E.Call) -> E.Expr | None:
    inner = e.args[0]
    if not e.dtype.is_mask or type(inner) is not E.Call or inner.op not in ("vand", "vor"):
        return None
    if not _covers(inner.mask, e.mask):
        return None
    return E.Call("__vnand" if inner.op == "vand" else "__vnor", inner.args, e.dtype, e.mask)


# ------------------------------------------------------------------------------------------------------------- rounding


def _rounded(e: E.Expr) -> E.Expr | None:
    return e.args[0] if type(e) is E.Call and e.op == "rint" and is_all_true(e.mask) else None


def rounded_conversion(e: E.Call) -> E.Expr | None:
    inner = e.args[0]
    value = _rounded(inner)
    if value is not None and value.dtype.bits == 32:
        return builtin("__vcvt", value, dtype=e.dtype)
    if type(inner) is E.Call and inner.op.startswith("__vcvtu") and inner.op.endswith("_tfp32"):
        value = _rounded(inner.args[0])
        if value is not None:
            return builtin(inner.op.replace("_tfp32", "_tw"), value, dtype=e.dtype)
    return None


PATTERNS: dict[str, Pattern] = {
    "cast": narrowing_shift,
    "vmul": widening_multiply,
    "vand": _inverted_operand("__vbclr"),
    "vor": _inverted_operand("__vbset"),
    "vinv": inverted_result,
    "convert_int8": rounded_conversion,
}


class _Combine(Rewriter):
    interest = E.flags_of_calls(*PATTERNS)

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        new: E.Expr = e.map(self.expr)
        while type(new) is E.Call:
            pattern = PATTERNS.get(new.op)
            found = None if pattern is None else pattern(new)
            if found is None:
                break
            new = found.map(self.expr)
        return new


run = for_each_function(lambda f: _Combine().function(f))
