"""Indices as sums of parts of loop variables: which loops reach which points of a box, and the way back.

An index such as `i * 4 + j` is a mark, which counts from 0 to its extent, of parts of others; `(k // 2) % 8` is a part of one.
Indices are taken not to wrap. Extents are constants: what is not is refused with a reason, as is what is no such sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from itertools import pairwise
from math import prod

from compass_core.dataclass import dataclass
from compassc.analysis.arith import Arith
from compassc.analysis.conditions import TRUE, conjuncts, joined
from compassc.analysis.simplify import Simplifier
from compassc.ir.dtypes import INT32
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Binary, Expr, IntImm, Unary, Var
from compassc.ir.iter_vars import Range
from compassc.ir.node import Node, node
from compassc.ir.node import field as ir_field
from compassc.ir.operators import as_expr, binary, kind_of
from compassc.ir.visit import walk_exprs


class IterMapLevel(IntEnum):
    """What is asked of a map: that each point is reached once, that each point is reached, nothing."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3


def _source(source: object) -> Node:
    return source if isinstance(source, Node) else as_expr(source)


def _extent(extent: object) -> Expr:
    return as_expr(extent)


def _lower_factor(lower_factor: object) -> Expr:
    return as_expr(lower_factor)


def _scale(scale: object) -> Expr:
    return as_expr(scale)


def _base(base: object) -> Expr:
    return as_expr(base)


def _args(args: Sequence[IterSplitExpr]) -> tuple[IterSplitExpr, ...]:
    return tuple(args)


@node()
class IterMark(Node):
    """A number that counts from 0 to `extent`: a variable, or an `IterSumExpr` of parts of others."""

    source: Node = ir_field(normalise=_source)
    extent: Expr = ir_field(normalise=_extent)


@node()
class IterSplitExpr(Node):
    """A part of a mark: `(source // lower_factor) % extent * scale`."""

    source: IterMark
    lower_factor: Expr = ir_field(normalise=_lower_factor)
    extent: Expr = ir_field(normalise=_extent)
    scale: Expr = ir_field(normalise=_scale)

    @property
    def key(self) -> tuple[object, ...]:
        """The part without its scale; the same for the same part of the same mark."""
        return mark_key(self.source), number_of(self.lower_factor), number_of(self.extent)


@node()
class IterSumExpr(Node):
    """A sum of parts and of a base that no loop changes."""

    args: tuple[IterSplitExpr, ...] = ir_field(normalise=_args)
    base: Expr = ir_field(normalise=_base)


def mark_key(mark: IterMark) -> tuple[object, ...]:
    """What is the same for equal marks."""
    s = mark.source
    parts = tuple((a.key, number_of(a.scale)) for a in s.args) if isinstance(s, IterSumExpr) else s
    return parts, number_of(mark.extent)


@dataclass(frozen=True)
class IterMapResult:
    """What `detect_iter_map` found: a sum per index, none where it failed, and then why. `padding_predicate` says which points
    are none of the loops' own: never any, for a division that leaves a rest is refused."""

    indices: list[IterSumExpr]
    errors: list[str]
    padding_predicate: Expr = field(default=IntImm(TRUE.data_type, 0))


class NoIterMap(Exception):
    """Why an expression is no sum of parts."""


def number_of(e: Expr) -> int:
    """The number that an expression is; NoIterMap for others."""
    if isinstance(e, IntImm):
        return e.value
    raise NoIterMap(f"'{e}' is no constant")


