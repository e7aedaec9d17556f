"""What steps demand of blocks: that they compute each element by itself, or join values into it; what is read was
written before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compassc.analysis.conditions import conjuncts
from compassc.analysis.itermap import UNKNOWN, separates
from compassc.analysis.simplify import Simplifier
from compassc.analysis.structure import Interner, is_pure
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Expr, Var
from compassc.ir.stmts import EXPRESSIONS
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.te.errors import ScheduleError
from compassc.tir.blocks import Axis, add, at, axes_of, constant, mul, reduction_parts, uses
from compassc.tir.region_cover import data_of, facts_of, turn_gives, turn_writes
from compassc.tir.tree import Tree, direct_blocks


def written(block: S.Block) -> set[Var]:
    """The storage that a block writes."""
    return {data_of(r) for r in block.writes}


def read(block: S.Block) -> set[Var]:
    """The storage that a block reads."""
    return {data_of(r) for r in block.reads}


def writers(tree: Tree, data: Var, scope: S.Block | None) -> list[S.Block]:
    """The blocks of a scope that write a buffer, in order."""
    return [b for b in tree.inside(scope) if data in written(b)]


def readers(tree: Tree, data: Var, scope: S.Block | None) -> list[S.Block]:
    """The blocks of a scope that read a buffer, in order."""
    return [b for b in tree.inside(scope) if data in read(b)]


def why_not_complete(tree: Tree, block: S.Block) -> str:
    """The condition of complete blocks that one breaks; an empty text for a complete one."""
    odd = [a.var.name for a in axes_of(block) if a.kind != "spatial"]
    if odd:
        return f"it is no complete block (1): its axis {odd[0]} is not spatial"
    other = _other_writer(tree, block)
    if other:
        return f"it is no complete block (2): {other}"
    if written(block) & read(block):
        return "it is no complete block (3): it reads what it writes"
    if not joins_own_point(tree, block):
        return "it is no complete block (3): it reads other elements of what it writes than the one that it writes"
    return ""


def why_no_reduction(tree: Tree, block: S.Block) -> str:
    """The condition of reduction blocks that one breaks; an empty text for a reduction."""
    if not block.init:
        return "it is no reduction (1): it has no init"
    odd = [a.var.name for a in axes_of(block) if a.kind not in ("spatial", "reduce")]
    if odd:
        return f"it is no reduction (3): its axis {odd[0]} is neither spatial nor a reduction's"
    other = _other_writer(tree, block)
    if other:
        return f"it is no reduction (4): {other}"
    if not joins_own_point(tree, block):
        return "it is no reduction (4): it reads other elements of what it writes than the one that it writes"
    return _reduced_index(tree, block)


def joins_own_point(tree: Tree, block: S.Block) -> bool:
    """Whether a block with an init reads what it writes only where it goes on with it; those of expressions do."""
    if not block.init or _is_of_expressions(tree, block):
        return True
    own = written(block)
    begun = [e for s in walk_stmts(block.init) for root in s.exprs() for e in walk_exprs(root)]
    return _own_point(block) and not any(isinstance(e, E.BufferLoad) and e.buffer.data in own for e in begun)


def _is_of_expressions(tree: Tree, block: S.Block) -> bool:
    """Whether a block is of expressions, whose axes say which points depend on each other. Loops that it uses itself do
    not say so."""
    return bool(tree.function.attr(EXPRESSIONS)) and not tree.used_loops(block)


def _reduced_index(tree: Tree, block: S.Block) -> str:
    axes = [a for a in axes_of(block) if a.is_reduction]
    reduced = [*(a.var for a in axes), *(s.loop_var for s in tree.used_loops(block) if _is_of(axes, s))]
    if any(uses(i, reduced) for r in block.writes for i in r.starts):
        return "it is no reduction (5): an axis that is reduced over is an index of what it writes"
    return ""


def _other_writer(tree: Tree, block: S.Block) -> str:
    for other in tree.blocks.values():
        if other is not block and written(other) & written(block) and not _nested(tree, block, other):
            return f"'{other.name_hint}' writes its buffer, too"
    return ""


def _nested(tree: Tree, a: S.Block, b: S.Block) -> bool:
    return tree.is_inside(a, b) or tree.is_inside(b, a)


def _is_of(axes: Sequence[Axis], s: S.For) -> bool:
    """Whether an axis depends on a loop."""
    return any(uses(a.binding, (s.loop_var,)) for a in axes)


def is_update(tree: Tree, block: S.Block) -> bool:
    """Whether a block is what a reduction does without its init, which another block is."""
    own = written(block)
    others = [b for b in tree.inside(tree.scope(block)) if b is not block and written(b) & own]
    kinds = all(a.kind in ("spatial", "reduce") for a in axes_of(block))
    if not kinds or block.init or not own <= read(block) or _reduced_index(tree, block):
        return False
    joins = accumulates(block)
    if any(a.is_reduction for a in axes_of(block)) and not joins and not _is_of_expressions(tree, block):
        return False  # the user's own operator, of which it is not known whether the order matters
    return joins or (len(others) == 1 and _own_point(block))


def _own_point(block: S.Block) -> bool:
    """Whether a block reads what it writes at the place that it writes only."""
    same = Interner().same
    stores = [s for s in walk_stmts(block.body) if isinstance(s, S.BufferStore)]
    for s in walk_stmts(block.body):
        for root in s.exprs():
            for e in walk_exprs(root):
                if isinstance(e, E.BufferLoad) and any(e.buffer.data is x.buffer.data for x in stores):
                    at = [x.indices for x in stores if x.buffer.data is e.buffer.data]
                    if any(not all(map(same, e.indices, i)) for i in at):
                        return False
    return True


def accumulates(block: S.Block) -> bool:
    """Whether a block joins a value into one element, by an operator for which the order does not matter."""
    parts = reduction_parts(block)
    if parts is None:
        return False
    store, source = parts
    value = store.value
    assert isinstance(value, E.Binary) and isinstance(value.a, E.BufferLoad)
    same = Interner().same
    alone = not any(is_load_of(e, store.buffer.data) for e in walk_exprs(source))
    return value.op in _JOINING and alone and all(map(same, value.a.indices, store.indices))


_JOINING = ("add", "mul", "min", "max", "and", "or", "bitand", "bitor", "bitxor")


def why_unordered(tree: Tree, block: S.Block, over: S.For | None = None) -> str:
    """Why the order of a block's points matters; an empty text where it does not. `over`: of the turns of a loop."""
    complete = why_not_complete(tree, block)
    if complete and not is_update(tree, block) and not is_beginning(tree, block):
        reduction = why_no_reduction(tree, block)
        if reduction:
            return f"{complete}; {reduction}"
    return "" if over is not None and accumulates(block) and not block.init else why_not_apart(tree, block, over)


