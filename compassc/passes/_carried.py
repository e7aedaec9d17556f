"""Turns of a vectorized loop that need what other turns do: all turns run a statement before any runs the next one.

What is certain is refused; of what depends on numbers of a run, checked runs find whether it happens.
"""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.errors import CompassError, Note, Span
from compass_core.namedtuple import NamedTuple

from ..analysis.arith import Arith, Linear
from ..analysis.statements import defined_vars
from ..analysis.structure import is_pure, variables
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import VOID, DataType
from ..ir.exprs import Binary, Expr, IntImm, Var
from ..ir.visit import substitute, walk_exprs
from ..ops.assertions import turns_apart


class _Access(NamedTuple):
    """An element that each turn reads or writes: `factor * turn + place` of an array."""

    order: int
    stores: bool
    base: Var
    factor: int
    place: Linear
    span: Span | None


def conditions_of_turns(
    loop: S.For, lanes: int, turns: Expr, arith: Arith, known: dict[Var, Expr]
) -> tuple[S.Stmt, ...]:
    """Assertions that turns of a loop do not depend on each other as they cannot when all run at once, where the distance
    of their accesses is known when the program runs; CompassError where they certainly do.

    `turns`: how many there are, at most `lanes`; `known`: the values of pointers that are defined once. What is done under
    conditions and in loops is not looked at.
    """
    found: list[_Access] = []
    stated: list[S.Stmt] = []
    for access in _accesses(loop, arith, known):
        for other in found:
            if (access.stores or other.stores) and access.order > other.order and access.base is other.base:
                conflict = _conflict(access, other, lanes, loop.min)
                if conflict is not None:
                    raise _refusal(loop, access, other, conflict)
                condition = _apart(access, other, lanes, turns, loop, arith)
                if condition is not None:
                    text = E.StringImm(turns_apart(access.base.name, access.stores, other.stores))
                    stated.append(S.Evaluate(E.Call("assert_", (condition, text), VOID), span=access.span or loop.span))
        found.append(access)
    return tuple(stated)


def _apart(a: _Access, b: _Access, lanes: int, turns: Expr, loop: S.For, arith: Arith) -> Expr | None:
    """The condition that a turn's access `a` is never where a turn behind it has made its access `b`; None where that is
    certain, or cannot be computed before the loop."""
    way, least, most = (
        a.place.add(b.place, -1),
        1,
        0,
    )  # they meet where it leads over `least` to turns - 1 + `most` turns
    factor = a.factor or b.factor
    if a.factor != b.factor:
        if (a.factor and b.factor) or not isinstance(loop.min, IntImm):
            return None
        way = way.add(Linear(const=(a.factor - b.factor) * loop.min.value))
        if a.factor:
            way, least, most = Linear().add(way, -1), 0, -1
    if factor < 0:
        way, factor = Linear().add(way, -1), -factor
    own = {loop.loop_var, *defined_vars(loop.body)}
    atoms = [arith.atoms[key] for key in way.terms]
    low, high = arith.bounds(way)
    if not atoms or any(not is_pure(x) or variables(x) & own for x in atoms):
        return None
    if low > factor * (lanes - 1 + most) or high < factor * least:
        return None
    e = _sum(way, arith, loop.loop_var.data_type)
    if not factor:
        return Binary("ne", e, IntImm(e.data_type, 0))
    end = Binary("add", turns, IntImm(turns.data_type, most)) if most else turns
    end = end if factor == 1 else Binary("mul", end, IntImm(turns.data_type, factor))
    outside = Binary("or", Binary("lt", e, IntImm(e.data_type, factor * least)), Binary("ge", e, end))
    if factor == 1:
        return outside
    return Binary("or", outside, Binary("ne", Binary("mod", e, IntImm(e.data_type, factor)), IntImm(e.data_type, 0)))


def _sum(form: Linear, arith: Arith, dtype: DataType) -> Expr:
    made: Expr = IntImm(dtype, form.const)
    for key, factor in form.terms.items():
        atom = arith.atoms[key]
        made = Binary("add", made, atom if factor == 1 else Binary("mul", atom, IntImm(dtype, factor)))
    return made


