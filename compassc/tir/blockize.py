"""Steps that make blocks of blocks, and that have a block done by an intrinsic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compass_core.namedtuple import NamedTuple
from compassc.analysis.arith import Arith, Linear
from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.simplify import Simplifier
from compassc.analysis.structure import Interner
from compassc.ir import stmts as S
from compassc.ir.exprs import F_LOAD, Binary, Expr, Var
from compassc.ir.names import NamePool
from compassc.ir.stmts import Body
from compassc.ir.visit import Rewriter, substitute_body, walk_exprs, walk_stmts
from compassc.te.errors import ScheduleError
from compassc.tir.base import Base
from compassc.tir.blocks import (
    Axis,
    add,
    at,
    axes_of,
    constant,
    fresh,
    loop,
    loop_axes,
    mul,
    new_block,
    number,
    renamed,
    uses,
)
from compassc.tir.caching import common_around
from compassc.tir.checks import why_foreign, why_unordered
from compassc.tir.digits import sum_of
from compassc.tir.intrinsics import TensorIntrin, tensorized
from compassc.tir.region_cover import facts_of
from compassc.tir.trace import BlockRV, LoopRV, instruction
from compassc.tir.tree import Tree, body_of, direct_blocks, edit


class Halves(NamedTuple):
    """An axis divided: what the loops outside make of it, what those inside do, and the extent of that."""

    axis: Axis
    outer: Expr
    inner: Expr
    extent: int


class Blockizing(Base):
    """Steps that make blocks of blocks."""

    @instruction("Blockize", ("target",), ("preserve_unit_iters",))
    def blockize(self, target: Any, preserve_unit_iters: bool = True) -> BlockRV:
        """Make a block of a loop with one block in it: its axes are what the loops outside make of the inner block's. Of a
        list of blocks that stand side by side: a block of all of them, whose axes are the loops around."""
        if isinstance(target, (list, tuple)):
            if len(target) != 1:
                return self._joined_blocks(list(target))
            target = target[0]
        if isinstance(target, LoopRV):
            function, tree, top = self.located_loop(target)
            inside = tree.inside(top)
            if len(inside) != 1:
                raise ScheduleError(f"blockize of '{top.loop_var.name}': there are {len(inside)} blocks in it, not one")
            block = inside[0]
        else:
            function, tree, block = self.located_block(target)
            top = None
        body, name = _blockized(self, tree, block, top)
        self.commit(function, body)
        return self.new_block(function, name)

    def _joined_blocks(self, given: list[Any]) -> BlockRV:
        """A block around neighbours."""
        if not given or not all(isinstance(b, BlockRV) for b in given):
            raise ScheduleError("blockize: a list is one of blocks")
        function, tree, _ = self.located_block(given[0])
        blocks = [self.located_block(b)[2] for b in given]
        names = ", ".join(b.name_hint for b in blocks)
        if len(set(blocks)) < len(blocks):
            raise ScheduleError(f"blockize of {names}: a block is given twice")
        parent = common_around(tree, blocks)
        places = sorted({tree.position(b, parent) for b in blocks})
        inside = (tree.function.body if parent is None else body_of(parent))[places[0] : places[-1] + 1]
        if len(places) != len(inside) or set(direct_blocks(inside)) != set(blocks):
            raise ScheduleError(f"blockize of {names}: they do not stand one after the other in one loop")
        if any(isinstance(x, S.For) for x in inside):
            axes, body = _divided_together(tree, blocks, parent, inside, names)
        else:
            axes, mapping = loop_axes(tree.loops_around(blocks[0]), blocks)
            body = substitute_body(inside, dict(mapping))
        name = self.free_block_name(tree, "outer_" + "".join(f"{b.name_hint}_" for b in blocks))
        made = new_block(name, axes, body)
        changes: dict[S.Stmt, Sequence[S.Stmt]] = dict.fromkeys(inside[1:], ())
        self.commit(function, edit(tree.function.body, {**changes, inside[0]: (made,)}))
        return self.new_block(function, made.name_hint)

    @instruction("Tensorize", ("block_or_loop",), ("tensor_intrin", "preserve_unit_iters"))
    def tensorize(self, block_or_loop: BlockRV | LoopRV, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
        """Have a block (or what is in a loop) done by a registered intrinsic, whose description it must match."""
        intrinsic = TensorIntrin.get(tensor_intrin)
        assert intrinsic is not None
        outer = self.blockize(block_or_loop) if isinstance(block_or_loop, LoopRV) else block_or_loop
        function, tree, block = self.located_block(outer)
        made = tensorized(tensor_intrin, intrinsic, block, self.buffers(function))
        made = made.replace(body=self._own_names(tree, block, made.body))
        self.commit(function, edit(tree.function.body, {block: (made,)}))

    def _own_names(self, tree: Tree, block: S.Block, body: Body) -> Body:
        """The statements of an implementation with names of blocks that no other block of the function has."""
        gone = {s.name_hint for s in walk_stmts(block.body) if isinstance(s, S.Block)}
        names = NamePool(set(tree.blocks) - gone)
        return _renamed(
            body, {s.name_hint: names.take(s.name_hint) for s in walk_stmts(body) if isinstance(s, S.Block)}
        )


def _renamed(body: Body, names: dict[str, str]) -> Body:
    """A body with other names of its blocks."""
    made = []
    for s in body:
        new = s.map(lambda e: e, lambda inner: _renamed(inner, names))
        made.append(new.replace(name_hint=names.get(new.name_hint, new.name_hint)) if isinstance(new, S.Block) else new)
    return tuple(made)


class _Divided(Rewriter):
    """Has axes be what stands for them, with indices simplified under the ranges of the axes that these are made of."""

    def __init__(self, mapping: dict[Var, Expr], axes: Sequence[Axis]) -> None:
        super().__init__()
        self.mapping, facts = mapping, Arith()
        for axis in axes:
            extent = constant(axis.extent)
            if extent is not None:
                facts.bind(axis.var, 0, extent - 1)
        self.simplify = Simplifier(facts).expr

    def expr(self, e: Expr) -> Expr:
        found = self.mapping.get(e, e) if isinstance(e, Var) else super().expr(e)
        index = found.dtype in ("int32", "int64") and not found.flags & F_LOAD
        return self.simplify(found) if index and found is not e else found


def _blockized(schedule: Base, tree: Tree, block: S.Block, top: S.For | None) -> tuple[Body, str]:
    """The body of the function with a block around a loop (or around a block alone), and its name."""

    def error(reason: str) -> ScheduleError:
        return ScheduleError(f"blockize of '{block.name_hint}': {reason}")

    reason = why_unordered(tree, block) or why_foreign(tree, block)
    if reason:
        raise error(reason)
    loops = tree.loops_around(block)
    inner = loops[loops.index(top) :] if top is not None else []
    for s, below in zip(inner, [*inner[1:], block]):
        if constant(s.stop) is None or constant(s.min) != 0 or s.body != (below,):
            raise error(f"'{s.loop_var.name}' has no constant extent, or more than the block in it")
    within = facts_of(tree.loops_around(block, all_of_them=True))
    halves = [_divided(a, [s.loop_var for s in inner], within, error) for a in axes_of(block)]
    outer_axes = [_outer(h) for h in halves]
    inner_axes, mapping, beyond = _inner(halves, outer_axes)
    inner_where = joined([c for _, c in beyond])
    conditions = conjuncts(block.predicate)
    kept = [c for c in conditions if not uses(c, [s.loop_var for s in inner])]
    if len(kept) < len(conditions):  # those that go say that the axes are in their ranges
        for h, outer in zip(halves, outer_axes):
            kept += [Binary("le", number(0, h.outer), h.outer), Binary("lt", h.outer, outer.extent)]
    body = _Divided(mapping, (*outer_axes, *inner_axes)).body(block.body)
    update = new_block(block.name_hint, inner_axes, body, (), inner_where)
    update = update.replace(annotations=block.annotations)
    nest: Body = (update,)
    for s in reversed(inner):
        nest = (s.replace(body=nest),)
    init = _beginning(schedule, tree, block, inner, outer_axes, inner_axes, mapping, beyond) if block.init else ()
    name = schedule.free_block_name(tree, f"{block.name_hint}_o")
    made = new_block(name, outer_axes, nest, init, joined(kept))
    return edit(tree.function.body, {top if top is not None else block: (made,)}), name


def _outer(h: Halves) -> Axis:
    """The axis of the outer block that one of the inner block needs."""
    whole = constant(h.axis.extent)
    turns = h.axis.extent if whole is None else number(-(-whole // h.extent))
    return Axis(fresh(h.axis.var, f"{h.axis.var.name}_o"), h.axis.kind, number(0), turns, h.outer)


def _inner(
    halves: Sequence[Halves], outer: Sequence[Axis]
) -> tuple[list[Axis], dict[Var, Expr], list[tuple[Axis, Expr]]]:
    """The axes of the inner block, what its old axes are, and the conditions that these are in their ranges."""
    inner_axes: list[Axis] = []
    mapping: dict[Var, Expr] = {}
    beyond: list[tuple[Axis, Expr]] = []
    for h, first in zip(halves, outer):
        whole = constant(h.axis.extent)
        value: Expr = first.var
        point: Expr = first.var
        if h.extent > 1:
            second = Axis(fresh(h.axis.var, f"{h.axis.var.name}_i"), h.axis.kind, number(0), number(h.extent), h.inner)
            inner_axes.append(second)
            base = number(0) if constant(first.extent) == 1 else mul(first.var, number(h.extent))
            value, point = add(base, second.var), add(base, second.binding)
        mapping[h.axis.var] = value
        if whole is not None and whole % h.extent:
            beyond.append((h.axis, Binary("lt", point, number(whole))))
    return inner_axes, mapping, beyond


def _divided_together(
    tree: Tree, blocks: Sequence[S.Block], parent: S.Stmt | None, inside: Body, names: str
) -> tuple[list[Axis], Body]:
    """The axes of a block around several, each in loops of its own, and what it does: all have the same points outside of
    their loops."""

    def error(reason: str) -> ScheduleError:
        return ScheduleError(f"blockize of {names}: {reason}")

    same = Interner().same
    axes: list[Axis] = []
    changes: dict[S.Stmt, Sequence[S.Stmt]] = {}
    for block in blocks:
        reason = why_unordered(tree, block) or why_foreign(tree, block)
        if reason or conjuncts(block.predicate):
            raise error(reason or f"'{block.name_hint}' is done under a condition")
        own = [s for s in tree.loops_around(block) if parent is None or tree.is_inside(s, parent)]
        within = facts_of(tree.loops_around(block, all_of_them=True))
        halves = [_divided(a, [s.loop_var for s in own], within, error) for a in axes_of(block)]
        found = [_outer(h) for h in halves]
        axes = axes or found
        if len(found) != len(axes) or not all(
            same(a.binding, b.binding) and same(a.extent, b.extent) and a.kind == b.kind for a, b in zip(axes, found)
        ):
            raise error(f"'{block.name_hint}' has other points outside of its loops than '{blocks[0].name_hint}'")
        if block.init and any(a.is_reduction for a in found):
            raise error(f"'{block.name_hint}' is reduced over loops outside: decompose_reduction before")
        inner_axes, mapping, beyond = _inner(halves, axes)
        change = _Divided(mapping, (*axes, *inner_axes))
        update = new_block(
            block.name_hint,
            inner_axes,
            change.body(block.body),
            change.body(block.init),
            joined([c for _, c in beyond]),
        )
        changes[block] = (update.replace(annotations=block.annotations),)
    return axes, edit(inside, changes)


def _beginning(
    schedule: Base,
    tree: Tree,
    block: S.Block,
    inner: Sequence[S.For],
    outer: Sequence[Axis],
    inner_axes: Sequence[Axis],
    mapping: dict[Var, Expr],
    beyond: Sequence[tuple[Axis, Expr]],
) -> Body:
    """The init of a reduction as a block of the outer block's init."""
    spatial = [a for a in inner_axes if not a.is_reduction]
    loops = [s for s in inner if any(uses(a.binding, (s.loop_var,)) for a in spatial)]
    new_vars = {s.loop_var: fresh(s.loop_var, f"{s.loop_var.name}_init") for s in loops}
    at_loops: dict[Var, Expr] = dict(new_vars)
    axes = [a._replace(var=fresh(a.var), binding=at(a.binding, at_loops)) for a in spatial]
    points: dict[Var, Expr] = {a.var: n.var for a, n in zip(spatial, axes)}
    values: dict[Var, Expr] = {v: at(e, points) for v, e in mapping.items()}
    begun = _Divided(values, (*outer, *axes)).body(block.init)
    where = joined([at(c, at_loops) for a, c in beyond if not a.is_reduction])
    name = schedule.free_block_name(tree, f"{block.name_hint}_init")
    made: Body = (new_block(name, axes, renamed(begun, {}), where=where),)
    for s in reversed(loops):
        made = (loop(new_vars[s.loop_var], s.stop, made, s),)
    return made