def why_not_apart(tree: Tree, block: S.Block, over: S.For | None = None) -> str:
    """Why different points of a block may write the same element; an empty text where they do not. `over`: points of
    different turns of a loop, of which each has memory of its own for what is used in it alone.

    Blocks made of expressions are always apart.
    """
    if _is_of_expressions(tree, block):
        return ""
    if tree.used_loops(block):
        where, mapping, sizes, moving = "turns of the loop", *_turns(tree, block, over)
    else:
        where, mapping, sizes, moving = "points of its axis", *_points(block, over)
    inside = list(walk_stmts(block.body))
    sizes.update({s.loop_var: constant(s.stop) or UNKNOWN for s in inside if isinstance(s, S.For)})
    assigned = [s.var for s in inside if isinstance(s, S.Assign)]
    for data, indices in _stored(block.body, mapping, assigned):
        indices = tuple(i for i in indices if not uses(i, assigned))
        if data not in written(block) or (over is not None and _is_of_turn(tree, data, over)):
            continue
        for var in moving:
            if not separates([_point(i, sizes) for i in indices], sizes, var):
                return f"different {where} '{var.name}' may write the same element of '{data.name}'"
    return ""


Moving = tuple[dict[Var, Expr], dict[Var, int], list[Var]]
"""What variables in the indices of a block stand for, the sizes of those that change, and those of which different values
must be different elements."""


