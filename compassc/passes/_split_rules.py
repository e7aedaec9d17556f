"""How each operation is split into registers: one rule per `Op.split` name.

A rule gets the aligner and the call, and gives the list of parts in order. Part k of a vector of element type T holds
the lanes k*W .. k*W+W-1, W = 256 / bits(T); the lanes of the last part beyond the vector's end are padding, which
masks switch off wherever memory or a lane-crossing result could see it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError

from ..analysis.statements import is_const
from ..ir import exprs as E
from ..ir.dtypes import DataType, bool_of, dtype, native
from ..ops import spelling
from ._vectors import active, add_offset, builtin, cast, first_lanes, int32, times, zero

if TYPE_CHECKING:
    from .legalize_vector_width import Aligner

Rule = Callable[..., list[E.Expr]]
"""Called with the aligner and the call; rules that also cut masks take the wanted register width as well."""
RULES: dict[str, Rule] = {}
_OFFSETS = dtype("uint16x16")
_WIDENING = {2: ("low", "high"), 4: ("ll", "lh", "hl", "hh")}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return register


def part_count(lanes: int, width: int) -> int:
    return -(-lanes // width)


def chunks(items: list[E.Expr], size: int) -> list[list[E.Expr]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def padded_mask(a: Aligner, mask: E.Expr | None, lanes: int, width: int) -> list[E.Expr | None]:
    """The parts of a call's mask; a part with padding gets a mask even when all lanes of the vector are active."""
    if mask is not None:
        return [active(m) for m in a.parts(mask, width)]
    full, rest = divmod(lanes, width)
    parts: list[E.Expr | None] = [None] * full
    return [*parts, first_lanes(rest, width)] if rest else parts


@rule("lanes")
def by_lanes(a: Aligner, e: E.Call, width: int = 0) -> list[E.Expr]:
    """The same call on the parts of each operand; scalars are repeated. `width`: that of a call on masks."""
    operands = [a.parts(x, width) if x.dtype.is_vector else [a.once(a.scalar(x))] for x in e.args]
    count = max(len(parts) for parts in operands)
    like = spelling.mask_dtype(e)
    governing = like if like.is_vector else e.dtype
    per = width if governing.is_mask else governing.native_lanes
    masks = padded_mask(a, e.mask, governing.lanes, per) if spelling.has_mask(e.op) else [None] * count
    sources = [None] * count if e.r is None else a.parts(e.r)
    kind = result_type(e, width or per)
    out: list[E.Expr] = []
    for k in range(count):
        args = tuple([parts[k] if len(parts) > 1 else parts[0] for parts in operands])
        out.append(E.Call(e.op, args, kind, masks[k], sources[k], e.attrs))
    return out


def result_type(e: E.Call, width: int) -> DataType:
    """The type of one part of a call's result."""
    if e.dtype.is_mask:
        first = next((x.dtype for x in e.args if x.dtype.is_vector and not x.dtype.is_mask), None)
        return bool_of(first.native_lanes if first is not None else width)
    return native(e.data_type.element_of) if e.dtype.is_vector else e.data_type


# ------------------------------------------------------------------------------------------------------------- memory


