"""Steps that put a block's expression in place of what reads it, or of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

from compass_core import vendor
from compass_core.namedtuple import NamedTuple
from compassc.analysis.arith import Arith
from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.simplify import Simplifier
from compassc.analysis.structure import Interner
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Binary, Buffer, Expr, Var
from compassc.ir.stmts import EXPRESSIONS, Body, Stmt
from compassc.ir.visit import Rewriter, rewrites, substitute, walk_exprs
from compassc.te.errors import ScheduleError
from compassc.tir.addresses import check_no_address
from compassc.tir.base import Base
from compassc.tir.blocks import Axis, add, at, axes_of, constant, number, with_axes
from compassc.tir.checks import (
    has_effects,
    is_load_of,
    read,
    single_store,
    why_foreign,
    why_not_apart,
    why_not_complete,
    why_not_kept,
    writers,
)
from compassc.tir.copy_checks import why_not_all_points
from compassc.tir.index_map import IndexMap
from compassc.tir.placement import check_only_flow, unconditional
from compassc.tir.queries import is_output
from compassc.tir.region_cover import facts_of, fills, plain_index, turn_writes, writes_of
from compassc.tir.trace import BlockRV, instruction
from compassc.tir.tree import Tree, edit


class Inlining(Base):
    """Steps that make two blocks one."""

    @instruction("ComputeInline", ("block",))
    def compute_inline(self, block: BlockRV) -> None:
        """Put a block's expression in place of every element of it that is read; the block and its buffer are gone."""
        function, tree, s = self.located_block(block)
        store = _simple("compute_inline", tree, s)
        if is_output(self, function, tree, s):
            raise ScheduleError(f"compute_inline of '{s.name_hint}': it is an output block")
        check_only_flow("compute_inline", tree, s)
        if reason := why_not_kept(tree, s):
            raise ScheduleError(f"compute_inline of '{s.name_hint}': {reason}")
        foreign = why_foreign(tree, s)
        if foreign:
            raise ScheduleError(f"compute_inline of '{s.name_hint}': {foreign}")
        inverse = _inverse("compute_inline", s, store.indices)
        data = store.buffer.data
        check_no_address(f"compute_inline of '{s.name_hint}'", tree, data)
        body = edit(tree.function.body, {s: ()})

        def value(e: E.BufferLoad) -> Expr:
            mapping: dict[Var, Expr] = {a.var: a.start for a in axes_of(s)}
            made = [(i, there) for i, there in zip(store.indices, e.indices) if constant(i) is None]
            if inverse is None:
                mapping.update({i: there for i, there in made})  # type: ignore[misc]
            else:
                mapping.update(inverse.at([there for _, there in made], Simplifier(Arith())))
            return substitute(store.value, mapping)

        body = _Replaced(data, value).body(body)
        self.commit(function, without(body, data))

    @instruction("ReverseComputeInline", ("block",))
    def reverse_compute_inline(self, block: BlockRV) -> None:
        """Have the one block that a block reads store what this one makes of it; this block is gone, and the buffer
        between them."""
        step = "reverse_compute_inline"
        function, tree, s = self.located_block(block)
        store = _simple(step, tree, s)
        if not unconditional(s):
            raise ScheduleError(f"{step} of '{s.name_hint}': it is done under a condition, which its loops brought")
        if reason := why_not_apart(tree, s) or why_not_kept(tree, s) or _why_not_whole(tree, s):
            raise ScheduleError(f"{step} of '{s.name_hint}': {reason}")
        check_only_flow(step, tree, s)
        producer, latest = _producer(step, tree, s)
        first = _simple(step, tree, producer)
        others = [b.name_hint for b in tree.inside(tree.scope(s)) if b is not s and latest in read(b)]
        if others or is_output(self, function, tree, producer):
            raise ScheduleError(
                f"{step} of '{s.name_hint}': '{latest.name}' is needed elsewhere, too: {', '.join(others) or 'as output'}"
            )
        buffer = self.buffers(function)[latest]
        points, mapping = _met(step, s, producer, _read_at(step, s, store.value, latest), first.indices, buffer)
        _check_covered(step, tree, s, producer, points, buffer)
        value = _at_points(store.value, latest, first.value, mapping)
        new = S.BufferStore(store.buffer, tuple(at(i, mapping) for i in store.indices), value, None, span=store.span)
        where = joined([*conjuncts(producer.predicate), *_inside(producer, points)])
        _check_said(step, tree, s, producer, points)
        merged = with_axes(producer, _narrowed(tree, producer, points), (new,)).replace(predicate=where)
        changes: dict[S.Stmt, tuple[S.Stmt, ...]] = {s: (), producer: (merged,)}
        made_tree = self.commit(function, without(edit(tree.function.body, changes), latest))
        _check_available(step, tree, s, producer, made_tree, self.buffers(function))