def _divided(axis: Axis, inner: Sequence[Var], facts: Arith, error: Any) -> Halves:
    """The binding of an axis as `outer * extent + inner`."""
    what = f"the binding of '{axis.var.name}' cannot be divided at the loop"
    whole = constant(axis.extent)
    if whole is None and constant(axis.start) == 0 and not uses(axis.binding, inner):
        return Halves(axis, axis.binding, number(0, axis.binding), 1)
    if whole is None or constant(axis.start) != 0:
        raise error(f"the range of '{axis.var.name}' is not 0 to a constant")
    form = facts.exact(axis.binding)
    low, high = Linear(), Linear()
    for key, factor in form.terms.items():
        atom = facts.atoms[key]
        if uses(atom, inner):
            if not isinstance(atom, Var) and uses(atom, set(_variables(atom)) - set(inner)):
                raise error(what)
            low.terms[key] = factor
        else:
            high.terms[key] = factor
    first, last = facts.bounds(low)
    if first != 0:
        raise error(what)
    extent = last + 1
    if any(f % extent for f in high.terms.values()) or form.const % extent:
        raise error(what)
    turns = Linear({key: factor // extent for key, factor in high.terms.items()}, form.const // extent)
    simplify = Simplifier(facts).expr
    outer, within = (simplify(sum_of(half, facts, axis.binding)) for half in (turns, low))
    return Halves(axis, outer, within, extent)


def _variables(e: Expr) -> list[Var]:
    return [x for x in walk_exprs(e) if type(x) is Var]
