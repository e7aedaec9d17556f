"""Integer arithmetic on expressions: value ranges, linear forms, known facts.

Everything here is exact for fixed-width integers that wrap. An inequality is only taken apart (`a + 1 < b + 1`) when
the ranges show that nothing wraps. What an operator gives, and what it can give over ranges, is in
`compass_core.operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

from compass_core.operators import OPERATORS, Range

from ..ir import exprs as E
from ..ir.dtypes import DataType
from ..ir.exprs import Binary, Call, Expr, IntImm, Var
from ..ir.folding import wrap
from ..ir.rules import method, table
from .structure import Interner, is_stable

_K = TypeVar("_K")
_V = TypeVar("_V")
BOOL_RANGE = (0, 1)
_CALL_RANGES: dict[str, Range] = dict.fromkeys(
    ("get_local_id", "get_local_size", "get_group_id", "get_num_groups"), (0, (1 << 31) - 1)
)
_SUMS = frozenset(("add", "sub", "mul"))
SWAPPED = {"gt": "lt", "ge": "le"}
NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


class Linear:
    """`sum(terms[k] * atom k) + const` over the integers; atoms are numbered by an `Interner`."""

    __slots__ = ("const", "terms")

    def __init__(self, terms: dict[int, int] | None = None, const: int = 0) -> None:
        self.terms = {} if terms is None else terms
        self.const = const

    def same(self, other: Linear) -> bool:
        """Whether both are the same sum."""
        return self.const == other.const and self.terms == other.terms

    def add(self, other: Linear, scale: int = 1) -> Linear:
        terms = dict(self.terms)
        for key, factor in other.terms.items():
            total = terms.get(key, 0) + factor * scale
            if total:
                terms[key] = total
            else:
                terms.pop(key, None)
        return Linear(terms, self.const + other.const * scale)

    def signature(self, scale: int = 1) -> frozenset[tuple[int, int]]:
        """The terms without the constant, as a dictionary key."""
        return frozenset((key, factor * scale) for key, factor in self.terms.items())


class Arith:
    """Ranges and inequalities that hold at one place of a function. Facts are scoped with `mark` and `release`.

    `mutable` are the variables that change after their definition: nothing is ever assumed about them. `calls` has the
    ranges of operations without operands.
    """

    def __init__(self, mutable: Iterable[Var] = ()) -> None:
        self.mutable = set(mutable)
        self.calls = dict(_CALL_RANGES)
        self.interner = Interner()
        self.atoms: dict[int, Expr] = {}
        self._ranges: dict[Var, Range] = {}
        self._bounds: dict[frozenset[tuple[int, int]], int] = {}
        self._congruences: dict[int, tuple[int, int]] = {}  # of atoms: modulus and remainder, once S.assume told one
        self._undo: list[tuple[dict[Any, Any], object, object]] = []
        self._memo: dict[Expr, Range] = {}
        self._exact: dict[Expr, Linear] = {}
        self.epoch = 0

    # -- facts

    def mark(self) -> int:
        """A place to come back to with `release`."""
        return len(self._undo)

    def release(self, mark: int) -> None:
        """Forget the facts learned since `mark`."""
        if len(self._undo) == mark:
            return
        while len(self._undo) > mark:
            table, key, old = self._undo.pop()
            if old is None:
                del table[key]
            else:
                table[key] = old
        self._changed()

    def _learn(self, table: dict[_K, _V], key: _K, value: _V) -> None:
        self._undo.append((table, key, table.get(key)))
        table[key] = value
        self._changed()

    def _changed(self) -> None:
        self.epoch += 1
        self._memo.clear()
        self._exact.clear()

    def bind(self, var: Var, low: int, high: int) -> None:
        """Learn that `low <= var <= high`."""
        if var in self.mutable:
            return
        old_low, old_high = self.range_of(var)
        if low > old_low or high < old_high:
            self._learn(self._ranges, var, (max(low, old_low), min(high, old_high)))

    def bind_value(self, var: Var, value: Expr) -> None:
        """Learn the range of a variable defined as `value`."""
        if getattr(var.dtype, "is_integer", False) and var.dtype.is_scalar:
            self.bind(var, *self.range_of(value))

    def bind_loop(self, var: Var, start: Expr, stop: Expr, step: Expr) -> None:
        """Learn what holds for a loop variable inside its loop."""
        if self.range_of(step)[0] <= 0:
            return
        self.bind(var, self.range_of(start)[0], self.range_of(stop)[1] - 1)
        if type(stop) is not IntImm:  # else the range says it all
            self.assume(Binary("lt", var, stop))
        if type(start) is not IntImm:
            self.assume(Binary("le", start, var))
        if self._congruences and type(step) is IntImm and var not in self.mutable:
            self._bind_steps(var, start, stop, step.value)

    def _bind_steps(self, var: Var, start: Expr, stop: Expr, step: int) -> None:
        """Learn that a loop variable differs from its start by whole steps, and how near it comes to the stop."""
        first, last = (self.remainder(e, step) for e in (start, stop))
        if first is None or step < 2:
            return
        form = self.atom(var)
        self._learn(self._congruences, self.interner.key(var), (step, first))
        if last is not None and is_stable(stop, self.mutable):
            self._at_most(form.add(self.exact(stop), -1), -((last - first) % step or step))

    def learn_assumption(self, e: Expr) -> None:
        """Learn what a statement's expression promises, if it is a call of S.assume."""
        if type(e) is Call and e.op == "assume":
            self._assume_congruence(e.args[0])
            self.assume(e.args[0])

    def _assume_congruence(self, cond: Expr) -> None:
        """Learn `x % m == r`, also written with `&`, and such parts of a conjunction."""
        if type(cond) is not Binary or not is_stable(cond, self.mutable):
            return
        if cond.op == "and":
            self._assume_congruence(cond.a)
            self._assume_congruence(cond.b)
        left, right = cond.a, cond.b
        if cond.op != "eq" or type(left) is not Binary or type(left.b) is not IntImm or type(right) is not IntImm:
            return
        modulus = left.b.value + (left.op == "bitand")
        masks = left.op == "bitand" and modulus & (modulus - 1) == 0
        if not (masks or left.op in ("mod", "floormod")) or modulus < 2 or not 0 <= right.value < modulus:
            return
        form = self._modular(left.a, modulus)
        (key, factor), *more = (*form.terms.items(), (0, 0))
        if factor in (1, -1) and len(more) == 1:
            remainder = factor * (right.value - form.const) % modulus
            self._learn(self._congruences, key, (modulus, remainder))

    def _modular(self, e: Expr, modulus: int) -> Linear:
        """A linear form equal to `e` modulo a number; wrapping changes nothing modulo powers of two."""
        return self.exact(e) if modulus & (modulus - 1) else self.linear(e)

    def remainder(self, e: Expr, modulus: int) -> int | None:
        """The remainder of an integer, never negative, as assumptions tell it; None where they do not."""
        if not self._congruences or modulus < 1:
            return None
        form = self._modular(e, modulus)
        total = form.const
        for key, factor in form.terms.items():
            known, rest = self._congruences.get(key, (1, 0))
            if factor * known % modulus:
                return None
            total += factor * rest
        return total % modulus

    def assume(self, cond: Expr, truth: bool = True) -> None:
        """Learn that a scalar condition holds (or does not); conditions on changing values teach nothing."""
        if type(cond) is E.Unary and cond.op == "not":
            self.assume(cond.a, not truth)
        elif type(cond) is Binary and cond.op == ("and" if truth else "or"):
            self.assume(cond.a, truth)
            self.assume(cond.b, truth)
        elif type(cond) is Binary and cond.op in E.COMPARISON and _is_int(cond.a) and is_stable(cond, self.mutable):
            self._assume_comparison(cond.op if truth else NEGATED[cond.op], cond.a, cond.b)

    def _assume_comparison(self, op: str, a: Expr, b: Expr) -> None:
        if op in SWAPPED:
            op, a, b = SWAPPED[op], b, a
        if op == "ne":
            return
        difference = self.exact(a).add(self.exact(b), -1)
        self._at_most(difference, -1 if op == "lt" else 0)
        if op == "eq":
            self._at_most(Linear().add(difference, -1), 0)

    def _at_most(self, form: Linear, limit: int) -> None:
        """Learn `form <= limit`."""
        limit -= form.const
        if not form.terms:
            return
        key = form.signature()
        old = self._bounds.get(key)
        if old is None or limit < old:
            self._learn(self._bounds, key, limit)
        for atom, factor in form.terms.items():
            var = self.atoms[atom]
            if type(var) is Var and factor in (1, -1):
                rest = Linear({k: f for k, f in form.terms.items() if k != atom})
                least = self._interval(rest)[0]
                low, high = self.range_of(var)
                self.bind(var, *((low, limit - least) if factor == 1 else (least - limit, high)))

    # -- ranges

    def range_of(self, e: Expr) -> Range:
        """Smallest and largest value an integer or bool scalar can have here."""
        if type(e) is IntImm:
            return e.value, e.value
        found = self._ranges.get(e) if type(e) is Var else None
        if found is not None and found[0] <= found[1]:
            return found  # within the range of the type, as `bind` keeps it
        found = self._memo.get(e)
        if found is None:
            rule = _RANGES.get(type(e))
            full = _full(e.data_type)
            found = full
            if rule is not None:
                low, high = rule(self, e)
                if full[0] <= low <= high <= full[1]:
                    found = low, high
            self._memo[e] = found
        return found

    def _var_range(self, e: Var) -> Range:
        known = self._ranges.get(e)
        if known is not None:
            return known
        low, high = _full(e.data_type)
        return (max(low, 0), high) if e.nonneg and e not in self.mutable else (low, high)

    def _binary_range(self, e: Binary) -> Range:
        rule = OPERATORS[e.op].range
        if rule is None or not _is_int(e.a):
            return _full(e.data_type)
        return rule(self.range_of(e.a), self.range_of(e.b)) or _full(e.data_type)

    def _cast_range(self, e: E.Cast) -> Range:
        return self.range_of(e.value) if _is_int(e.value) and not e.dtype.is_bool else _full(e.dtype)

    def _select_range(self, e: E.Select) -> Range:
        (a, b), (c, d) = self.range_of(e.true_value), self.range_of(e.false_value)
        return min(a, c), max(b, d)

    def _call_range(self, e: Call) -> Range:
        if e.op == "ceildiv" and type(e.args[1]) is IntImm and e.args[1].value > 0:
            by = e.args[1].value
            low, high = self.range_of(e.args[0])
            if high + by - 1 <= _full(e.data_type)[1]:
                return low // by, -(-high // by)
        return self.calls.get(e.op) or _full(e.data_type)

    # -- linear forms

    def atom(self, e: Expr) -> Linear:
        """The linear form that is `e` itself."""
        key = self.interner.key(e)
        self.atoms.setdefault(key, e)
        return Linear({key: 1})

    def linear(self, e: Expr) -> Linear:
        """`e` as a sum, equal to it modulo 2**bits; what is neither sum nor product with a constant is an atom."""
        form = Linear()
        self._accumulate(e, 1, form, e.data_type)
        for key in [k for k, factor in form.terms.items() if not factor]:
            del form.terms[key]
        return form

    def _accumulate(self, e: Expr, scale: int, form: Linear, dtype: DataType) -> None:
        if type(e) is IntImm:
            form.const = wrap(form.const + scale * e.value, dtype)
        elif type(e) is Binary and e.op in ("add", "sub"):
            self._accumulate(e.a, scale, form, dtype)
            self._accumulate(e.b, scale if e.op == "add" else -scale, form, dtype)
        elif type(e) is Binary and e.op == "mul" and type(e.b) is IntImm:
            self._accumulate(e.a, wrap(scale * e.b.value, dtype), form, dtype)
        elif type(e) is Binary and e.op == "mul" and type(e.a) is IntImm:
            self._accumulate(e.b, wrap(scale * e.a.value, dtype), form, dtype)
        else:
            key = self.interner.key(e)
            self.atoms.setdefault(key, e)
            form.terms[key] = wrap(form.terms.get(key, 0) + scale, dtype)

    def _interval(self, form: Linear) -> Range:
        low = high = form.const
        for key, factor in form.terms.items():
            a, b = self.range_of(self.atoms[key])
            low += factor * (a if factor > 0 else b)
            high += factor * (b if factor > 0 else a)
        return low, high

    def exact(self, e: Expr) -> Linear:
        """A linear form equal to `e` over the integers, which stays as it is: its sum if that cannot wrap, else `e` as an
        atom."""
        if type(e) is IntImm:
            return Linear(const=e.value)
        if type(e) is not Binary or e.op not in _SUMS:
            return self.atom(e)
        found = self._exact.get(e)
        if found is None:
            form = self.linear(e)
            low, high = self._interval(form)
            least, most = _full(e.data_type)
            found = self._exact[e] = form if least <= low and high <= most else self.atom(e)
        return found

    def bounds(self, form: Linear) -> Range:
        """Smallest and largest value of a linear form, by ranges and known inequalities."""
        low, high = self._interval(form)
        if self._bounds and form.terms:
            above = self._bounds.get(form.signature())
            below = self._bounds.get(form.signature(-1))
            high = high if above is None else min(high, above + form.const)
            low = low if below is None else max(low, form.const - below)
        return low, high

    def difference(self, a: Expr, b: Expr) -> Range:
        """Smallest and largest value of `a - b`, without wrap-around."""
        return self.bounds(self.exact(a).add(self.exact(b), -1))

    def compare(self, op: str, a: Expr, b: Expr) -> bool | None:
        """The truth of an integer comparison, if it is the same for all values that can occur."""
        return truth(op, *self.difference(a, b))


def truth(op: str, low: int, high: int) -> bool | None:
    """The truth of an integer comparison whose sides differ by `low` to `high`, if it is the same for all of these."""
    if op in ("eq", "ne"):
        if low == high == 0:
            return op == "eq"
        return (op == "ne") if low > 0 or high < 0 else None
    if op in SWAPPED:
        op, low, high = SWAPPED[op], -high, -low
    if op == "lt":
        return True if high < 0 else False if low >= 0 else None
    return True if high <= 0 else False if low > 0 else None


def _is_int(e: Expr) -> bool:
    return getattr(e.dtype, "is_integer", False) and e.dtype.is_scalar


@cache
def _full(dtype: DataType) -> Range:
    return BOOL_RANGE if dtype.is_bool else dtype.integer_range()


_RANGES: dict[type, Callable[[Arith, Expr], Range]] = table(
    method(Var, Arith._var_range),
    method(Binary, Arith._binary_range),
    method(E.Cast, Arith._cast_range),
    method(E.Select, Arith._select_range),
    method(Call, Arith._call_range),
)
