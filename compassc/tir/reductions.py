"""Steps on reductions: where they begin, and partial results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from compass_core import vendor
from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import pointer_type
from compassc.ir.exprs import Buffer, Expr, Var
from compassc.ir.names import NamePool
from compassc.ir.stmts import Body
from compassc.ir.tensor_stmts import reduced, stored
from compassc.te.errors import ScheduleError
from compassc.tir.base import Base
from compassc.tir.blocks import (
    Axis,
    at,
    axes_of,
    constant,
    fresh,
    fresh_axes,
    loop,
    new_block,
    number,
    uses,
    view,
)
from compassc.tir.caching import allocated
from compassc.tir.checks import why_foreign, why_no_reduction
from compassc.tir.decompose import around_reduction, decomposed, reduction_loops
from compassc.tir.reducers import joining_of
from compassc.tir.region_cover import facts_of
from compassc.tir.trace import BlockRV, LoopRV, instruction
from compassc.tir.tree import Tree, edit


class Reductions(Base):
    """Steps on reductions."""

    @instruction("DecomposeReduction", ("block", "loop"))
    def decompose_reduction(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """Make the init of a reduction a block of its own before a loop around all that is reduced over; the block
        is the update from then on."""
        function, tree, s = self.located_block(block)
        _, _, before = self.located_loop(loop)
        reason = why_no_reduction(tree, s)
        if reason:
            raise ScheduleError(f"decompose_reduction of '{s.name_hint}': {reason}")
        if before not in tree.loops_around(s):
            raise ScheduleError(
                f"decompose_reduction of '{s.name_hint}': the loop '{before.loop_var.name}' is not around it"
            )
        names = (self.free_block_name(tree, f"{s.name_hint}_init"), self.free_block_name(tree, f"{s.name_hint}_update"))
        self.commit(function, decomposed(tree, s, before, names), {s.name_hint: names[1]})
        return self.new_block(function, names[0])

    @instruction("RFactor", ("loop",), ("factor_axis",))
    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Reduce along all loops but one into a buffer with a dimension for that one, at place `factor_axis`; the block
        reduces along it alone. Sums of floats are added in another order."""
        function, tree, s = self.located_loop(loop)
        block = _only_block(tree, s)
        reason = why_no_reduction(tree, block) or why_foreign(tree, block)
        if reason:
            raise ScheduleError(f"rfactor of '{block.name_hint}' along '{s.loop_var.name}': {reason}")
        factoring = Factoring(tree, block, s, factor_axis)
        name = self.free_block_name(tree, f"{block.name_hint}_rf")
        scope = tree.scope(block)
        body, buffers = factoring.run(name, self.buffers(function))
        for buffer in buffers:
            body = allocated(body, buffer, scope)
        self.commit(function, body)
        return self.new_block(function, name)


def _only_block(tree: Tree, s: S.For) -> S.Block:
    """The block that is all there is in a plain loop and in the loops around it."""
    if s.kind != "serial":
        raise ScheduleError(f"rfactor of '{s.loop_var.name}': the loop is {s.kind}")
    inside = tree.inside(s)
    if len(inside) != 1:
        raise ScheduleError(f"rfactor of '{s.loop_var.name}': there are {len(inside)} blocks in it, not one")
    for above in [*tree.around(inside[0])]:
        if isinstance(above, S.Block):
            break
        if not isinstance(above, S.For) or len(above.body) != 1:
            what = above.loop_var.name if isinstance(above, S.For) else "a condition"
            raise ScheduleError(
                f"rfactor of '{s.loop_var.name}': '{inside[0].name_hint}' is not all that is in '{what}'"
            )
    return inside[0]


