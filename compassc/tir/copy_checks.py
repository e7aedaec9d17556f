"""Whether a copy may stand for a buffer: what a block surely writes, and what others need of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compassc.analysis.itermap import covers
from compassc.analysis.structure import Interner, variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Buffer, Expr, Var
from compassc.ir.stmts import EXPRESSIONS, Stmt
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.te.errors import ScheduleError
from compassc.tir.blocks import Axis, axes_of, constant, uses
from compassc.tir.checks import joins_own_point, read, why_foreign, written
from compassc.tir.decompose import around_reduction
from compassc.tir.region_cover import (
    always_stores,
    facts_of,
    fills,
    holds,
    in_own_loops,
    reach_of,
    reads_of,
    spans_of,
    stands_free,
    turn_writes,
    within,
    writes_of,
)
from compassc.tir.tree import Tree


def only_access(step: str, tree: Tree, s: S.Block, buffer: Buffer) -> tuple[Expr, ...]:
    """The indices of all accesses of a buffer in a block, which must be the same."""
    found = [tuple(i) for i in _accesses((*s.init, *s.body, S.Evaluate(s.predicate)), buffer.data)]
    same = Interner().same
    if not found or any(not all(map(same, a, found[0])) for a in found[1:]):
        raise ScheduleError(
            f"{step} of '{s.name_hint}': it does not access '{buffer.data.name}' at one and the same index"
        )
    own = {v for x in (*walk_stmts(s.body), *tree.loops_around(s)) for v in S.defined(x)}
    moving = [v.name for e in found[0] for v in variables(e) if v in own]
    if moving:
        raise ScheduleError(
            f"{step} of '{s.name_hint}': an index of '{buffer.data.name}' has '{moving[0]}' in it, which is no axis of the block"
        )
    return found[0]


def _accesses(body: Iterable[Stmt], data: Var) -> Iterable[tuple[Expr, ...]]:
    for s in walk_stmts(tuple(body)):
        if isinstance(s, S.BufferStore) and s.buffer.data is data:
            yield s.indices
        for root in s.exprs():
            for e in walk_exprs(root):
                if isinstance(e, E.BufferLoad) and e.buffer.data is data:
                    yield e.indices


def goes_on(tree: Tree, block: S.Block, buffer: Buffer) -> bool:
    """Whether a block may read elements of a buffer that it writes as they were before it."""
    if not joins_own_point(tree, block):
        return True
    if buffer.data not in read(block):
        return False
    inner = tree.inside(block)
    fixed = tree.loops_around(block, all_of_them=True)
    if not inner:
        return True
    return not turn_writes(tree, inner, buffer.data, fixed, buffer.shape)


def check_cover(
    step: str, tree: Tree, maker: S.Block, users: Sequence[S.Block], buffer: Buffer, fixed: Sequence[S.For]
) -> None:
    """ScheduleError where blocks read elements that the block which writes the buffer does not write."""
    reach = reach_of(tree, maker, fixed)
    given = [spans_of(r, maker, reach) for r in writes_of(maker, buffer.data)]
    facts = facts_of(fixed)
    for user in users:
        reach = reach_of(tree, user, fixed)
        for region in reads_of(user, buffer.data):
            needed = spans_of(region, user, reach)
            if not any(holds(g, needed, facts, buffer.shape) for g in given):
                raise ScheduleError(
                    f"{step} of '{buffer.data.name}': '{maker.name_hint}' does not surely write all that '{user.name_hint}' reads of "
                    "it, so a copy of what it writes is not enough"
                )


def check_apart(step: str, tree: Tree, s: S.Block, buffer: Buffer) -> None:
    """ScheduleError when another block in the same loops uses a buffer, whose copy comes before or after these loops."""
    around = tree.scope(s)
    place = tree.position(s, around)
    for other in tree.inside(around):
        if other is not s and buffer.data in read(other) | written(other) and tree.position(other, around) == place:
            raise ScheduleError(
                f"{step} of '{buffer.data.name}': '{other.name_hint}' uses it, too, in the loops of '{s.name_hint}'",
                "take this step before the other block is computed there",
            )


def check_no_other_part(step: str, tree: Tree, s: S.Block, buffer: Buffer) -> None:
    """ScheduleError where a block goes on with a reduction in each point of a block around, and others go on with it,
    too: a copy would have this one's part alone."""
    if around_reduction(tree, s) is None:
        return
    for other in tree.blocks.values():
        nested = tree.is_inside(s, other) or tree.is_inside(other, s)
        if other is not s and not nested and buffer.data in written(other):
            raise ScheduleError(
                f"{step} of '{s.name_hint}': it reduces a part only, '{other.name_hint}' reduces another one"
            )