class Point(NamedTuple):
    """An axis of a block (or the index of a dimension that several of its axes make), and which index of the producer it
    is."""

    axis: Axis
    place: Expr


def _producer(step: str, tree: Tree, s: S.Block) -> tuple[S.Block, Var]:
    """The block that a block is folded into, and the buffer between them. ScheduleError unless there is one that computes
    all of the buffer."""
    scope = tree.scope(s)
    made = [d for d in read(s) if writers(tree, d, scope)]
    if not made:
        raise ScheduleError(f"{step} of '{s.name_hint}': it reads no block")
    if vendor.names_in_use and len(made) > 1:  # the step is for one there
        raise ScheduleError(
            f"{step} of '{s.name_hint}': it reads several buffers that blocks write: {', '.join(sorted(d.name for d in made))}"
        )
    latest = max(made, key=lambda d: max(tree.order[w] for w in writers(tree, d, scope)))
    producers = writers(tree, latest, scope)
    if len(producers) != 1:
        raise ScheduleError(
            f"{step} of '{s.name_hint}': '{latest.name}' is written by {len(producers)} blocks, not by one"
        )
    if foreign := why_foreign(tree, producers[0]):
        raise ScheduleError(
            f"{step} of '{s.name_hint}': '{producers[0].name_hint}' does not compute all of it: {foreign}"
        )
    return producers[0], latest


def _read_at(step: str, s: S.Block, value: Expr, data: Var) -> tuple[Expr, ...]:
    """The indices at which an expression reads a buffer. ScheduleError where it does at several."""
    same = Interner().same
    loads = [e.indices for e in walk_exprs(value) if isinstance(e, E.BufferLoad) and e.buffer.data is data]
    if not all(all(map(same, loads[0], other)) for other in loads[1:]):
        raise ScheduleError(f"{step} of '{s.name_hint}': it reads '{data.name}' at different indices")
    return tuple(loads[0])


def _met(
    step: str, s: S.Block, producer: S.Block, indices: tuple[Expr, ...], written: tuple[Expr, ...], buffer: Buffer
) -> tuple[list[Point], dict[Var, Expr]]:
    """Which points of a block, which reads a buffer at `indices`, meet a point of its producer, which writes it at
    `written`; and the axes of the block there. ScheduleError where one point of the buffer is read at several."""
    own = {a.var: a for a in axes_of(s)}
    inverse = _inverse(step, s, indices)
    extents = iter(inverse.shape if inverse is not None else ())
    points: list[Point] = []
    for d, (index, there, extent) in enumerate(zip(indices, written, buffer.shape)):
        if constant(index) is None:
            whole = next(extents, None)
            counted = (
                Axis(Var(f"d{d}", index.dtype), "spatial", number(0, index), whole, index)
                if whole is not None
                else None
            )
            points.append(Point(counted or own[index], there))  # type: ignore[index]
        elif constant(extent) != 1:
            raise ScheduleError(
                f"{step} of '{s.name_hint}': of dimension {d} of '{buffer.data.name}' it reads one element, "
                f"'{producer.name_hint}' computes more",
                "compute_inline the producer",
            )
    mapping: dict[Var, Expr] = {a.var: a.start for a in own.values()}
    if inverse is None:
        mapping.update({p.axis.var: p.place for p in points})
    else:
        facts = facts_of([])
        for a in axes_of(producer):
            facts.bind_loop(a.var, a.start, add(a.start, a.extent), number(1, a.start))
        mapping.update(inverse.at([p.place for p in points], Simplifier(facts)))
    return points, mapping