def _accesses(loop: S.For, arith: Arith, known: dict[Var, Expr]) -> Iterator[_Access]:
    """The accesses that every turn makes, in the order in which all turns make them."""
    values: dict[Var, Expr] = dict(known)
    for number, s in enumerate(loop.body):
        if not isinstance(s, (S.Let, S.BufferStore)):
            continue
        if s.flags & E.F_LOAD:
            chosen = _chosen(s)
            loads = (x for root in s.exprs() for x in walk_exprs(root, E.F_LOAD))
            for e in (x for x in loads if type(x) is E.BufferLoad and x not in chosen):
                yield from _access(loop, 2 * number, False, e.buffer, e.indices, e.span or s.span, arith, values)
        if type(s) is S.BufferStore:
            yield from _access(loop, 2 * number + 1, True, s.buffer, s.indices, s.span, arith, values)
        elif isinstance(s, S.Let) and s.var not in arith.mutable and not s.value.flags & E.F_LOAD:
            values[s.var] = substitute(s.value, values)


def _chosen(s: S.Stmt) -> set[Expr]:
    """The elements that are read in parts of expressions that may not be computed."""
    roots = (x for root in s.exprs() for x in walk_exprs(root, E.F_LOAD))
    parts = (x.children()[1:] for x in roots if type(x) is E.Select or (type(x) is Binary and x.op in E.LOGICAL))
    return {e for side in parts for x in side for e in walk_exprs(x, E.F_LOAD) if type(e) is E.BufferLoad}


def _access(
    loop: S.For,
    order: int,
    stores: bool,
    buffer: E.Buffer,
    indices: tuple[Expr, ...],
    span: Span | None,
    arith: Arith,
    values: dict[Var, Expr],
) -> Iterator[_Access]:
    if len(indices) != 1 or not buffer.dtype.is_scalar:
        return
    base, offset = buffer.data, substitute(indices[0], values)
    while isinstance(pointer := values.get(base), E.Pointer):
        if pointer.elem is not buffer.dtype or not isinstance(pointer.base, Var):
            return
        base, offset = pointer.base, Binary("add", substitute(pointer.offset, values), offset)
    form = arith.linear(offset)
    key = arith.interner.key(loop.loop_var)
    others = [arith.atoms[k] for k in form.terms if k != key]
    if any(x is loop.loop_var or type(x) is E.BufferLoad for atom in others for x in walk_exprs(atom)):
        return
    place = Linear({k: f for k, f in form.terms.items() if k != key}, form.const)
    yield _Access(order, stores, base, form.terms.get(key, 0), place, span)


def _conflict(later: _Access, earlier: _Access, lanes: int, start: Expr) -> tuple[int, int] | None:
    """A turn whose `later` access is of the element of the `earlier` one of a turn behind it, and that turn."""
    distance = later.place.add(earlier.place, -1)
    if distance.terms or (later.factor != earlier.factor and not isinstance(start, IntImm)):
        return None
    apart = distance.const
    if isinstance(start, IntImm):
        apart += (later.factor - earlier.factor) * start.value
    for i in range(lanes - 1):
        first = later.factor * i + apart
        for j in (first // earlier.factor,) if earlier.factor else (i + 1,):
            if i < j < lanes and earlier.factor * j == first:
                return i, j
    return None


def _refusal(loop: S.For, later: _Access, earlier: _Access, turns: tuple[int, int]) -> CompassError:
    words = {True: "writes", False: "reads"}
    name = later.base.name
    note = Note(f"turn {turns[1]} {words[earlier.stores]} the same element of {name} here", earlier.span)
    return CompassError(
        f"the turns of this vectorized loop depend on each other: turn {turns[0]} {words[later.stores]} an element of "
        f"{name!r} before turn {turns[1]} {words[earlier.stores]} it, but all turns run a statement before the next one",
        later.span or loop.span,
        code="vectorize",
        notes=(note,) if earlier.span else (),
        help="use range, or divide the loop so that nothing is written before all turns have read it",
    )