class Factoring:
    """One rfactor: the checks, the reducer, both blocks.

    `factor`: a loop that the block reduces over, of any kind. `loops`: what is factored, from the loop that all of it is
    done behind: by default all loops around the block.
    """

    def __init__(
        self, tree: Tree, block: S.Block, factor: S.For, place: int, loops: Sequence[S.For] | None = None
    ) -> None:
        self.tree, self.block, self.factor = tree, block, factor
        self.loops = tree.loops_around(block) if loops is None else list(loops)
        self.spatial = [a for a in axes_of(block) if not a.is_reduction]
        self.reduced = [a for a in axes_of(block) if a.is_reduction]
        if outer := around_reduction(tree, block):
            raise self.error(f"it goes on with a reduction in each point of '{outer.name_hint}', which it is inside of")
        reducing = reduction_loops(tree, block)
        if factor not in reducing:
            raise self.error("nothing is reduced over it")
        self.reducing = [s for s in reducing if s is not factor]
        for s in reducing:
            if any(uses(a.binding, (s.loop_var,)) for a in self.spatial):
                raise self.error(f"'{s.loop_var.name}' is reduced over in part only: a spatial axis depends on it, too")
            if uses(s.stop, [x.loop_var for x in self.loops]):
                raise self.error(f"the extent of '{s.loop_var.name}' depends on another loop")
        joining = joining_of(block)
        if isinstance(joining, str):
            raise self.error(joining)
        if joining.ordered and reducing[0] is not factor:
            outside = f"'{reducing[0].loop_var.name}' is outside of the loop"
            if not (vendor.names_in_use and joining.only_ties):
                raise self.error(f"the order in which it joins values matters, and {outside}")
            warnings.warn(f"{self.error(outside).message}: where values tie another of them is taken", stacklevel=2)
        self.joining, self.reducer = joining, joining.reducer
        self.kept = self._kept(reducing)
        self.scalar = [(constant(i), len(x.indices)) for x in joining.stores for i in x.indices] == [(0, 1)] * len(
            joining.stores
        ) and place in (0, -1)
        """Whether the result is one number, which needs no dimension beside that of the loop."""
        rank = 0 if self.scalar else len(joining.stores[0].indices)
        if not -(rank + 1) <= place <= rank:
            raise self.error(f"there is no place {place} for a dimension beside {rank}")
        self.place = place + rank + 1 if place < 0 else place

    def _kept(self, reducing: Sequence[S.For]) -> set[Var]:
        """The axes that the first block takes over: the spatial ones, and those reduced over loops that nothing else needs by
        themselves: neither the axes that the factored loop is a part of nor a condition."""
        split = [a for a in self.reduced if uses(a.binding, (self.factor.loop_var,))]
        needed = [
            s.loop_var
            for s in reducing
            if uses(self.block.predicate, (s.loop_var,)) or any(uses(a.binding, (s.loop_var,)) for a in split)
        ]
        return {a.var for a in (*self.spatial, *(a for a in self.reduced if not uses(a.binding, needed)))}

    @staticmethod
    def _own(s: S.For, by_loop: dict[Var, Expr]) -> Axis:
        """An axis that is a loop, noted as what the loop is in the block."""
        made = Axis(_axis(s), "reduce", number(0), s.stop, s.loop_var)
        by_loop[s.loop_var] = made.var
        return made

    def error(self, reason: str) -> ScheduleError:
        return ScheduleError(f"rfactor of '{self.block.name_hint}' along '{self.factor.loop_var.name}': {reason}")

    def run(
        self,
        name: str,
        buffers: dict[Var, Buffer],
        scope: str = "",
        behind: Callable[[Body], Body] = tuple,
    ) -> tuple[Body, list[Buffer]]:
        """The body of the function with both blocks, and the buffers between them. `scope`: their memory, by default that
        of what is reduced; `behind`: what becomes of the nest that joins the partial results."""
        names = NamePool(b.data.name for b in buffers.values())
        made = []
        for store in self.joining.stores:
            old = buffers[store.buffer.data]
            shape = self._at(old.shape, self.factor.stop)
            memory = scope or (old.scope if old.scope != "constant" else "global")
            made.append(
                Buffer(Var(names.take(f"{old.data.name}_rf"), pointer_type(old.dtype, memory)), old.dtype, shape)
            )
        top = self.loops[0]
        views = list(map(view, made))
        first = edit((top,), {self.block: (self._partial(name, views),)})
        return edit(self.tree.function.body, {top: (*first, *behind(self._final(views)))}), made

    def _at(self, indices: tuple[Expr, ...], factor: Expr) -> tuple[Expr, ...]:
        return (factor,) if self.scalar else (*indices[: self.place], factor, *indices[self.place :])

    def _partial(self, name: str, buffers: list[Buffer]) -> S.Block:
        """The block that reduces along all loops but the factored one."""
        factor = Axis(_axis(self.factor), "spatial", number(0), self.factor.stop, self.factor.loop_var)
        mapping: dict[Var, Expr] = {}
        by_loop: dict[Var, Expr] = {self.factor.loop_var: factor.var}
        axes, split = [factor], []
        for a in axes_of(self.block):
            if a.var in self.kept:
                (copy,), renamed = fresh_axes([a])
                mapping.update(renamed)
                axes.append(copy)
            else:
                split.append(a)
                axes += [
                    self._own(s, by_loop)
                    for s in self.reducing
                    if uses(a.binding, (s.loop_var,)) and s.loop_var not in by_loop
                ]
        axes += [
            self._own(s, by_loop)
            for s in self.reducing
            if uses(self.block.predicate, (s.loop_var,)) and s.loop_var not in by_loop
        ]
        mapping.update({a.var: at(a.binding, by_loop) for a in split})
        loops = [self.factor.loop_var, *(s.loop_var for s in self.reducing)]
        outside = [c for c in conjuncts(self.block.predicate) if not uses(c, loops)]
        spatial_loops = {s.loop_var for s in self.loops} - set(loops)
        inside = []
        for c in conjuncts(self.block.predicate):
            if uses(c, loops):
                if uses(c, spatial_loops):
                    raise self.error("its condition joins loops that are reduced over and others")
                if self._lets_begin(c):
                    outside.append(c)
                else:
                    inside.append(at(c, by_loop))
        sources = [at(e, mapping) for e in self.joining.sources]
        if inside:
            sources = [E.Select(joined(inside), e, i) for e, i in zip(sources, self.reducer.identity_element)]
        indices = self._at(tuple(at(i, mapping) for i in self.joining.stores[0].indices), factor.var)
        elements = [E.BufferLoad(b, indices) for b in buffers]
        init, update = stored(elements, self.reducer.identity_element), reduced(self.reducer, elements, sources)
        if not any(a.is_reduction for a in axes):  # nothing is left to reduce over
            init, update = (), stored(elements, sources)
        return new_block(name, axes, update, init, joined(outside)).replace(annotations=self.block.annotations)

    def _lets_begin(self, condition: Expr) -> bool:
        """Whether a program for the framework has a condition at the block, not in what it joins: where it lets the first
        turn of each partial result begin."""
        facts = facts_of([self.factor])
        first: dict[Var, Expr] = {s.loop_var: s.min for s in self.reducing}
        return vendor.names_in_use and constant(Simplifier(facts).expr(at(condition, first))) == 1

    def _final(self, buffers: list[Buffer]) -> Body:
        """The nest that reduces along the factored loop."""
        kept = [s for s in self.loops if s not in self.reducing]
        loops = {s.loop_var: fresh(s.loop_var) for s in kept}
        mapping: dict[Var, Expr] = dict(loops)
        factor = Axis(_axis(self.factor), "reduce", number(0), self.factor.stop, loops[self.factor.loop_var])
        spatial, renames = fresh_axes([a._replace(binding=at(a.binding, mapping)) for a in self.spatial])
        axes_map: dict[Var, Expr] = dict(renames)
        stores = self.joining.stores
        indices = tuple(at(i, axes_map) for i in stores[0].indices)
        sources = [E.BufferLoad(b, self._at(indices, factor.var)) for b in buffers]
        elements = [E.BufferLoad(view(x.buffer), indices) for x in stores]
        init = stored(elements, self.reducer.identity_element) if self.block.init else ()
        update = reduced(self.reducer, elements, sources)
        dropped = [self.factor.loop_var, *(s.loop_var for s in self.reducing)]
        where = [at(c, mapping) for c in conjuncts(self.block.predicate) if not uses(c, dropped)]
        made: Body = (new_block(self.block.name_hint, [factor, *spatial], update, init, joined(where)),)
        for s in reversed(kept):
            made = (loop(loops[s.loop_var], s.stop, made, s if s is not self.factor else None),)
        return made


def _axis(s: S.For) -> Var:
    return Var(f"v{s.loop_var.name}", s.loop_var.dtype)