class Inverse(NamedTuple):
    """Axes by the indices that they make, and how many values each of these has, from 0 on."""

    axes: tuple[Var, ...]
    back: IndexMap
    shape: tuple[Expr, ...]

    def at(self, indices: Sequence[Expr], simplifier: Simplifier) -> dict[Var, Expr]:
        """The axes where the indices are these."""
        return {v: simplifier.expr(e) for v, e in zip(self.axes, self.back.map_indices(indices))}


def _inverse(step: str, block: S.Block, indices: tuple[Expr, ...]) -> Inverse | None:
    """How to find a block's axes from indices that are sums of their digits; None where each index is an axis or a constant
    itself. ScheduleError where several points of the axes have the same indices, or some indices are left out."""
    own = {a.var: a for a in axes_of(block)}
    made = [i for i in indices if constant(i) is None]
    rest = [a for v, a in own.items() if v not in made]
    if all(isinstance(i, Var) and i in own for i in made) and len(set(made)) == len(made):
        if odd := next((a for a in rest if constant(a.extent) != 1), None):
            raise ScheduleError(f"{step} of '{block.name_hint}': its axis '{odd.var.name}' is no index")
        return None
    extents = [constant(a.extent) for a in own.values()]
    try:
        if None in extents or any(constant(a.start) != 0 for a in own.values()):
            raise ExpressionError("not all of its axes have constant extents from 0 on")
        forward = IndexMap(tuple(own), made)
        back, shape = forward.inverse(extents), tuple(forward.map_shape(extents))
        if prod(constant(e) or 0 for e in shape) != prod(e or 0 for e in extents):
            raise ExpressionError("they do not begin at 0")
    except ExpressionError as error:
        raise ScheduleError(
            f"{step} of '{block.name_hint}': its indices are neither its axes, each once, nor their digits: {error.message}"
        ) from None
    return Inverse(tuple(own), back, shape)


def _inside(producer: S.Block, points: Iterable[Point]) -> list[Expr]:
    """The conditions that a turn of a producer is at a point that its consumer has."""
    bindings: dict[Var, Expr] = dict(zip(producer.vars, producer.iter_values))
    made: list[Expr] = []
    for a, index in points:
        point = at(index, bindings)
        made += [Binary("le", a.start, point), Binary("lt", point, add(a.start, a.extent))]
    return made


def _narrowed(tree: Tree, producer: S.Block, points: Iterable[Point]) -> list[Axis]:
    """The axes of a producer, with the points only that its consumer has, where the loops around give no more and no
    condition says so."""
    facts = facts_of(tree.loops_around(producer, all_of_them=True))
    limits = []
    for p in points:
        plain = plain_index(p.place)
        if plain is not None and all(map(constant, map(Simplifier(facts).expr, _inside(producer, [p])))):
            limits.append((*plain, p.axis))
    made = []
    for a in axes_of(producer):
        start, end = constant(a.start), constant(add(a.start, a.extent))
        for var, moved, b in limits:
            first, last = constant(b.start), constant(add(b.start, b.extent))
            if var is not a.var or None in (start, end, first, last):
                continue
            assert start is not None and end is not None and first is not None and last is not None
            start, end = max(start, first - moved), min(end, last - moved)
        if start is not None and end is not None:
            a = a._replace(start=number(start, a.start), extent=number(max(end - start, 0), a.extent))
        made.append(a)
    return made


def _check_said(step: str, tree: Tree, s: S.Block, producer: S.Block, points: Iterable[Point]) -> None:
    """ScheduleError where a block has a point for all that its producer is computed at only because the loops around that
    leave out points of its axes, and neither the axes nor a condition would say so."""
    loops, domain = facts_of(tree.loops_around(producer, all_of_them=True)), facts_of([])
    for a in axes_of(producer):
        domain.bind_loop(a.var, a.start, add(a.start, a.extent), number(1, a.start))
    bindings: dict[Var, Expr] = dict(zip(producer.vars, producer.iter_values))
    for a, point in points:
        start, end = a.start, add(a.start, a.extent)
        if plain_index(point) is not None:
            continue
        inside, said = (
            facts.compare("ge", e, start) is True and facts.compare("lt", e, end) is True
            for facts, e in ((loops, at(point, bindings)), (domain, point))
        )
        if inside and not said:
            raise ScheduleError(
                f"{step} of '{s.name_hint}': '{producer.name_hint}' is not computed at all points of its axes, only at those for which "
                f"'{a.var.name}' is in its range"
            )