class Maps:
    """Sums of parts of some variables, under conditions."""

    def __init__(self, iters: Mapping[Var, Range], predicate: object = True, trivial: bool = True) -> None:
        self.iters, self.trivial = dict(iters), trivial
        self.simplify = Simplifier(facts_of(self.iters)).expr
        self.marks: dict[Var, IterMark] = {}
        self.limited: list[tuple[IterSumExpr, IterMark]] = []
        """Sums that a condition holds below a number, with the marks that they are then."""
        for c in conjuncts(self.simplify(as_expr(predicate))):
            self._limit(c)
        self.limited.sort(key=lambda pair: -len(pair[0].args))

    def _limit(self, c: Expr) -> None:
        if isinstance(c, Unary) and c.op == "not" and isinstance(c.a, Binary) and c.a.op in ("ge", "gt"):
            c = Binary({"ge": "lt", "gt": "le"}[c.a.op], c.a.a, c.a.b)
        if isinstance(c, IntImm):
            raise NoIterMap("the condition never holds")
        if not isinstance(c, Binary) or c.op not in ("lt", "le") or not isinstance(c.b, IntImm):
            raise NoIterMap(f"the condition '{c}' is none of the form 'index < number'")
        total = self.fused(self.sum(c.a))
        part = self.single(total, c.a)
        limit = c.b.value + (c.op == "le") - number_of(total.base)
        if part is None or number_of(part.scale) != 1:
            raise NoIterMap(f"the condition '{c}' is about no index that counts in steps of one")
        if limit >= number_of(part.extent):
            return
        if limit <= 0:
            raise NoIterMap(f"the condition '{c}' never holds")
        inner = part.source.source
        whole = number_of(part.lower_factor) == 1 and number_of(part.extent) == number_of(part.source.extent)
        made = inner if isinstance(inner, IterSumExpr) and whole else IterSumExpr((part,), self.constant(0, c.a))
        if any({p.key for p in made.args} & {p.key for p in other.args} for other, _ in self.limited):
            raise NoIterMap(f"the condition '{c}' is about parts that another one is about")
        self.limited.append((made, IterMark(made, self.constant(limit, c.a))))

    @staticmethod
    def constant(value: int, like: Expr) -> Expr:
        return IntImm(kind_of(like), value)

    # -- sums

    def sum(self, given: object) -> IterSumExpr:
        """An index as a sum of parts."""
        e = as_expr(given)
        if isinstance(e, Var) and e in self.iters:
            return self._variable(e)
        if not any(x in self.iters for x in walk_exprs(e) if isinstance(x, Var)):
            return IterSumExpr((), e)
        if not isinstance(e, Binary) or e.op not in ("add", "sub", "mul", "floordiv", "floormod", "div", "mod"):
            raise NoIterMap(f"'{e}' is no sum of parts of the variables")
        a = self.sum(e.a)
        if e.op in ("add", "sub"):
            return self._added(a, self.sum(e.b), 1 if e.op == "add" else -1, e)
        if e.op == "mul":
            number, rest = (e.a, e.b) if isinstance(e.a, IntImm) else (e.b, e.a)
            return self._scaled(self.sum(rest), number_of(number), e)
        by = number_of(self.simplify(e.b))
        if by <= 0:
            raise NoIterMap(f"'{e}' divides by {by}")
        if e.op in ("div", "mod") and number_of(a.base) < 0:
            raise NoIterMap(f"'{e}' rounds towards zero, and may be negative")
        return self._divided(self.fused(a), by, e.op in ("floordiv", "div"), e)

    def _variable(self, v: Var) -> IterSumExpr:
        given, base = self.iters[v], self.simplify(self.iters[v].min)
        extent = self.simplify(given.extent)
        if not isinstance(extent, IntImm) or extent.value <= 0:
            raise NoIterMap(f"the extent of '{v.name}' is {extent}, no number above 0")
        if self.trivial and extent.value == 1:
            return IterSumExpr((), base)
        zero = isinstance(base, IntImm) and base.value == 0
        mark = self.marks.setdefault(v, IterMark(v if zero else binary("sub", v, base), extent))
        one = self.constant(1, v)
        return IterSumExpr((IterSplitExpr(mark, one, extent, one),), base)

    def _added(self, a: IterSumExpr, b: IterSumExpr, sign: int, like: Expr) -> IterSumExpr:
        scales: dict[tuple[object, ...], tuple[IterSplitExpr, int]] = {}
        for part, by in (*((p, 1) for p in a.args), *((p, sign) for p in b.args)):
            before = scales.get(part.key, (part, 0))[1]
            scales[part.key] = part, before + by * number_of(part.scale)
        parts = tuple(p.replace(scale=self.constant(s, like)) for p, s in scales.values() if s)
        return IterSumExpr(parts, self.simplify(binary("add" if sign > 0 else "sub", a.base, b.base)))

    def _scaled(self, a: IterSumExpr, by: int, like: Expr) -> IterSumExpr:
        parts = tuple(p.replace(scale=self.constant(number_of(p.scale) * by, like)) for p in a.args) if by else ()
        return IterSumExpr(parts, self.simplify(binary("mul", a.base, self.constant(by, like))))

    def _divided(self, a: IterSumExpr, by: int, quotient: bool, like: Expr) -> IterSumExpr:
        """The quotient or the rest of a sum by a number, which must divide what is beyond it."""
        base = number_of(a.base)
        part = self.single(a, like)
        if part is None:
            return IterSumExpr((), self.constant(base // by if quotient else base % by, like))
        if base % by or number_of(part.scale) < 0:
            raise NoIterMap(f"'{like}' divides an index that begins at {base}, or that counts down, by {by}")
        scale, extent, lower = (number_of(x) for x in (part.scale, part.extent, part.lower_factor))
        rest = self.constant(base // by if quotient else 0, like)
        if scale % by == 0:
            parts = (part.replace(scale=self.constant(scale // by, like)),) if quotient else ()
        elif extent * scale <= by:
            parts = () if quotient else (part,)
        elif by % scale or extent % (by // scale):
            raise NoIterMap(f"'{like}': {by} does not divide {extent} steps of {scale}")
        else:
            step = by // scale
            low, high = (step, extent // step)
            made = (lower * step, high, 1) if quotient else (lower, low, scale)
            parts = (IterSplitExpr(part.source, *(self.constant(x, like) for x in made)),)
        return IterSumExpr(parts, rest)

    # -- fusing

    def single(self, total: IterSumExpr, like: object) -> IterSplitExpr | None:
        """The one part that a fused sum has; None where there is none."""
        if len(total.args) > 1:
            raise NoIterMap(f"'{like}' is no number of several digits: their scales do not fit together")
        return total.args[0] if total.args else None

    def fused(self, total: IterSumExpr) -> IterSumExpr:
        """The sum with its parts as one mark, where they fit together like digits of a number."""
        args = self._limited_parts(total.args)
        args = self._joined(tuple(sorted(args, key=lambda p: -number_of(p.scale))))
        if len(args) < 2:
            return IterSumExpr(args, total.base)
        step = number_of(args[-1].scale)
        reached = step
        for p in reversed(args):
            if number_of(p.scale) != reached or step <= 0:
                raise NoIterMap(
                    f"the scales {[number_of(p.scale) for p in args]} of {expression(total)} do not fit together"
                )
            reached *= number_of(p.extent)
        like = args[0].scale
        inner = tuple(p.replace(scale=self.constant(number_of(p.scale) // step, like)) for p in args)
        extent = self.constant(reached // step, like)
        mark = IterMark(IterSumExpr(inner, self.constant(0, like)), extent)
        return IterSumExpr(
            (IterSplitExpr(mark, self.constant(1, like), extent, self.constant(step, like)),), total.base
        )

    def _joined(self, args: tuple[IterSplitExpr, ...]) -> tuple[IterSplitExpr, ...]:
        """Parts of one mark that are next to each other as one."""
        for i, (a, b) in enumerate(pairwise(args)):
            low, extent = number_of(b.lower_factor), number_of(b.extent)
            together = mark_key(a.source) == mark_key(b.source) and number_of(a.lower_factor) == low * extent
            if together and number_of(a.scale) == number_of(b.scale) * extent:
                whole = self.constant(number_of(a.extent) * extent, a.scale)
                return self._joined((*args[:i], b.replace(extent=whole), *args[i + 2 :]))
        return args

    def _limited_parts(self, args: tuple[IterSplitExpr, ...]) -> tuple[IterSplitExpr, ...]:
        """The parts with marks for those that a condition is about."""
        for limited, mark in self.limited:
            found = {p.key: p for p in args}
            inside = [(found.get(p.key), number_of(p.scale)) for p in limited.args]
            steps = {
                number_of(p.scale) // scale if p is not None and not number_of(p.scale) % scale else 0
                for p, scale in inside
            }
            if len(steps) == 1 and min(steps) > 0:
                keys = {p.key for p in limited.args}
                one, step = self.constant(1, mark.extent), self.constant(min(steps), mark.extent)
                made = IterSplitExpr(mark, one, mark.extent, step)
                args = (*(p for p in args if p.key not in keys), made)
        return args

    # -- what a map reaches

    def check(self, found: Sequence[IterSumExpr], level: IterMapLevel) -> None:
        """NoIterMap unless the sums together reach each point of their box (once)."""
        if level == IterMapLevel.NoCheck:
            return
        parts = {p.key: p for total in found for p in total.args}
        if len(parts) < sum(len(total.args) for total in found):
            raise NoIterMap("two indices are made of the same part of a variable")
        reached: set[tuple[object, ...]] = set()
        self._independent(list(parts.values()), level, reached)
        if any(mark_key(mark) not in reached for _, mark in self.limited):
            raise NoIterMap("a condition is about no index, so that not all points of the box are reached")
        turned = [v for v, r in self.iters.items() if number_of(self.simplify(r.extent)) > 1]
        missing = [v.name for v in turned if v not in self.marks or mark_key(self.marks[v]) not in reached]
        if missing and level == IterMapLevel.Bijective:
            raise NoIterMap(f"no index is made of {', '.join(missing)}")

    def _independent(self, parts: list[IterSplitExpr], level: IterMapLevel, reached: set[tuple[object, ...]]) -> None:
        """NoIterMap unless parts of the same mark are different digits of it, and with all levels below. The marks are added
        to `reached`."""
        groups: dict[tuple[object, ...], list[IterSplitExpr]] = {}
        for p in parts:
            groups.setdefault(mark_key(p.source), []).append(p)
        reached |= set(groups)
        below = [p for p in parts if not isinstance(p.source.source, IterSumExpr)]
        taken = {p.key for p in parts}
        deeper = False
        for group in groups.values():
            _digits(group, level)
            inner = group[0].source.source
            for p in inner.args if isinstance(inner, IterSumExpr) else ():
                if p.key in taken:
                    raise NoIterMap("two indices are made of the same part of a variable")
                taken.add(p.key)
                below.append(p)
                deeper = True
        if deeper:
            self._independent(below, level, reached)


def _digits(group: list[IterSplitExpr], level: IterMapLevel) -> None:
    """NoIterMap unless parts of one mark are different digits of it (and all of them)."""
    source = group[0].source
    beyond, count = 1, prod(number_of(p.extent) for p in group)
    for p in sorted(group, key=lambda p: number_of(p.lower_factor)):
        if number_of(p.lower_factor) % beyond:
            raise NoIterMap(f"parts of '{expression(source)}' overlap")
        beyond = number_of(p.lower_factor) * number_of(p.extent)
    if level == IterMapLevel.Bijective and count < number_of(source.extent):
        raise NoIterMap(
            f"'{expression(source)}' has {number_of(source.extent)} values, of which {count} are told apart"
        )


def facts_of(iters: Mapping[Var, Range]) -> Arith:
    """What is known of variables with ranges."""
    facts = Arith()
    for v, r in iters.items():
        facts.bind_loop(v, r.min, binary("add", r.min, r.extent), IntImm(kind_of(v), 1))
    return facts


def expression(e: Node) -> Expr:
    """A mark, part or sum as an expression of the variables; an expression itself."""
    if isinstance(e, IterMark):
        return expression(e.source)
    if isinstance(e, IterSplitExpr):
        return _part(expression(e.source), e, number_of(e.source.extent))
    if isinstance(e, IterSumExpr):
        total: Expr = e.base
        for p in reversed(e.args):
            zero = isinstance(total, IntImm) and total.value == 0
            total = expression(p) if zero else binary("add", expression(p), total)
        return total
    return as_expr(e)


def _part(value: Expr, p: IterSplitExpr, whole: int) -> Expr:
    lower, extent, scale = (number_of(x) for x in (p.lower_factor, p.extent, p.scale))
    if lower > 1:
        value = binary("floordiv", value, p.lower_factor)
    if lower * extent < whole:
        value = binary("floormod", value, p.extent)
    return value if scale == 1 else binary("mul", value, p.scale)


def _ranges(iters: Mapping[Var, object]) -> dict[Var, Range]:
    return {v: r if isinstance(r, Range) else Range(r) for v, r in iters.items()}


def detect_iter_map(
    indices: Sequence[object],
    input_iters: Mapping[Var, Range],
    predicate: object = True,
    check_level: int = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """Indices as sums of one part each of marks, where variables with ranges (constant extents) make them such. `predicate`:
    conditions `index < number`, joined by and, under which the variables run. `check_level`: an `IterMapLevel`."""
    try:
        maps = Maps(_ranges(input_iters), predicate, simplify_trivial_iterators)
        found = [maps.fused(maps.sum(maps.simplify(as_expr(e)))) for e in indices]
        maps.check(found, IterMapLevel(check_level))
    except NoIterMap as error:
        return IterMapResult([], [str(error)])
    return IterMapResult(found, [])


def normalize_to_iter_sum(index: object, input_iters: Mapping[Var, Range]) -> IterSumExpr:
    """An index as a sum of parts, with the largest scales first; what is no such sum is a base with no parts."""
    try:
        maps = Maps(_ranges(input_iters))
        total = maps.sum(index)
        return IterSumExpr(maps._joined(tuple(sorted(total.args, key=lambda p: -number_of(p.scale)))), total.base)
    except NoIterMap:
        return IterSumExpr((), as_expr(index))


def normalize_iter_map_to_expr(expr: Node) -> Expr:
    """A mark, part or sum as an expression of the variables."""
    return Simplifier(Arith()).expr(expression(expr))


def iter_map_simplify(
    indices: Sequence[object],
    input_iters: Mapping[Var, Range],
    predicate: object = True,
    check_level: int = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[Expr]:
    """Indices in the form that their maps have, or as they are where they have none."""
    found = detect_iter_map(indices, input_iters, predicate, check_level, simplify_trivial_iterators).indices
    simplify = Simplifier(facts_of(_ranges(input_iters))).expr
    return [simplify(expression(e)) for e in found] if found else [simplify(as_expr(e)) for e in indices]


def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Sequence[object]) -> dict[Var, Expr]:
    """The variables by what the sums of a bijective map are: the map backwards. ExpressionTypeError for sums of several parts."""
    values: dict[tuple[object, ...], tuple[IterMark, Expr]] = {}
    for total, output in zip(iter_map, outputs):
        if len(total.args) > 1:
            raise ExpressionTypeError(
                f"'{expression(total)}' has several parts", "give the sums that detect_iter_map gives"
            )
        for part in total.args:
            _add_value(values, part, _over(binary("sub", as_expr(output), total.base), number_of(part.scale)))
    made: dict[Var, Expr] = {}
    while values:
        key = max(values, key=lambda k: _depth(values[k][0]))
        mark, value = values.pop(key)
        source = mark.source
        if isinstance(source, IterSumExpr):
            for i, p in enumerate(source.args):
                digit = _over(value, number_of(p.scale))
                _add_value(values, p, binary("floormod", digit, p.extent) if i else digit)
        elif isinstance(source, Var):
            made[source] = value
        elif isinstance(source, Binary) and isinstance(source.a, Var):  # a variable without its beginning
            made[source.a] = binary("add", value, source.b)
    simplify = Simplifier(Arith()).expr
    return {v: simplify(e) for v, e in made.items()}


def _over(value: Expr, by: int) -> Expr:
    return value if by == 1 else binary("floordiv", value, IntImm(kind_of(value), by))


def _add_value(values: dict[tuple[object, ...], tuple[IterMark, Expr]], part: IterSplitExpr, digit: Expr) -> None:
    """Add to the value of a mark what one of its parts says."""
    lower, key = number_of(part.lower_factor), mark_key(part.source)
    value = digit if lower == 1 else binary("mul", digit, IntImm(kind_of(digit), lower))
    values[key] = part.source, binary("add", values[key][1], value) if key in values else value


def _depth(mark: IterMark) -> int:
    return (
        1 + max((_depth(p.source) for p in mark.source.args), default=0) if isinstance(mark.source, IterSumExpr) else 0
    )


def subspace_divide(
    bindings: Sequence[object],
    input_iters: Mapping[Var, Range],
    sub_iters: Sequence[Var],
    predicate: object = True,
    check_level: int = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[list[IterMark]]:
    """Each index as `outer * extent of inner + inner`, where `sub_iters` make the inner mark and the others the outer one; then
    the conditions about each. An empty list where an index or a condition cannot be divided so."""
    found = detect_iter_map(bindings, input_iters, predicate, check_level, simplify_trivial_iterators)
    conditions = conjuncts(as_expr(predicate))
    inner = set(sub_iters)
    sides = [_side(c, inner, set(input_iters)) for c in conditions]
    if found.errors or None in sides:
        return []
    rows = [_divided_mark(total, inner, set(input_iters)) for total in found.indices]
    about = [joined([c for c, s in zip(conditions, sides) if s is side]) for side in (False, True)]
    ends = [IterMark(IterSumExpr((), c), IntImm(INT32, 0)) for c in about]
    return [] if any(row is None for row in rows) else [*(row for row in rows if row is not None), ends]


def _side(e: Expr, inner: set[Var], known: set[Var]) -> bool | None:
    """Whether an expression is of the inner variables alone (True), of none of them (False), or of both (None)."""
    used = {x for x in walk_exprs(e) if isinstance(x, Var) and x in known}
    return True if used and used <= inner else None if used & inner else False


def _divided_mark(total: IterSumExpr, inner: set[Var], known: set[Var]) -> list[IterMark] | None:
    """The outer and the inner mark of a fused sum."""
    zero, one = (IntImm(kind_of(total.base), n) for n in (0, 1))
    nothing = IterMark(IterSumExpr((), zero), one)
    side = _side(expression(total), inner, known)
    if side is not None:
        whole = IterMark(total, total.args[0].extent if total.args else one)
        return [nothing, whole] if side else [whole, nothing]
    (part,) = total.args
    source = part.source.source
    at_zero = isinstance(total.base, IntImm) and total.base.value == 0
    if (
        not at_zero
        or not isinstance(source, IterSumExpr)
        or number_of(part.scale) != 1
        or part.extent is not part.source.extent
    ):
        return None
    sides = [_side(expression(p), inner, known) for p in source.args]
    count = prod(number_of(p.extent) for p in source.args)
    if None in sides or sides != sorted(sides, key=bool) or count != number_of(part.extent):
        return None
    low = [p for p, s in zip(source.args, sides) if s]
    size = prod(number_of(p.extent) for p in low)
    high = [
        p.replace(scale=IntImm(kind_of(p.scale), number_of(p.scale) // size))
        for p, s in zip(source.args, sides)
        if not s
    ]
    return [
        IterMark(IterSumExpr(tuple(parts), zero), IntImm(kind_of(total.base), prod(number_of(p.extent) for p in parts)))
        for parts in (high, low)
    ]


__all__ = [
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "detect_iter_map",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
    "subspace_divide",
]