def _points(block: S.Block, over: S.For | None) -> Moving:
    axes = axes_of(block)
    moving = [a for a in axes if a.kind == "spatial" and constant(a.extent) != 1]
    if over is not None:
        moving = [a for a in moving if uses(a.binding, (over.loop_var,))]
    return {}, {a.var: constant(a.extent) or UNKNOWN for a in axes}, [a.var for a in moving]


def _turns(tree: Tree, block: S.Block, over: S.For | None) -> Moving:
    """Of a block that uses the variables of loops itself: its axes are what is bound to them."""
    axes, used = axes_of(block), tree.used_loops(block)
    loops = tree.loops_around(block, all_of_them=True)
    if over is not None:
        loops = loops[loops.index(over) :]  # the others stand still
    sizes = {s.loop_var: constant(s.stop) or UNKNOWN for s in loops}
    spatial, reduced = [a for a in axes if a.kind == "spatial"], [a for a in axes if a.is_reduction]
    moving = [s for s in loops if _is_of(spatial, s) or (s in used and not _is_of(reduced, s))]
    moving = [s for s in moving if constant(s.stop) != 1 and (over is None or s is over)]
    return {a.var: a.binding for a in axes}, sizes, [s.loop_var for s in moving]


def _stored(
    body: Sequence[S.Stmt], mapping: dict[Var, Expr], assigned: Sequence[Var]
) -> Iterator[tuple[Var, tuple[Expr, ...]]]:
    """The buffers that statements store to, and the indices by the axes of the block around them. `assigned`: variables
    that stand for other values later, which are left as they are."""
    mapping = dict(mapping)
    for s in body:
        if isinstance(s, S.Let) and s.var not in assigned:
            mapping[s.var] = at(s.value, mapping)
        if isinstance(s, S.BufferStore):
            yield s.buffer.data, tuple([at(i, mapping) for i in s.indices])
        inner = mapping
        if isinstance(s, S.Block):
            inner = {**mapping, **{v: at(e, mapping) for v, e in zip(s.vars, s.iter_values)}}
        for part in s.bodies():
            yield from _stored(part, inner, assigned)


def _point(index: Expr, sizes: dict[Var, int]) -> Expr:
    """An index, of a vector by a variable for its lanes, which `sizes` has from then on."""
    if not isinstance(index, E.Ramp):
        return index
    lane = Var("lane", INT32)
    sizes[lane] = index.lanes
    return add(index.base, mul(lane, index.stride))


def _is_of_turn(tree: Tree, data: Var, over: S.For) -> bool:
    """Whether memory of the function is used in one loop alone."""
    if not any(isinstance(s, S.Alloc) and s.buffer.data is data for s in tree.parents):
        return False
    return all(tree.is_inside(b, over) for b in tree.blocks.values() if data in written(b) | read(b))


def is_beginning(tree: Tree, block: S.Block) -> bool:
    """Whether a block is the init of the reduction of another one."""
    own = written(block)
    others = [b for b in tree.inside(tree.scope(block)) if b is not block and written(b) & own]
    spatial = all(a.kind == "spatial" for a in axes_of(block))
    return len(others) == 1 and is_update(tree, others[0]) and spatial and _own_point(block)


def check_unordered(step: str, tree: Tree, s: S.For) -> None:
    """ScheduleError where the turns of a loop depend on each other in another way than by joining values."""
    blocks = list(direct_blocks(s.body))
    for block in blocks:
        reason = why_unordered(tree, block, s)
        if reason:
            raise ScheduleError(
                f"{step} of '{s.loop_var.name}': the order of the points of '{block.name_hint}' matters: {reason}"
            )
    _check_turn(step, tree, s, blocks)
    _check_only_blocks(step, s, s.body)


def _check_only_blocks(step: str, s: S.For, body: Sequence[S.Stmt]) -> None:
    for x in body:
        if isinstance(x, S.Block):
            continue
        if not isinstance(x, (S.For, S.Alloc)) and not _is_plain_condition(x):
            raise ScheduleError(f"{step} of '{s.loop_var.name}': there are statements in it that are in no block")
        for inner in x.bodies():
            _check_only_blocks(step, s, inner)


def _is_plain_condition(x: S.Stmt) -> bool:
    """Whether a statement is a condition about variables alone."""
    return isinstance(x, S.IfThenElse) and is_pure(x.condition) and not x.condition.flags & E.F_LOAD


