"""How the update of a reduction joins values: one by an operator, or several by comparisons (the place of the largest)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from compass_core.namedtuple import NamedTuple
from compassc.analysis.interpret import evaluate
from compassc.analysis.structure import Interner
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import DataType
from compassc.ir.exprs import Binary, Expr, FloatImm, IntImm, Var
from compassc.ir.operators import kind_of
from compassc.ir.tensor_exprs import CommReducer
from compassc.ir.visit import rewrite, walk_exprs
from compassc.te.reduce import max_value, min_value
from compassc.tir.blocks import reduction_parts

Values = tuple[int, ...]


class Joining(NamedTuple):
    """A reduction: where each value is accumulated, what is joined to it, and from what value on.

    `ordered`: the order of what is joined matters; with `only_ties` it does where the values tie that are compared, for what
    is chosen with them.
    """

    stores: tuple[S.BufferStore, ...]
    sources: tuple[Expr, ...]
    reducer: CommReducer
    ordered: bool = False
    only_ties: bool = False


def joining_of(block: S.Block) -> Joining | str:
    """How a block reduces, by itself or as what another one begins; or why that is not known."""
    single = reduction_parts(block)
    if single is not None:
        return _single(block, *single)
    return _several(block)


def _single(block: S.Block, store: S.BufferStore, source: Expr) -> Joining | str:
    value = store.value
    assert isinstance(value, Binary) and isinstance(value.a, E.BufferLoad)
    alike = all(map(Interner().same, value.a.indices, store.indices))
    if not alike or _reads((source,), {store.buffer.data}):
        return "there is no matching reducer: it does not join what it reads elsewhere to one accumulated element"
    neutral = neutral_of(value.op, store.buffer.dtype)
    first = block.init[0] if len(block.init) == 1 else None
    given = first.value if isinstance(first, S.BufferStore) else None if block.init else neutral
    same = isinstance(given, (IntImm, FloatImm)) and neutral is not None and given.value == neutral.value
    if given is None or not same:
        begins = "no single value" if given is None else str(given)
        return f"there is no matching reducer: '{value.op}' from {begins} on"
    old, new = Var("old", store.buffer.dtype), Var("new", store.buffer.dtype)
    return Joining((store,), (source,), CommReducer("", (old,), (new,), (Binary(value.op, old, new),), (given,)))


def neutral_of(op: str, kind: DataType) -> IntImm | FloatImm | None:
    """The number that joining with changes nothing."""
    if op in ("add", "mul"):
        value = 0 if op == "add" else 1
        return IntImm(kind, value) if kind.is_integer else FloatImm(kind, value)
    if op in ("min", "max") and not kind.is_bool:
        made = (max_value if op == "min" else min_value)(kind)
        return made if isinstance(made, (IntImm, FloatImm)) else None
    if op in ("and", "or"):
        return IntImm(kind, int(op == "and"))
    return None


def _several(block: S.Block) -> Joining | str:
    """Values that are joined together: `v = ...` for each of them, then the stores."""
    none = "there is no matching reducer: it is no `B[...] = op(B[...], source)`, nor several values that are joined"
    lets = [s for s in block.body if isinstance(s, S.Let)]
    stores = [s for s in block.body if isinstance(s, S.BufferStore)]
    starts = [s for s in block.init if isinstance(s, S.BufferStore)]
    count = len(stores)
    if not stores or list(block.body) != [*lets, *stores] or len(starts) != len(block.init) or len(starts) != count:
        return none
    values = {s.var: s.value for s in lets}
    results = [values.get(s.value) if isinstance(s.value, Var) else s.value for s in stores]
    same = Interner().same
    alike = all(len(s.indices) == len(stores[0].indices) for s in stores)
    if None in results or not alike or not all(all(map(same, s.indices, stores[0].indices)) for s in stores):
        return none
    old = tuple(Var(f"old{i}", s.buffer.dtype) for i, s in enumerate(stores))
    new = tuple(Var(f"new{i}", s.buffer.dtype) for i, s in enumerate(stores))

    def kept(e: Expr) -> Expr | None:
        for s, var in zip(stores, old):
            if isinstance(e, E.BufferLoad) and e.buffer.data is s.buffer.data:
                return var if all(map(same, e.indices, s.indices)) else None
        return None

    known = [rewrite(e, kept) for e in results if e is not None]
    sources = [_source(e, var) for e, var in zip(known, old)]
    by_buffer = {s.buffer.data: s.value for s in starts}
    identities = [by_buffer.get(s.buffer.data) for s in stores]
    given = [e for e in sources if e is not None]
    if None in sources or None in identities or _reads(given, set(by_buffer)):
        return none
    forms = tuple(rewrite(e, lambda x: next((n for s, n in zip(given, new) if same(s, x)), None)) for e in known)
    begin = [e for e in identities if isinstance(e, (IntImm, FloatImm))]
    if len(begin) != count or not all(_only(e, {*old, *new}) for e in forms):
        return none
    return _judged(Joining(tuple(stores), tuple(given), CommReducer("", old, new, forms, tuple(begin))), none)


def _reads(exprs: Sequence[Expr], buffers: set[Var]) -> bool:
    """Whether expressions read one of these buffers."""
    return any(isinstance(x, E.BufferLoad) and x.buffer.data in buffers for e in exprs for x in walk_exprs(e))


def _source(e: Expr, old: Var) -> Expr | None:
    """What is joined to an accumulated value, by the form of the joined one."""
    if isinstance(e, Binary) and e.a is old:
        return e.b
    if isinstance(e, E.Select):
        return e.false_value if e.true_value is old else e.true_value if e.false_value is old else None
    return None


_COMPARING = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or")


def _only(e: Expr, known: set[Var]) -> bool:
    """Whether an expression only compares and chooses, or joins by one operator."""
    if isinstance(e, Var):
        return e in known
    if isinstance(e, Binary):
        joins = e.op in ("add", "mul") and isinstance(e.a, Var) and isinstance(e.b, Var)
        return (joins or e.op in (*_COMPARING, "min", "max")) and _only(e.a, known) and _only(e.b, known)
    if isinstance(e, E.Select):
        return all(_only(x, known) for x in (e.condition, e.true_value, e.false_value))
    return isinstance(e, E.Unary) and e.op == "not" and _only(e.a, known)


def _judged(found: Joining, none: str) -> Joining | str:
    """The reduction, where it is known not to matter how what is joined is grouped.

    Choices by comparisons depend on how the values compare alone, so three different values of each are all there is to
    try. Values that are added or multiplied are looked at by their operators.
    """
    plain = [i for i, e in enumerate(found.reducer.result) if isinstance(e, Binary) and e.op not in _COMPARING]
    for i in plain:
        e = found.reducer.result[i]
        assert isinstance(e, Binary)
        neutral, given = neutral_of(e.op, kind_of(found.reducer.lhs[i])), found.reducer.identity_element[i]
        if neutral is None or not isinstance(given, (IntImm, FloatImm)) or neutral.value != given.value:
            return none
    if len(plain) == len(found.reducer.result):
        return found
    if plain:
        return none
    begin = []
    for e, old, new in zip(found.reducer.identity_element, found.reducer.lhs, found.reducer.rhs):
        ends = [min_value(old.dtype), max_value(old.dtype)]
        place = next((n for n, x in zip((0, 2), ends) if getattr(x, "value", None) == getattr(e, "value", None)), None)
        if place is None and _is_compared(found.reducer.result, {old, new}):
            return none
        begin.append(_OTHER if place is None else place)
    points = list(itertools.product(range(3), repeat=len(found.reducer.result)))
    join, start = _function(found), tuple(begin)
    for a, b, c in itertools.product(points, repeat=3):
        if join(join(a, b), c) != join(a, join(b, c)):
            return "there is no matching reducer: it matters how what it joins is grouped"
    for a, b in itertools.product(points, repeat=2):
        begun = join(start, a)
        if join(join(begun, start), b) != join(begun, b):
            return "there is no matching reducer: the value that it begins with changes what is joined"
    pairs = [(a, b) for a, b in itertools.product(points, repeat=2) if join(a, b) != join(b, a)]
    keys = [
        i for i, v in enumerate(zip(found.reducer.lhs, found.reducer.rhs)) if _is_compared(found.reducer.result, {*v})
    ]
    only_ties = all(a[i] == b[i] and join(a, b)[i] == join(b, a)[i] for a, b in pairs for i in keys)
    return found._replace(ordered=bool(pairs), only_ties=only_ties)


_OTHER = 3
"""What a value that is chosen, and never compared, begins with: none of those that are joined."""


def _is_compared(results: Sequence[Expr], known: set[Var]) -> bool:
    """Whether one of the variables is part of a comparison."""
    return any(
        isinstance(x, Binary) and any(isinstance(y, Var) and y in known for y in walk_exprs(x))
        for e in results
        for x in walk_exprs(e)
    )


def _function(found: Joining) -> Callable[[Values, Values], Values]:
    """The reduction on numbers."""
    known: dict[tuple[Values, Values], Values] = {}

    def join(a: Values, b: Values) -> Values:
        made = known.get((a, b))
        if made is None:
            values = {**dict(zip(found.reducer.lhs, a)), **dict(zip(found.reducer.rhs, b))}
            made = known[a, b] = tuple(int(evaluate(e, values)) for e in found.reducer.result)
        return made

    return join
