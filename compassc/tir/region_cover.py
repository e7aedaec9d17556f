"""Whether what is read was written before, in the same turn of the loops around."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from compassc.analysis.arith import Arith
from compassc.analysis.conditions import conjuncts
from compassc.analysis.itermap import UNKNOWN, covers
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Binary, Expr, Var
from compassc.ir.stmts import Stmt
from compassc.ir.visit import walk_exprs
from compassc.te.bounds import Interval, Unbounded, interval
from compassc.tir.addresses import says_all
from compassc.tir.blocks import add, at, axes_of, constant, last_index, number, sub, uses
from compassc.tir.regions import Spans
from compassc.tir.tree import Tree


def facts_of(loops: Iterable[S.For]) -> Arith:
    """What holds inside of loops."""
    facts = Arith()
    for s in loops:
        facts.bind_loop(s.loop_var, s.min, s.stop, s.step)
    return facts


def turns_of(s: S.For) -> int:
    """How many turns a loop has; UNKNOWN where that is no number, or it does not begin at 0."""
    return (constant(s.stop) or UNKNOWN) if constant(s.min) == 0 else UNKNOWN


def data_of(region: E.BufferRegion) -> Var:
    """The storage of a region."""
    return region.buffer.data


def reads_of(block: S.Block, data: Var) -> list[E.BufferRegion]:
    """The regions of a buffer that a block reads."""
    return [r for r in block.reads if data_of(r) is data]


def writes_of(block: S.Block, data: Var) -> list[E.BufferRegion]:
    """The regions of a buffer that a block writes."""
    return [r for r in block.writes if data_of(r) is data]


def reach_of(tree: Tree, block: S.Block, fixed: Sequence[S.For]) -> dict[Var, Interval]:
    """The values of the loops around a block that do not stand still."""
    reach: dict[Var, Interval] = {}
    for s in tree.loops_around(block, all_of_them=True):
        if s in fixed:
            continue
        try:
            reach[s.loop_var] = (
                interval(s.min, reach.get)[0],
                interval(sub(s.stop, number(1, s.loop_var)), reach.get)[1],
            )
        except Unbounded:
            continue
    return reach


def spans_of(
    region: E.BufferRegion,
    block: S.Block,
    reach: Mapping[Var, Interval],
    simplify: Callable[[Expr], Expr] = lambda e: e,
) -> Spans:
    """The spans of a region of a block, by the loops around it. `simplify`: what makes an index one by these loops."""
    mapping: dict[Var, Expr] = {a.var: a.binding for a in axes_of(block)}
    found: Spans = []
    for start, extent in zip(region.starts, region.extents):
        last = last_index(start, extent)
        try:
            first = interval(simplify(at(start, mapping)), reach.get)
            end = first if last is start else interval(simplify(at(last, mapping)), reach.get)
            found.append((first[0], end[1]))
        except Unbounded:
            found.append(None)
    return found


def turn_writes(tree: Tree, blocks: Sequence[S.Block], data: Var, fixed: Sequence[S.For], size: Sequence[Expr]) -> bool:
    """Whether all of a buffer that blocks read in one turn of the loops `fixed` was written in it before. `size`: its
    shape."""
    return all(turn_gives(tree, blocks[:i], b, data, fixed, size) for i, b in enumerate(blocks))


def turn_gives(
    tree: Tree, writers: Iterable[S.Block], reader: S.Block, data: Var, fixed: Sequence[S.For], size: Sequence[Expr]
) -> bool:
    """Whether all of a buffer that one block reads in one turn of the loops `fixed` is what those before it write in it.
    `size`: its shape."""
    regions = reads_of(reader, data)
    wanted = [w for w in writers if regions and len(writes_of(w, data)) == 1]
    return all(any(_gives(tree, w, reader, region, data, fixed, size) for w in wanted) for region in regions)


def _gives(
    tree: Tree,
    writer: S.Block,
    reader: S.Block,
    region: E.BufferRegion,
    data: Var,
    fixed: Sequence[S.For],
    size: Sequence[Expr],
) -> bool:
    """Whether a block before another one writes a region that this reads, in one turn of the loops around both: what later
    turns write is not there yet."""
    around = set(tree.loops_around(reader, all_of_them=True))
    both = [*fixed, *(s for s in tree.loops_around(writer, all_of_them=True) if s in around and s not in fixed)]
    own = writes_of(writer, data)[0]
    if not fills(tree, writer, own, both, size):
        return False
    outer = spans_of(own, writer, reach_of(tree, writer, both))
    return holds(outer, spans_of(region, reader, reach_of(tree, reader, both)), facts_of(both), size)


def within(found: Sequence[tuple[Expr, Expr]], outer: Spans, facts: Arith, size: Sequence[Expr]) -> bool:
    """Whether a box of (start, extent) is no wider than the accesses that it was made for: `box` takes a dimension as a whole
    where it knows no better. `size`: the shape of the buffer."""
    return holds(outer, [(start, sub(add(start, extent), number(1, start))) for start, extent in found], facts, size)


def fills(tree: Tree, block: S.Block, region: E.BufferRegion, fixed: Sequence[S.For], size: Sequence[Expr]) -> bool:
    """Whether a block writes every element of the box that it writes in one turn of the loops `fixed`, as far as the box
    is within the buffer. `size`: its shape."""
    around = tree.loops_around(block, all_of_them=True)
    mapping: dict[Var, Expr] = dict(zip(block.vars, block.iter_values))
    starts = [at(e, mapping) for e in region.starts]
    free = [s for s in around if s not in fixed and not _joins_only(block, s, starts, around)]
    if any(constant(s.min) != 0 or constant(s.stop) is None for s in free):
        return False
    if not stands_free(tree, block, fixed) or not _stores_all(tree, block, region, around, size):
        return False
    outside = [s.loop_var for s in fixed]
    if any(a.is_reduction and uses(a.binding, outside) for a in axes_of(block)):
        return False  # the turn has a part of the sum only
    implied = [a.var for a in tree.implied_axes(block)] if conjuncts(block.predicate) else []
    if uses(block.predicate, implied):
        return False  # no axis tells what the condition leaves out
    if _conditional_point(block, region) or _cut(tree, block, region, size):
        return False
    sizes = {s.loop_var: constant(s.stop) or 0 for s in free}
    parts = [Var("part", start.dtype) for start in starts]  # where in its region a turn is
    sizes.update({v: constant(e) or 0 for v, e in zip(parts, region.extents)})
    return covers([s if constant(e) == 1 else add(s, v) for s, v, e in zip(starts, parts, region.extents)], sizes)


def _stores_all(
    tree: Tree, block: S.Block, region: E.BufferRegion, around: Sequence[S.For], size: Sequence[Expr]
) -> bool:
    """Whether one turn of a block writes all of a region: an element, what a block in it fills, or what the user says that
    it writes at an address."""
    if any(constant(e) is None for e in region.extents):
        return False
    if says_all(block):
        return True
    inside = [(b, w) for b in tree.inside(block) for w in writes_of(b, data_of(region))]
    if len(inside) == 1 and not all(constant(e) == 1 for e in region.extents):
        return fills(tree, *inside[0], around, size)
    single = all(constant(e) == 1 for e in region.extents)
    return single and always_stores((*block.init, *block.body), data_of(region))


def _joins_only(block: S.Block, s: S.For, starts: Sequence[Expr], around: Sequence[S.For]) -> bool:
    """Whether a loop of open extent only joins values to elements that the block begins with, which is done in any case."""
    own = [x.loop_var for x in around]
    return (
        constant(s.stop) is None
        and bool(block.init)
        and not any(uses(e, own) for e in (s.min, s.stop))
        and not any(uses(e, (s.loop_var,)) for e in starts)
    )


def always_stores(body: Iterable[Stmt], data: Var) -> bool:
    """Whether statements surely store to a buffer: not only under conditions, or in loops that may have no turns."""
    for s in body:
        if isinstance(s, S.BufferStore):
            found = s.buffer.data is data and s.mask is None
        elif isinstance(s, S.For):
            start, stop = constant(s.min), constant(s.stop)
            found = start is not None and stop is not None and start < stop and always_stores(s.body, data)
        elif isinstance(s, S.Block):
            found = not conjuncts(s.predicate) and always_stores((*s.init, *s.body), data)
        else:
            found = (
                isinstance(s, S.IfThenElse) and all(always_stores(x, data) for x in s.bodies()) and bool(s.else_case)
            )
        if found:
            return True
    return False


def stands_free(tree: Tree, block: Stmt, fixed: Sequence[S.For]) -> bool:
    """Whether no condition around a block or loop leaves out turns of the loops that do not stand still."""
    for s in tree.around(block):
        if s in fixed:
            return True
        if isinstance(s, S.Block):
            if all(x in fixed for x in tree.loops_around(s, all_of_them=True)):
                return True
            if conjuncts(s.predicate):
                return False
        elif not isinstance(s, S.For):
            return False
    return True


def in_own_loops(tree: Tree, block: S.Block, wanted: Iterable[Expr], fixed: Sequence[S.For]) -> bool:
    """Whether a block is done for all values of the axes `wanted`, because each is bound to a loop of its own that has its
    range, whatever that is."""
    free = {s.loop_var: s for s in tree.loops_around(block, all_of_them=True) if s not in fixed}
    same = facts_of([]).interner.same
    rest = dict(free)
    for a in axes_of(block):
        if a.var not in wanted:
            continue
        s = rest.pop(a.binding, None) if isinstance(a.binding, Var) else None
        if s is None or not same(s.min, a.start) or not same(s.stop, add(a.start, a.extent)):
            return False
    turns = all((constant(s.stop) or 0) > (constant(s.min) or 0) for s in rest.values())
    return turns and not any(uses(e, free) for s in free.values() for e in (s.min, s.stop))


def open_loops_are_whole(tree: Tree) -> bool:
    """Whether the blocks in loops of open extents are done for all values of the axes that depend on these."""
    for b in tree.blocks.values():
        loops = tree.loops_around(b, all_of_them=True)
        variable = [s.loop_var for s in loops if constant(s.stop) is None or constant(s.min) is None]
        wanted = [a.var for a in axes_of(b) if uses(a.binding, variable)]
        if variable and not (in_own_loops(tree, b, wanted, []) and stands_free(tree, b, [])):
            return False
    return True


def _conditional_point(block: S.Block, region: E.BufferRegion) -> bool:
    """Whether a condition is about an axis that what is written does not tell of: one of a single point. There may be
    turns in which nothing is written."""
    for c in conjuncts(block.predicate):
        used = [x for x in walk_exprs(c) if type(x) is Var]
        for a in axes_of(block):
            if uses(a.binding, used) and not any(uses(e, (a.var,)) for e in region.starts):
                return True
    return False


def _cut(tree: Tree, block: S.Block, region: E.BufferRegion, size: Sequence[Expr]) -> bool:
    """Whether conditions leave out elements of the box: those of points beyond the range of an axis, where that does not
    end with the buffer."""
    if not conjuncts(block.predicate):
        return False
    facts = facts_of(tree.loops_around(block, all_of_them=True))
    places = [(plain_index(e), dim) for e, dim in zip(region.starts, size)]
    for a in axes_of(block):
        end = add(a.start, a.extent)
        below = facts.compare("ge", a.binding, a.start) is not True
        above = facts.compare("lt", a.binding, end) is not True
        if not below and not above:
            continue
        whole = [
            (not below or facts.compare("le", add(a.start, number(found[1], a.var)), number(0, a.var)) is True)
            and (not above or facts.compare("ge", add(end, number(found[1], a.var)), dim) is True)
            for found, dim in places
            if found is not None and found[0] is a.var
        ]
        if not any(whole):
            return True
    return False


def plain_index(index: Expr) -> tuple[Var, int] | None:
    """The variable and the number whose sum an index is."""
    if isinstance(index, Var):
        return index, 0
    if isinstance(index, Binary) and index.op in ("add", "sub") and isinstance(index.a, Var):
        value = constant(index.b)
        if value is not None:
            return index.a, value if index.op == "add" else -value
    return None


def holds(outer: Spans, inner: Spans, facts: Arith, size: Sequence[Expr]) -> bool:
    """Whether a box, as far as it is within a buffer of a size, is within another one."""
    simplify = Simplifier(facts).expr
    for a, b, extent in zip(outer, inner, size):
        if a is None:
            return False
        a, b = (simplify(a[0]), simplify(a[1])), None if b is None else (simplify(b[0]), simplify(b[1]))
        low = facts.compare("le", a[0], number(0, a[0])) is True
        high = facts.compare("ge", a[1], sub(extent, number(1, extent))) is True
        if b is None:
            if not (low and high):
                return False
            continue
        if not low and facts.compare("le", a[0], b[0]) is not True:
            return False
        if not high and facts.compare("ge", a[1], b[1]) is not True:
            return False
    return True