def advance(pointer: E.Expr, kind: DataType, lanes: int, stride: E.Expr) -> E.Expr:
    """The address `lanes * stride` elements of type `kind` behind `pointer`."""
    amount = times(lanes, stride)
    elem = pointer.pointer_type.elem
    if is_const(amount, 0):
        return pointer
    if elem is kind.element_of:
        if type(pointer) is E.Pointer:
            return E.Pointer(elem, pointer.base, add_offset(pointer.offset, amount))
        return E.Pointer(elem, pointer, amount)
    if elem is kind and is_const(stride, 1) and type(pointer) is E.Pointer:
        return E.Pointer(elem, pointer.base, add_offset(pointer.offset, int32(lanes // kind.lanes)))
    return E.Pointer(kind.element_of, pointer, amount)


@rule("vload")
def vload(a: Aligner, e: E.Call) -> list[E.Expr]:
    pointer, stride = a.once(a.scalar(e.args[0])), a.once(a.scalar(e.args[1]))
    kind = native(e.data_type.element_of)
    masks = padded_mask(a, e.mask, e.dtype.lanes, kind.lanes)
    return [
        E.Call("vload", (advance(pointer, kind, k * kind.lanes, stride), stride), kind, mask)
        for k, mask in enumerate(masks)
    ]


@rule("vstore")
def vstore(a: Aligner, e: E.Call) -> list[E.Expr]:
    kind = native(e.args[0].data_type.element_of)
    count = part_count(e.args[0].dtype.lanes, kind.lanes)
    pointer, stride = [unchanged(a, a.scalar(x), e.args[1], count) for x in e.args[1:]]
    places: list[E.Expr] = [advance(pointer, kind, k * kind.lanes, stride) for k in range(count)]
    values = unchanged_parts(a, a.parts(e.args[0]), e.args[1], places if is_const(stride, 1) else [])
    masks = unchanged_parts(a, padded_mask(a, e.mask, e.args[0].dtype.lanes, kind.lanes), e.args[1], [])
    return [
        E.Call("vstore", (value, place, stride), e.dtype, mask)
        for value, place, mask in zip(values, places, masks, strict=True)
    ]


def unchanged(a: Aligner, e: E.Expr, target: E.Expr, count: int) -> E.Expr:
    """`e` for each of the `count` parts of a store to `target`: evaluated once beforehand if a part's store could change it."""
    return a.saved(e) if count > 1 and a.hazards.reads(e, a.hazards.roots(target), None) else a.once(e)


def unchanged_parts(a: Aligner, parts: list[Any], target: E.Expr, places: list[E.Expr]) -> list[Any]:
    """What the parts of a store to `target` use, evaluated before where an earlier part could change it. `places`: the
    address of each part, which it may read itself."""
    roots = a.hazards.roots(target)
    out = parts[:1]
    for k, e in enumerate(parts[1:], 1):
        changed = e is not None and a.hazards.reads(e, roots, places[k] if places else None)
        out.append(a.saved(e) if changed else e)
    return out


def offset_parts(offsets: list[E.Expr], bits: int, k: int) -> tuple[E.Expr, ...]:
    """The offset registers that part k of a gather or scatter of `bits`-wide elements takes."""
    if bits == 8:
        return offsets[2 * k], offsets[2 * k + 1] if 2 * k + 1 < len(offsets) else zero(_OFFSETS)
    if bits == 16:
        return (offsets[k],)
    found = offsets[k // 2]
    return (builtin("__vshfl", found, int32(8), dtype=found.dtype) if k % 2 else found,)


@rule("__vload_gather")
def gather(a: Aligner, e: E.Call) -> list[E.Expr]:
    pointer, offsets = a.once(a.scalar(e.args[0])), [a.once(o) for o in a.parts(e.args[1])]
    kind = native(e.data_type.element_of)
    masks = padded_mask(a, e.mask, e.dtype.lanes, kind.lanes)
    return [E.Call(e.op, (pointer, *offset_parts(offsets, kind.bits, k)), kind, mask) for k, mask in enumerate(masks)]


@rule("__vstore_scatter")
def scatter(a: Aligner, e: E.Call) -> list[E.Expr]:
    value, kind = e.args[0], native(e.args[0].data_type.element_of)
    count = part_count(value.dtype.lanes, kind.lanes)
    pointer = unchanged(a, a.scalar(e.args[1]), e.args[1], count)
    offsets = [unchanged(a, o, e.args[1], count) for o in a.parts(e.args[2])]
    masks = unchanged_parts(a, padded_mask(a, e.mask, value.dtype.lanes, kind.lanes), e.args[1], [])
    return [
        E.Call(e.op, (part, pointer, *offset_parts(offsets, kind.bits, k)), e.dtype, masks[k])
        for k, part in enumerate(unchanged_parts(a, a.parts(value), e.args[1], []))
    ]


# -------------------------------------------------------------------------------------------------------- conversions


@rule("cast")
def convert(a: Aligner, e: E.Call) -> list[E.Expr]:
    source, kind = e.args[0].dtype, native(e.data_type.element_of)
    part, saturate = e.attr("part", "all"), e.attr("saturate")
    inputs = [p for x in e.args for p in a.parts(x)]
    if kind.bits < source.bits:
        groups = chunks(inputs, source.bits // kind.bits)
        return [cast(tuple(group), kind, "all", saturate) for group in groups]
    if kind.bits == source.bits or part not in ("all", "all_with_no_zip"):
        return [cast((x,), kind, part, saturate) for x in inputs]
    names = ("even", "odd") if part == "all_with_no_zip" else _WIDENING[kind.bits // source.bits]
    wanted = part_count(e.dtype.lanes, kind.lanes)
    pieces = [(x, name) for x in map(a.once, inputs) for name in names][:wanted]
    return [cast((x,), kind, name, saturate) for x, name in pieces]


# -------------------------------------------------------------------------------------------------------- permutation


def lane_width(e: E.Call, width: int) -> int:
    """Register width for an operation that moves lanes: that of the data, or what masks of this length can have."""
    if not e.dtype.is_mask:
        return e.args[0].dtype.native_lanes
    lanes = [x.dtype.lanes for x in e.args if x.dtype.is_mask]
    return next(w for w in (width, 16, 8) if w <= width and all(n % w == 0 for n in lanes) or w == 8)


@rule("vzip")
def vzip(a: Aligner, e: E.Call, width: int = 0) -> list[E.Expr]:
    part = e.attr("part", "all")
    per = lane_width(e, width)
    xs, ys = a.parts(e.args[0], per), a.parts(e.args[1], per)
    kind = xs[0].dtype

    def zipped(name: str, x: E.Expr, y: E.Expr) -> E.Expr:
        return E.Call("vzip", (x, y), kind, attrs=(("part", name),))

    if part in ("even", "odd"):
        return [zipped(part, x, y) for x, y in zip(xs, ys, strict=True)]
    pairs = [zipped(name, x, y) for x, y in zip(xs, ys, strict=True) for name in ("low", "high")]
    if part == "all":
        return pairs[: part_count(2 * e.args[0].dtype.lanes, per)]
    return pairs[: len(xs)] if part == "low" else pairs[len(xs) :]


@rule("vrevs")
def vrevs(a: Aligner, e: E.Call, width: int = 0) -> list[E.Expr]:
    parts = a.parts(e.args[0], lane_width(e, width))
    return [E.Call("vrevs", (x,), x.dtype) for x in reversed(parts)]


def sldl(x: E.Expr, y: E.Expr, lanes: int) -> E.Expr:
    return builtin("__vsldl", x, y, int32(lanes), dtype=x.dtype)


@rule("vsldl")
def vsldl(a: Aligner, e: E.Call) -> list[E.Expr]:
    return slid(a.parts(e.args[0]) + a.parts(e.args[1]), constant(e, 2, "shift"))


@rule("vshfl")
def vshfl(a: Aligner, e: E.Call) -> list[E.Expr]:
    parts = a.parts(e.args[0])
    if len(parts) == 1:
        return [E.Call(e.op, (parts[0], a.scalar(e.args[1])), parts[0].dtype)]
    return slid(parts + parts, constant(e, 1, "shift"))


def slid(registers: list[E.Expr], shift: int) -> list[E.Expr]:
    """Half as many registers: the lanes of all of them from lane `shift` on."""
    whole, rest = divmod(shift, registers[0].dtype.lanes)
    count = len(registers) // 2
    if not rest:
        return registers[whole : whole + count]
    return [sldl(registers[whole + k], registers[whole + k + 1], rest) for k in range(count)]


def constant(e: E.Call, index: int, attr: str) -> int:
    """A compile-time number of a call: its argument `index`, or an attribute."""
    if len(e.args) <= index:
        number: int = e.attr(attr, 0)
        return number
    value = e.args[index]
    if type(value) is not E.IntImm:
        raise CompassError(
            f"S.{e.op} on {e.args[0].dtype} needs a constant {attr}",
            code="wide-vector",
            help="give a constant, or work on vectors of one register",
        )
    return value.value


@rule("vconcat")
def vconcat(a: Aligner, e: E.Call, width: int = 0) -> list[E.Expr]:
    part = e.attr("part", "all")
    per = lane_width(e, width)
    inputs = [a.parts(x, per) for x in e.args]
    flat = [x for parts in inputs for x in parts]
    if part == "all":
        return flat
    if part in ("even", "odd"):
        return [joined(part, pair[0], pair[1] if len(pair) == 2 else _any(pair[0])) for pair in chunks(flat, 2)]
    count = len(inputs[0])
    if count % 2 == 0:
        half = slice(0, count // 2) if part == "low" else slice(count // 2, count)
        return [x for parts in inputs for x in parts[half]]
    return odd_halves(inputs, part)


def _any(x: E.Expr) -> E.Expr:
    """A register whose lanes do not matter, beside `x`: such that none is computed twice."""
    return x if isinstance(x, E.Var) or x.dtype.is_mask else zero(x.data_type)


def joined(part: str, x: E.Expr, y: E.Expr) -> E.Expr:
    return E.Call("vconcat", (x, y), x.dtype, attrs=(("part", part),))


def across(x: E.Expr, y: E.Expr) -> E.Expr:
    """The high half of `x` followed by the low half of `y`; masks have no slide instruction."""
    if x.dtype.is_mask:
        return joined("low", joined("high", x, x), y)
    return sldl(x, y, x.dtype.lanes // 2)


def odd_halves(inputs: list[list[E.Expr]], part: str) -> list[E.Expr]:
    """The low or high halves of vectors that are an odd number of registers long, joined."""
    count = len(inputs[0])
    m = count // 2
    out: list[E.Expr] = []
    for i, x in enumerate(inputs):
        if part == "low" and i % 2 == 0:
            follower = inputs[i + 1][0] if i + 1 < len(inputs) else x[m]
            out += [*x[:m], joined("low", x[m], follower)]
        elif part == "low":
            out += [across(x[j], x[j + 1]) for j in range(m)]
        elif i % 2 == 0:
            follower = inputs[i + 1][m] if i + 1 < len(inputs) else x[-1]
            out += [across(x[j], x[j + 1]) for j in range(m, count - 1)]
            out.append(joined("high", x[-1], follower))
        else:
            out += x[m + 1 :]
    return out


@rule("vsplit")
def vsplit(a: Aligner, e: E.Call) -> list[E.Expr]:
    return [a.parts(e.args[0])[constant(e, 1, "index")]]


@rule("vreplic")
def vreplic(a: Aligner, e: E.Call) -> list[E.Expr]:
    parts = a.parts(e.args[0])
    if len(parts) == 1:
        args = (parts[0], *[a.scalar(x) for x in e.args[1:]])
        return [E.Call(e.op, args, parts[0].dtype, attrs=e.attrs)]
    one = parts[0].dtype
    if type(e.args[1]) is E.IntImm:
        which, lane = divmod(e.args[1].value, one.lanes)
        return [E.Call(e.op, (parts[which], int32(lane)), one)] * len(parts)
    index = a.once(a.scalar(e.args[1]))
    lane_index = E.Binary("bitand", index, int32(one.lanes - 1))
    *firsts, last = [E.Call(e.op, (part, lane_index), one) for part in parts]
    result: E.Expr = last
    for k, found in reversed(list(enumerate(firsts, 1))):
        result = E.Select(E.Binary("lt", index, int32(k * one.lanes)), found, result)
    return [result] * len(parts)


@rule("pairwise")
def pairwise(a: Aligner, e: E.Call) -> list[E.Expr]:
    parts = a.parts(e.args[0]) + a.parts(e.args[1])
    return [E.Call(e.op, (x, y), native(e.data_type.element_of), attrs=e.attrs) for x, y in chunks(parts, 2)]


@rule("rpadd")
def vrpadd(a: Aligner, e: E.Call) -> list[E.Expr]:
    """Sums of the parts, added up in part 0."""
    kind = native(e.data_type.element_of)
    sums = [E.Call(x.op, x.args, kind, x.mask, x.r, x.attrs) for x in by_lanes(a, e) if type(x) is E.Call]
    total: E.Expr = sums[0]
    for other in sums[1:]:
        total = E.Binary("add", total, other)
    return [total] + [zero(kind)] * (part_count(e.dtype.lanes, kind.lanes) - 1)


@rule("vbcast")
def vbcast(a: Aligner, e: E.Call) -> list[E.Expr]:
    kind, value = native(e.data_type.element_of), a.once(a.scalar(e.args[0]))
    masks = padded_mask(a, e.mask, e.dtype.lanes, kind.lanes)
    sources = [None] * len(masks) if e.r is None else a.parts(e.r)
    return [E.Call(e.op, (value,), kind, mask, r, e.attrs) for mask, r in zip(masks, sources, strict=True)]


@rule("reduce_mask")
def reduce_mask(a: Aligner, e: E.Call) -> list[E.Expr]:
    """The reduction of every register, combined; padding lanes do not affect the result."""
    mask = e.args[0]
    width = a.masks.width(mask)
    parts = a.parts(mask, width)
    rest = mask.dtype.lanes % width
    if e.op == "vall" and rest:
        padding = E.ConstMask(~((1 << rest) - 1), width)
        parts[-1] = E.Call("vor", (parts[-1], padding), padding.dtype)
    answer: E.Expr = E.Call(e.op, (parts[0],), e.dtype)
    for part in parts[1:]:
        answer = E.Binary("and" if e.op == "vall" else "or", answer, E.Call(e.op, (part,), e.dtype))
    return [answer]


MASK_RULES: dict[str, Rule] = {
    "vzip": vzip,
    "vrevs": vrevs,
    "vconcat": vconcat,
}
"""Rules of the operations that move lanes of masks; they also get the wanted register width."""