def _why_not_whole(tree: Tree, s: S.Block) -> str:
    """Why a block that is folded into its producer might be done for more points than now; those of expressions are done
    for as many as anybody needs."""
    return "" if tree.function.attr(EXPRESSIONS) else why_not_all_points(tree, s, axes_of(s))


def _check_covered(
    step: str, tree: Tree, s: S.Block, producer: S.Block, points: Iterable[Point], buffer: Buffer
) -> None:
    """ScheduleError where a block has points for which its producer computes nothing, as those of padding."""
    facts = facts_of(tree.loops_around(producer, all_of_them=True))
    bindings: dict[Var, Expr] = dict(zip(producer.vars, producer.iter_values))
    own = {a.var: (a.start, add(a.start, a.extent)) for a in axes_of(producer)}
    whole = all(fills(tree, producer, r, [], buffer.shape) for r in writes_of(producer, buffer.data))
    for a, index in points:
        plain = plain_index(index)
        if plain is not None and plain[0] in own:
            low, high = (add(e, number(plain[1], e)) for e in own[plain[0]])
        else:
            found = facts.range_of(at(index, bindings))
            low, high = (number(found[0]), number(found[1] + 1)) if whole else (number(0), number(0))
        start, end = a.start, add(a.start, a.extent)
        if facts.compare("le", low, start) is not True or facts.compare("ge", high, end) is not True:
            raise ScheduleError(
                f"{step} of '{s.name_hint}': '{producer.name_hint}' does not compute all points of its axis '{a.var.name}'"
            )


def _check_available(
    step: str, tree: Tree, s: S.Block, producer: S.Block, made: Tree, buffers: dict[Var, Buffer]
) -> None:
    """ScheduleError where a block reads something that the loops of its producer make, too, and that is complete after
    these loops only. `made`: the tree with both blocks in one."""
    now = made.blocks[producer.name_hint]
    for data in read(s) & read(now):
        for other in writers(made, data, made.scope(now)):
            shared = [x for x in made.loops_around(now) if x in made.loops_around(other)]
            left = [x for x in shared if x.loop_var not in {y.loop_var for y in tree.loops_around(s)}]
            if other is now or not left:
                continue
            fixed = [*made.loops_around(shared[-1], all_of_them=True), shared[-1]]
            pair = sorted((other, now), key=lambda b: made.order[b])
            if not turn_writes(made, pair, data, fixed, buffers[data].shape):
                raise ScheduleError(
                    f"{step} of '{s.name_hint}': a turn of '{left[0].loop_var.name}' does not surely write all that it reads of "
                    f"'{data.name}'"
                )


def _at_points(value: Expr, data: Var, inner: Expr, mapping: dict[Var, Expr]) -> Expr:
    """An expression with its axes replaced, and with another one in place of the elements of a buffer."""
    if is_load_of(value, data):
        return inner
    if isinstance(value, Var):
        return mapping.get(value, value)
    return value.map(lambda e: _at_points(e, data, inner, mapping))


def _simple(step: str, tree: Tree, block: S.Block) -> S.BufferStore:
    """The store that is all a block does. ScheduleError where it does more, or depends on more than its axes."""
    reason = why_not_complete(tree, block)
    if block.init:
        reason = "it has an init"
    if reason:
        raise ScheduleError(f"{step} of '{block.name_hint}': {reason}")
    store = single_store(block)
    if store is None:
        raise ScheduleError(f"{step} of '{block.name_hint}': its body is not a single store")
    if has_effects(store.value):
        raise ScheduleError(f"{step} of '{block.name_hint}': what it stores has side effects")
    return store


class _Replaced(Rewriter):
    """Elements of a buffer as other expressions."""

    def __init__(self, data: Var, value: Callable[[E.BufferLoad], Expr]) -> None:
        super().__init__()
        self.data, self.value = data, value

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        e = self.default(e)
        return self.value(e) if e.buffer.data is self.data else e


def without(body: Body, data: Var) -> Body:
    """A body without the memory of a buffer that nothing uses any more."""
    made: list[Stmt] = []
    for s in body:
        if isinstance(s, S.Alloc) and s.buffer.data is data:
            continue
        made.append(s.map(lambda e: e, lambda inner: without(inner, data)))
    return tuple(made)