def _check_turn(step: str, tree: Tree, s: S.For, blocks: list[S.Block]) -> None:
    """ScheduleError where a turn of a loop reads what another one wrote."""
    flows = {d for b in blocks for d in written(b)} & {d for b in blocks for d in read(b)}
    if not flows:
        return
    loops = [*tree.loops_around(s, all_of_them=True), s]
    sizes = _shapes(tree)
    for data in flows:
        users = [b for b in blocks if data in written(b) | read(b)]
        if all(is_update(tree, b) for b in users):
            continue
        if not turn_writes(tree, blocks, data, loops, sizes.get(data, ())):
            raise ScheduleError(
                f"{step} of '{s.loop_var.name}': its turns depend on each other by '{data.name}': not all that a turn reads "
                "of it is surely written in the same turn"
            )


def _shapes(tree: Tree) -> dict[Var, Sequence[Expr]]:
    """The shapes of the buffers of a function by their storage."""
    return {s.buffer.data: s.buffer.shape for s in tree.parents if isinstance(s, (S.Alloc, S.DeclBuffer))}


def why_foreign(tree: Tree, block: S.Block) -> str:
    """Why the condition of a block says more than that its axes are in their ranges; an empty text where it does not."""
    from compassc.tir.implied_conditions import implied

    facts = facts_of(tree.loops_around(block, all_of_them=True))
    for c in conjuncts(block.predicate):
        if not implied(c, axes_of(block), facts, Simplifier(facts)):
            return "its condition does not follow from the ranges of its axes"
    return ""


def why_not_kept(tree: Tree, block: S.Block, seen: frozenset[str] = frozenset()) -> str:
    """Why what a block reads is there in a turn of a loop only, so that its points must be computed where they are; an
    empty text where it stays: each of its elements is computed once, or always as the same value."""
    if not tree.function.attr(EXPRESSIONS) and (reason := _why_not_of_turn(tree, block)):
        return reason
    for p in tree.inside(tree.scope(block)):
        shared = [s for s in tree.loops_around(block) if tree.is_inside(p, s)]
        if p is block or p.name_hint in seen or not shared or not written(p) & read(block):
            continue
        over = [s.loop_var for s in shared]
        odd = any(a.kind != "spatial" and uses(a.binding, over) for a in axes_of(p))
        plain = bool(tree.function.attr(EXPRESSIONS))
        if odd or (not plain and (why_unordered(tree, p) or why_not_kept(tree, p, seen | {block.name_hint}))):
            return f"what '{p.name_hint}' writes is there in a turn of '{shared[0].loop_var.name}' only, other turns have others"
    return ""


def _why_not_of_turn(tree: Tree, block: S.Block) -> str:
    """Why what goes between a block and those in loops with it is not that of a turn of these loops, as a part of a sum or
    the value from before; an empty text where it is. Expressions have whole tensors between them."""
    shapes = _shapes(tree)
    for other in tree.inside(tree.scope(block)):
        shared = [s for s in tree.loops_around(block) if tree.is_inside(other, s)]
        if other is block or not shared:
            continue
        for w, r in ((block, other), (other, block)):
            for data in written(w) & read(r):
                before = [b for b in tree.inside(shared[-1]) if data in written(b) and tree.order[b] < tree.order[r]]
                loops = tree.loops_around(shared[-1], all_of_them=True)
                if not turn_gives(tree, before, r, data, [*loops, shared[-1]], shapes.get(data, ())):
                    return (
                        f"'{r.name_hint}' reads other elements of '{data.name}' in a turn of '{shared[-1].loop_var.name}' than "
                        f"'{w.name_hint}' has computed in it by then, or reads them unfinished"
                    )
    return ""


def single_store(block: S.Block) -> S.BufferStore | None:
    """The store that is all a block does."""
    body = block.body
    return body[0] if len(body) == 1 and isinstance(body[0], S.BufferStore) and body[0].mask is None else None


def has_effects(e: Expr) -> bool:
    """Whether an expression calls something that may do more than give a value."""
    return not is_pure(e)


def is_load_of(e: Expr, data: Var) -> bool:
    """Whether an expression is an element of a buffer."""
    return isinstance(e, E.BufferLoad) and e.buffer.data is data
