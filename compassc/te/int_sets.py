"""Sets of whole numbers that expressions reach, and the values of variables for which conditions hold.

Ends of sets are expressions of what stands still. Indices are taken not to wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.iter_vars import Range
from compassc.ir.node import Node, field, node
from compassc.ir.operators import as_expr, binary, kind_of
from compassc.ir.visit import walk_exprs
from compassc.te.iter_maps import IterMapLevel, detect_iter_map, facts_of, number_of

_POS_INF, _NEG_INF = Var("pos_inf", INT32), Var("neg_inf", INT32)


def pos_inf() -> Var:
    """What stands for no upper end."""
    return _POS_INF


def neg_inf() -> Var:
    """What stands for no lower end."""
    return _NEG_INF


class IntSet(Node):
    """A set of whole numbers."""

    __slots__ = ()

    @staticmethod
    def vector(vec: object) -> IntervalSet:
        """The numbers of the lanes of a vector."""
        return _Sets({}, Simplifier(Arith()).expr).of(as_expr(vec))

    @staticmethod
    def single_point(point: object) -> IntervalSet:
        """One number."""
        return IntervalSet(as_expr(point), as_expr(point))

    @staticmethod
    def interval(min_value: object, max_value: object) -> IntervalSet:
        """The numbers from the first to the last, both included."""
        return IntervalSet(as_expr(min_value), as_expr(max_value))


def _min_value(min_value: object) -> Expr:
    return as_expr(min_value)


def _max_value(max_value: object) -> Expr:
    return as_expr(max_value)


@node()
class IntervalSet(IntSet):
    """The numbers from `min_value` to `max_value`, both included; `neg_inf()` and `pos_inf()` where there is no end."""

    min_value: Expr = field(normalise=_min_value)
    max_value: Expr = field(normalise=_max_value)

    def is_nothing(self) -> bool:
        """Whether no number is in it."""
        low, high = self.min_value, self.max_value
        numbers = isinstance(low, IntImm) and isinstance(high, IntImm) and low.value > high.value
        return low is _POS_INF or high is _NEG_INF or numbers

    def is_everything(self) -> bool:
        """Whether every number is in it."""
        return self.min_value is _NEG_INF and self.max_value is _POS_INF


def everything() -> IntervalSet:
    """The set of all numbers."""
    return IntervalSet(_NEG_INF, _POS_INF)


def nothing() -> IntervalSet:
    """The set of no number."""
    return IntervalSet(_POS_INF, _NEG_INF)


def interval_of(given: object) -> IntervalSet:
    """The set that a Range, a set or a number stands for."""
    if isinstance(given, IntervalSet):
        return given
    if isinstance(given, Range):
        return IntervalSet(given.min, binary("sub", binary("add", given.min, given.extent), 1))
    return IntSet.single_point(given)


def int_set(e: Expr, domains: Mapping[Var, object], simplify: Callable[[Expr], Expr]) -> IntervalSet:
    """A set with all values of an expression while variables take those of their domains; the others stand still."""
    found = _Sets({v: interval_of(d) for v, d in domains.items()}, simplify).of(e)
    return IntervalSet(
        *(x if x is _POS_INF or x is _NEG_INF else simplify(x) for x in (found.min_value, found.max_value))
    )


class _Sets:
    """Sets of expressions over domains of variables."""

    def __init__(self, domains: dict[Var, IntervalSet], simplify: Callable[[Expr], Expr]) -> None:
        self.domains, self.simplify = domains, simplify

    def of(self, e: Expr) -> IntervalSet:
        """The set of an expression."""
        if isinstance(e, Var):
            return self.domains.get(e, IntSet.single_point(e))
        if isinstance(e, E.Ramp):
            return self._binary("add", self.of(e.base), self._lanes(e))
        if isinstance(e, E.Broadcast):
            return self.of(e.value)
        if not any(x in self.domains for x in walk_exprs(e)):
            return everything() if e.dtype.is_vector else IntSet.single_point(e)
        if isinstance(e, E.Select):
            return union((self.of(e.true_value), self.of(e.false_value)), self.simplify)
        if isinstance(e, Binary) and e.dtype.is_bool:
            return IntervalSet(IntImm(e.data_type, 0), IntImm(e.data_type, 1))
        if isinstance(e, Binary):
            return self._binary(e.op, self.of(e.a), self.of(e.b))
        return everything()

    def _lanes(self, e: E.Ramp) -> IntervalSet:
        last = IntImm(kind_of(e.base), e.data_type.lanes - 1)
        return self._binary("mul", IntervalSet(IntImm(kind_of(e.base), 0), last), self.of(e.stride))

    def _binary(self, op: str, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        if op in ("add", "min", "max"):
            return IntervalSet(
                _end(op, a.min_value, b.min_value, _NEG_INF), _end(op, a.max_value, b.max_value, _POS_INF)
            )
        if op == "sub":
            return IntervalSet(
                _end(op, a.min_value, b.max_value, _NEG_INF), _end(op, a.max_value, b.min_value, _POS_INF)
            )
        if op == "mul":
            return self._product(b, a) if a.min_value is a.max_value else self._product(a, b)
        by = b.min_value.value if isinstance(b.min_value, IntImm) and b.min_value is b.max_value else 0
        if by > 0 and op in ("floordiv", "div"):
            return IntervalSet(
                _end(op, a.min_value, b.min_value, _NEG_INF), _end(op, a.max_value, b.min_value, _POS_INF)
            )
        if by > 0 and op in ("floormod", "mod"):
            return self._rest(op, a, by)
        return everything()

    def _product(self, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        """A set times one number, whose sign tells the ends apart where it is known."""
        by, ends = b.min_value, (a.min_value, a.max_value)
        if b.min_value is not b.max_value or not set(ends).isdisjoint((_POS_INF, _NEG_INF)):
            numbers = [x.value for x in (*ends, b.min_value, b.max_value) if isinstance(x, IntImm)]
            if len(numbers) < 4:
                return everything()
            products = [x * y for x in numbers[:2] for y in numbers[2:]]
            return IntervalSet(*(IntImm(kind_of(by), x) for x in (min(products), max(products))))
        low, high = (binary("mul", x, by) for x in ends)
        sign = [x for x in ("ge", "le") if _holds(self.simplify(binary(x, by, IntImm(kind_of(by), 0))))]
        if sign:
            return IntervalSet(low, high) if sign[0] == "ge" else IntervalSet(high, low)
        return IntervalSet(binary("min", low, high), binary("max", low, high))

    def _rest(self, op: str, a: IntervalSet, by: int) -> IntervalSet:
        """The rests of a set: all of them unless it is within one period."""
        low, high = a.min_value, a.max_value
        number = IntImm(kind_of(low), by)
        if low is not _NEG_INF and high is not _POS_INF:
            first, last = (self.simplify(binary("floordiv", x, number)) for x in (low, high))
            above = op == "floormod" or _holds(self.simplify(binary("ge", low, IntImm(kind_of(low), 0))))
            if above and _holds(self.simplify(binary("eq", first, last))):
                return IntervalSet(binary(op, low, number), binary(op, high, number))
        return IntervalSet(IntImm(kind_of(low), 0 if op == "floormod" else 1 - by), IntImm(kind_of(low), by - 1))


def _holds(e: Expr) -> bool:
    return isinstance(e, IntImm) and bool(e.value)


def _end(op: str, a: Expr, b: Expr, beyond: Expr) -> Expr:
    """One end of a set; `beyond` where it has none."""
    infinite = [x for x in (a, b) if x is _POS_INF or x is _NEG_INF]
    if not infinite:
        return binary(op, a, b)
    if op in ("min", "max") and all(x is not beyond for x in infinite):
        return beyond
    other = [x for x in (a, b) if x is not _POS_INF and x is not _NEG_INF]
    one_sided = (op == "min" and beyond is _POS_INF) or (op == "max" and beyond is _NEG_INF)
    return other[0] if one_sided and other else beyond


def union(sets: Sequence[IntervalSet], simplify: Callable[[Expr], Expr]) -> IntervalSet:
    """The smallest known interval with all of several sets."""
    found = [s for s in sets if not s.is_nothing()]
    if not found:
        return nothing()
    low, high = found[0].min_value, found[0].max_value
    for s in found[1:]:
        low = _NEG_INF if _NEG_INF in (low, s.min_value) else simplify(binary("min", low, s.min_value))
        high = _POS_INF if _POS_INF in (high, s.max_value) else simplify(binary("max", high, s.max_value))
    return IntervalSet(low, high)


# ------------------------------------------------------------------------------------------------------------- regions


def estimate_region_strict_bound(
    region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: object = True
) -> list[IntervalSet] | None:
    """Per dimension the exact set of what a region touches while variables run; None where the dimensions hang together or steps
    leave gaps."""
    found = detect_iter_map([r.min for r in region], var_dom, predicate, IterMapLevel.Surjective)
    if found.errors:
        return None
    simplify = Simplifier(facts_of(var_dom)).expr
    made = []
    for total, r in zip(found.indices, region):
        first, extent = total.base, simplify(r.extent)
        if any(x in var_dom for x in walk_exprs(extent)):
            return None
        for part in total.args:
            scale, span = number_of(part.scale), number_of(part.extent) - 1
            if scale < 0 or not _holds(simplify(binary("ge", extent, IntImm(kind_of(extent), scale)))):
                return None
            extent = binary("add", extent, IntImm(kind_of(extent), scale * span))
        last = binary("sub", binary("add", first, extent), IntImm(kind_of(extent), 1))
        made.append(IntervalSet(simplify(first), simplify(last)))
    return made


estimate_region_lower_bound = estimate_region_strict_bound


def estimate_region_upper_bound(
    region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: object = True
) -> list[IntervalSet]:
    """Per dimension a set with all that a region touches while variables run."""
    exact = estimate_region_strict_bound(region, var_dom, predicate)
    if exact is not None:
        return exact
    simplify = Simplifier(facts_of(var_dom)).expr
    return [int_set_of_range(r, var_dom, simplify) for r in region]


def int_set_of_range(r: Range, var_dom: Mapping[Var, object], simplify: Callable[[Expr], Expr]) -> IntervalSet:
    """A set with all numbers of a range while variables take the values of their domains."""
    last = binary("sub", binary("add", r.min, r.extent), IntImm(kind_of(r.extent), 1))
    ends = [int_set(simplify(e), var_dom, simplify) for e in (r.min, last)]
    return IntervalSet(ends[0].min_value, ends[1].max_value)


def union_lower_bound(sets: Sequence[IntervalSet]) -> IntervalSet:
    """An interval that lies within the union of several: the first, and those that are known to meet what was found."""
    if not sets:
        return nothing()
    simplify = Simplifier(Arith()).expr
    made = sets[0]
    for s in sets[1:]:
        ends = (made.max_value, s.min_value), (s.max_value, made.min_value)
        if all(_meets(high, low, simplify) for high, low in ends):
            made = union((made, s), simplify)
    return made


def _meets(high: Expr, low: Expr, simplify: Callable[[Expr], Expr]) -> bool:
    if high is _POS_INF or low is _NEG_INF:
        return True
    return high is not _NEG_INF and low is not _POS_INF and _holds(simplify(binary("ge", binary("sub", high, low), -1)))


__all__ = [
    "IntSet",
    "IntervalSet",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "neg_inf",
    "pos_inf",
    "union_lower_bound",
]
