"""The init of a reduction as a block of its own, before the loops that it reduces over."""

from __future__ import annotations

from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.itermap import once
from compassc.analysis.structure import variables
from compassc.ir import stmts as S
from compassc.ir.exprs import Expr, Var
from compassc.ir.stmts import Body
from compassc.ir.visit import all_exprs, substitute_body
from compassc.te.errors import ScheduleError
from compassc.tir.blocks import (
    add,
    at,
    axes_of,
    constant,
    fresh,
    fresh_axes,
    loop,
    loop_extent,
    new_block,
    renamed,
    sub,
    uses,
)
from compassc.tir.region_cover import data_of
from compassc.tir.regions import touched
from compassc.tir.tree import Tree, edit


def reduction_loops(tree: Tree, block: S.Block) -> list[S.For]:
    """The loops of a block that its reduction axes are bound to, outermost first."""
    bindings = [a.binding for a in axes_of(block) if a.is_reduction]
    return [s for s in tree.loops_around(block) if any(uses(b, (s.loop_var,)) for b in bindings)]


def around_reduction(tree: Tree, block: S.Block) -> S.Block | None:
    """The block around one that reduces over an axis of it: what is inside goes on with a reduction in each of its points."""
    bindings = [a.binding for a in axes_of(block) if a.is_reduction]
    for above in tree.around(block):
        if isinstance(above, S.Block):
            own = [a.var for a in axes_of(above) if constant(a.extent) != 1]
            if any(uses(e, own) for e in bindings):
                return above
            bindings = [at(e, dict(zip(above.vars, above.iter_values))) for e in bindings]
    return None


def kinds_over(tree: Tree, block: S.Block, s: S.For) -> set[str]:
    """The kinds of the axes of a block that depend on a loop, which is around it or around a block that it is in."""
    bindings = [(a.kind, a.binding) for a in axes_of(block)]
    for above in tree.around(block):
        if above is s:
            break
        if isinstance(above, S.Block):
            bindings = [(kind, at(e, dict(zip(above.vars, above.iter_values)))) for kind, e in bindings]
    return {kind for kind, e in bindings if uses(e, (s.loop_var,))}


def _check_begun_once(tree: Tree, block: S.Block, before: S.For, inner: list[S.For], kept: list[S.For]) -> None:
    """ScheduleError where the loop computes elements several times, each time from the beginning on."""
    reducing = reduction_loops(tree, block)
    again = [s.loop_var.name for s in inner if s not in kept and s not in reducing and constant(s.stop) != 1]
    axes = [*axes_of(block), *tree.implied_axes(block)]
    spatial = [a.binding for a in axes if not a.is_reduction]
    if again or not once(spatial, {s.loop_var: loop_extent(s) for s in kept}):
        raise ScheduleError(
            f"decompose_reduction of '{block.name_hint}': in turns of '{(again or [before.loop_var.name])[0]}' it computes the same "
            "elements, each time from the beginning on",
            "give a loop inside of it",
        )


def _check_begins_alone(tree: Tree, block: S.Block, before: S.For) -> None:
    """ScheduleError where another block of the loop uses what the init writes, before it does, or writes what the
    init reads."""
    found = touched(block.init)
    for other in tree.inside(tree.scope(block)):
        if other is block or not tree.is_inside(other, before):
            continue
        written = {data_of(r) for r in other.writes}
        used = written | {data_of(r) for r in other.reads}
        if written & set(found.reads) or (tree.order[other] < tree.order[block] and used & set(found.writes)):
            raise ScheduleError(
                f"decompose_reduction of '{block.name_hint}': '{other.name_hint}' in the loop '{before.loop_var.name}' would be computed "
                "after the init, and before it is now",
                "give a loop inside of it",
            )


def _used_by_the_beginning(tree: Tree, block: S.Block) -> list[S.For]:
    """The loops whose variables the init uses, not by an axis. ScheduleError where one of them is reduced over."""
    used = {v for e in all_exprs(block.init) for v in variables(e)}
    own = [s for s in tree.used_loops(block) if s.loop_var in used]
    reducing = reduction_loops(tree, block)
    if (odd := next((s for s in own if s in reducing), None)) is not None:
        raise ScheduleError(
            f"decompose_reduction of '{block.name_hint}': its init uses '{odd.loop_var.name}', which is reduced over"
        )
    return own


def decomposed(tree: Tree, block: S.Block, before: S.For, names: tuple[str, str]) -> Body:
    """The body of the function with the init of a reduction before a loop. `names`: those of the two blocks."""
    loops = tree.loops_around(block)
    if outer := around_reduction(tree, block):
        raise ScheduleError(
            f"decompose_reduction of '{block.name_hint}': it goes on with a reduction in each point of '{outer.name_hint}', which it is "
            "inside of",
            f"decompose it before '{outer.name_hint}' is made",
        )
    inner = loops[loops.index(before) :]
    for s in reduction_loops(tree, block):
        if s not in inner:
            raise ScheduleError(
                f"decompose_reduction of '{block.name_hint}': the loop '{before.loop_var.name}' is inside of '{s.loop_var.name}', "
                "which is reduced over",
                "give the outermost loop that is reduced over, or one outside of it",
            )
    for above in tree.around(block):
        if above is before:
            break
        if not isinstance(above, S.For):
            raise ScheduleError(
                f"decompose_reduction of '{block.name_hint}': it stands in a condition inside of the loop"
            )
    _check_begins_alone(tree, block, before)
    spatial = [a for a in axes_of(block) if not a.is_reduction]
    own = _used_by_the_beginning(tree, block)
    kept = [s for s in inner if s in own or any(uses(a.binding, (s.loop_var,)) for a in spatial)]
    dropped = [s.loop_var for s in inner if s not in kept]
    _check_begun_once(tree, block, before, inner, kept)
    fresh_vars = {s.loop_var: fresh(s.loop_var, f"{s.loop_var.name}_init") for s in kept}
    mapping: dict[Var, Expr] = {s.loop_var: add(s.min, fresh_vars[s.loop_var]) for s in kept}
    around = {s.loop_var for s in tree.loops_around(block, all_of_them=True)}
    around |= {v for above in tree.around(block) if isinstance(above, S.Block) for v in above.vars}
    conditions = []
    for c in conjuncts(block.predicate):
        if not uses(c, dropped):
            conditions.append(at(c, mapping))
        elif uses(c, around.difference(dropped)):
            raise ScheduleError(
                f"decompose_reduction of '{block.name_hint}': its condition joins loops that are reduced over and others"
            )
    axes, renames = fresh_axes([a._replace(binding=at(a.binding, mapping)) for a in spatial])
    init = renamed(substitute_body(block.init, mapping), dict(renames))
    made: Body = (new_block(names[0], axes, init, where=joined(conditions)),)
    for s in reversed(kept):
        made = (loop(fresh_vars[s.loop_var], sub(s.stop, s.min), made, s),)
    update = block.replace(name_hint=names[1], init=())
    return edit(tree.function.body, {before: (*made, *edit((before,), {block: (update,)}))})