def check_written_whole(
    step: str, tree: Tree, s: S.Block, buffer: Buffer, fixed: Sequence[S.For], copied: Sequence[tuple[Expr, Expr]]
) -> None:
    """ScheduleError where a block leaves elements alone that a copy of the ranges `copied` would overwrite."""
    free = [x for x in tree.loops_around(s, all_of_them=True) if x not in fixed]
    known = all(constant(x.stop) is not None for x in free)
    for region in writes_of(s, buffer.data):
        if known:
            spans, facts = spans_of(region, s, reach_of(tree, s, fixed)), facts_of(fixed)
            whole = fills(tree, s, region, fixed, buffer.shape) and within(copied, spans, facts, buffer.shape)
        else:
            whole = _fills_open(tree, s, region, buffer)
        if why_foreign(tree, s) or not whole:
            raise ScheduleError(f"{step} of '{buffer.data.name}': '{s.name_hint}' does not surely write all of it")


def _fills_open(tree: Tree, s: S.Block, region: E.BufferRegion, buffer: Buffer) -> bool:
    """Whether a block in loops of open extents writes all of a buffer, whose dimensions are its axes."""
    ranges = {a.var: (a.start, a.extent) for a in axes_of(s)}
    same = facts_of([]).interner.same
    plain = len(set(region.starts)) == len(region.starts) and all(
        isinstance(i, Var) and i in ranges and constant(ranges[i][0]) == 0 and same(ranges[i][1], dim)
        for i, dim in zip(region.starts, buffer.shape)
        if constant(dim) != 1
    )
    if not plain or not always_stores((*s.init, *s.body), buffer.data):
        return False
    own = [a for a in axes_of(s) if a.var in region.starts]
    return bool(tree.function.attr(EXPRESSIONS)) or not why_not_all_points(tree, s, own)


def check_all_points(step: str, tree: Tree, s: S.Block, used: Sequence[Axis], data: Var) -> None:
    """ScheduleError where a block does not surely write at all points of its axes in its scope: a copy of all that
    it could write would overwrite the rest."""
    if foreign := why_foreign(tree, s):
        raise ScheduleError(f"{step} of '{s.name_hint}': {foreign}")
    if not always_stores((*s.init, *s.body), data):
        raise ScheduleError(f"{step} of '{s.name_hint}': it does not write '{data.name}' at each of its points")
    if reason := why_not_all_points(tree, s, used):
        raise ScheduleError(f"{step} of '{s.name_hint}': {reason}")


def why_not_all_points(tree: Tree, s: S.Block, used: Sequence[Axis]) -> str:
    """Why a block is not surely computed at all points of some of its axes in its scope; an empty text where it is."""
    outside = [x for x in tree.loops_around(s, all_of_them=True) if x not in tree.loops_around(s)]
    if not stands_free(tree, s, outside):
        return "it stands in a condition"
    if not _takes_all_points(tree, s, used) and not in_own_loops(tree, s, [a.var for a in used], outside):
        return "it is not surely computed at all points of its axes here"
    return ""


def _takes_all_points(tree: Tree, s: S.Block, used: Sequence[Axis]) -> bool:
    """Whether the loops around a block give all points of some of its axes."""
    loops = tree.loops_around(s)
    sizes = {x.loop_var: constant(x.stop) or 0 for x in loops}
    open_ones = [v for v, size in sizes.items() if not size] if tree.open_loops_are_whole else []
    known = [a for a in used if not uses(a.binding, open_ones)]
    facts = facts_of(loops)
    if any(constant(x.min) != 0 or not sizes[x.loop_var] for x in loops if x.loop_var not in open_ones):
        return False
    for a in known:
        low, high = facts.range_of(a.binding)
        if not set(sizes) >= set(variables(a.binding)) or low > 0 or high < (constant(a.extent) or high + 2) - 1:
            return False
    return covers([a.binding for a in known], sizes)


def check_written_once(step: str, s: S.Block, access: tuple[Expr, ...]) -> None:
    """ScheduleError where the indices that a block writes are not its axes, each once."""
    plain = [e for e in access if isinstance(e, Var)]
    if len(set(plain)) != len(access):
        raise ScheduleError(f"{step} of '{s.name_hint}': its indices are not its axes, each once")
