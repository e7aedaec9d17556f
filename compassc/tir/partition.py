"""Steps that give parts of the turns of a loop a life of their own: ranges as loops, elements that are kept from turn to
turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compass_core.namedtuple import NamedTuple
from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Binary, Buffer, Expr, Var
from compassc.ir.names import NamePool
from compassc.ir.stmts import Body, Stmt
from compassc.ir.visit import all_exprs, substitute_body, walk_stmts
from compassc.te.errors import ScheduleError
from compassc.tir.addresses import check_no_address
from compassc.tir.base import Base
from compassc.tir.blocks import axes_of, constant, fresh, loop_axes, new_block, number, renamed, uses
from compassc.tir.buffer_rewriting import Replaced
from compassc.tir.caching import Caching
from compassc.tir.checks import why_foreign, written
from compassc.tir.decompose import kinds_over
from compassc.tir.queries import consumers_of, is_output
from compassc.tir.region_cover import data_of, facts_of, plain_index, reach_of, turn_writes
from compassc.tir.trace import BlockRV, LoopRV, instruction
from compassc.tir.tree import Tree, direct_blocks, edit


class Partitioning(Caching):
    """Steps on parts of loops."""

    @instruction("LoopPartition", ("loop", "*factors"), ("preserve_unit_iters",))
    def loop_partition(self, loop: LoopRV, factors: Sequence[object], preserve_unit_iters: bool = True) -> list[LoopRV]:
        """Take the turns of a loop in consecutive parts, `factors` turns in each, in blocks of their own; one factor may
        be None, which is as many as are left. What is left after the last one is a part, too."""
        function, tree, s = self.located_loop(loop)
        sizes = _parts(s, [self.number(f) for f in factors])
        inside = list(direct_blocks(s.body))
        if not inside:
            raise ScheduleError(f"loop_partition of '{s.loop_var.name}': there is no block in it")
        for x in walk_stmts(s.body):
            if isinstance(x, S.Block) and x.init and {"spatial", "reduce"} <= kinds_over(tree, x, s):
                raise ScheduleError(
                    f"loop_partition of '{s.loop_var.name}': '{x.name_hint}' reduces over it in part only, so that later parts begin "
                    "reductions, too",
                    "decompose the reduction before its loops are fused",
                )
        name = NamePool(tree.blocks).take
        stem = f"{inside[0].name_hint}_{s.loop_var.name}"
        common = name(f"{stem}_common")
        parts: list[Stmt] = []
        made: list[Var] = []
        begin = constant(s.min) or 0
        for i, size in enumerate(sizes):
            var = fresh(s.loop_var, f"{s.loop_var.name}{i}")
            body = _part(tree, s, var, i, name)
            turns = s.replace(
                loop_var=var, min=number(begin, s.loop_var), stop=number(begin + size, s.loop_var), body=body
            )
            parts.append(new_block(name(f"{stem}{i}_partition"), (), (turns,)))
            made.append(var)
            begin += size
        used = [x for x in tree.loops_around(s) if any(uses(e, (x.loop_var,)) for e in all_exprs(tuple(parts)))]
        axes, mapping = loop_axes(used, inside)
        whole = new_block(common, axes, substitute_body(tuple(parts), dict(mapping)))
        self.commit(function, edit(tree.function.body, {s: (whole,)}))
        return [self.new_loop(function, v) for v in made]

    @instruction("RollingBuffer", ("block",), ("write_buffer_index",))
    def rolling_buffer(self, block: BlockRV, write_buffer_index: int) -> None:
        """Keep what a block wrote in turns before of the loops that it is computed at: the buffer is circular along the
        dimension of the outermost loop from turn to turn of which its parts overlap, and only what is new is computed."""
        function, tree, s = self.located_block(block)
        buffer = self._given("rolling_buffer", s, "writes", "write_buffer_index", write_buffer_index)
        check_no_address(f"rolling_buffer of '{s.name_hint}'", tree, buffer.data)
        rolling = _Rolling(self, function, tree, s, buffer)
        self.commit(function, rolling.body())


def _parts(s: S.For, given: list[Any]) -> list[int]:
    """The numbers of turns of the parts of a loop."""
    step = f"loop_partition of '{s.loop_var.name}'"
    first, last = constant(s.min), constant(s.stop)
    if first is None or last is None or constant(s.step) != 1:
        raise ScheduleError(f"{step}: its range is not constant")
    if s.kind != "serial":
        raise ScheduleError(f"{step}: the loop is {s.kind}", "take this step before")
    if s.annotations:
        raise ScheduleError(f"{step}: the loop has the annotation '{s.annotations[0][0]}'")
    open_ = [i for i, f in enumerate(given) if f is None or (isinstance(f, int) and f == -1)]
    if len(open_) > 1 or not given:
        raise ScheduleError(f"{step}: {len(open_)} of {len(given)} factors are left open, at most one may be")
    known = 0
    for i, f in enumerate(given):
        if i in open_:
            continue
        if isinstance(f, bool) or not isinstance(f, int):
            raise ExpressionTypeError(f"loop_partition: factor {i} is an int, got {type(f).__name__}")
        if f <= 0:
            raise ScheduleError(f"{step}: factor {i} is {f}, not positive")
        known += f
    if known >= last - first:
        raise ScheduleError(f"{step}: the factors add up to {known}, its extent is {last - first}: nothing is left")
    sizes = [last - first - known if i in open_ else int(f) for i, f in enumerate(given)]
    return sizes if open_ else [*sizes, last - first - known]


def _part(tree: Tree, s: S.For, var: Var, place: int, name: Any) -> Body:
    """The body of a loop for one of its parts: with variables and blocks of its own. A reduction over the loop begins in
    the first part alone."""

    def change(body: Body) -> Body:
        made: list[Stmt] = []
        for x in body:
            new = x.map(lambda e: e, change)
            if isinstance(x, S.Block) and isinstance(new, S.Block):
                begun = place > 0 and x.init and "reduce" in kinds_over(tree, x, s)
                new = new.replace(
                    name_hint=x.name_hint if place == 0 else name(x.name_hint), init=() if begun else new.init
                )
            made.append(new)
        return tuple(made)

    memory = [x.buffer.data for x in walk_stmts(s.body) if isinstance(x, S.Alloc)] if place else []
    own = {v: fresh(v, f"{v.name}_{place}") for v in memory}
    return renamed(change(s.body), {s.loop_var: var, **own})


class _Overlap(NamedTuple):
    """A dimension in which the parts of two turns of a loop overlap: `extent` elements are alive in it, each turn goes on by
    `stride`, and a point of the block is the one of them that `inner` says, by its axis `axis`."""

    dim: int
    axis: Var
    loop: S.For
    extent: int
    stride: int
    inner: Expr


class _Rolling:
    """One rolling buffer: the checks, the dimensions with overlaps, of which one is circular, the new body."""

    def __init__(self, schedule: Base, function: str, tree: Tree, block: S.Block, buffer: Buffer) -> None:
        self.function, self.tree, self.block, self.buffer = function, tree, block, buffer
        self.consumers = consumers_of(tree, block)
        if is_output(schedule, function, tree, block):
            raise self.error("it is an output")
        others = [b.name_hint for b in tree.inside(tree.scope(block)) if b is not block and buffer.data in written(b)]
        if others:
            raise self.error(f"'{others[0]}' writes the buffer, too")
        if not self.consumers:
            raise self.error("nobody reads what it writes")
        if any(constant(e) is None for e in buffer.shape):
            raise self.error("the buffer has no constant shape")
        self.loop = self._meeting()
        self.fixed = [*tree.loops_around(self.loop, all_of_them=True), self.loop]
        turns = [x.loop_var for x in self.fixed]
        if summed := [a.var.name for a in axes_of(block) if a.is_reduction and uses(a.binding, turns)]:
            raise self.error(f"along '{summed[0]}' its sums go on from turn to turn of '{self.loop.loop_var.name}'")
        self.facts = facts_of(self.fixed)
        self.simplify = Simplifier(self.facts).expr
        if foreign := why_foreign(tree, block):
            raise self.error(foreign)
        blocks = [block, *self.consumers]
        if not turn_writes(tree, blocks, buffer.data, self.fixed, buffer.shape):
            raise self.error("a turn of the loop does not surely write all that it reads")
        self.overlaps = self._overlaps()
        self.rolled = self.overlaps[0]

    def error(self, reason: str) -> ScheduleError:
        return ScheduleError(f"rolling_buffer of '{self.buffer.data.name}' in '{self.block.name_hint}': {reason}")

    def _meeting(self) -> S.For:
        """The loop that the block is computed at: the innermost one around it and all of its readers."""
        chains = [self.tree.loops_around(b) for b in (self.block, *self.consumers)]
        found: S.For | None = None
        for level in zip(*chains):
            if any(x is not level[0] for x in level):
                break
            found = level[0]
        if found is None:
            raise self.error("it is not computed in a loop together with what reads it")
        for above in self.tree.around(self.block):
            if not isinstance(above, (S.For, S.Block)):
                raise self.error("it stands in a condition")
        return found

    def _overlaps(self) -> list[_Overlap]:
        """The dimensions with overlaps, that of the outermost loop first, which is circular."""
        region = self._written()
        reach = reach_of(self.tree, self.block, self.fixed)
        found: list[_Overlap] = []
        for dim, index in enumerate(region.starts):
            plain = plain_index(index)
            axis = next((a for a in axes_of(self.block) if plain is not None and a.var is plain[0]), None)
            form = None if axis is None else self._split(axis.binding, set(reach))
            if axis is None or form is None:
                continue
            loop, stride, inner, low, high = form
            if 0 < stride < high - low + 1:
                inner = self.simplify(Binary("sub", inner, number(low)))
                found.append(_Overlap(dim, axis.var, loop, high - low + 1, stride, inner))
        found.sort(key=lambda o: self.fixed.index(o.loop))
        while found and found[0].extent >= (constant(self.buffer.shape[found[0].dim]) or 0):
            found.pop(0)
        if not found:
            raise self.error(f"no dimension has parts that overlap from turn to turn of '{self.loop.loop_var.name}'")
        for o in found:
            if o.loop.kind != "serial" or constant(o.loop.min) != 0:
                raise self.error(f"the loop '{o.loop.loop_var.name}' is {o.loop.kind}, not a plain one from 0 on")
            for a in axes_of(self.block):
                if a.var is not o.axis and uses(a.binding, (o.loop.loop_var,)):
                    raise self.error(f"the axis '{a.var.name}' goes on with '{o.loop.loop_var.name}', too")
        return found

    def _written(self) -> E.BufferRegion:
        """The region of the buffer that the block writes."""
        return next(r for r in self.block.writes if data_of(r) is self.buffer.data)

    def _split(self, binding: Expr, inside: set[Var]) -> tuple[S.For, int, Expr, int, int] | None:
        """`binding` as stride * loop + what the loops inside make of it (with its least and largest value) + the rest: the
        innermost loop that it goes on with. None where it goes on with none, or is no sum."""
        form = self._facts_inside().exact(binding)
        inner = number(0, binding)
        made: Expr = inner
        strides: dict[Var, int] = {}
        for key, factor in form.terms.items():
            atom = self._known.atoms[key]
            if not isinstance(atom, Var):
                return None
            if atom in inside:
                made = Binary("add", made, Binary("mul", atom, number(factor, atom)))
            else:
                strides[atom] = factor
        loop = next((x for x in reversed(self.fixed) if x.loop_var in strides), None)
        if loop is None:
            return None
        low, high = self._known.range_of(made)
        return loop, strides[loop.loop_var], made, low, high

    def _facts_inside(self) -> Any:
        self._known = facts_of(self.tree.loops_around(self.block, all_of_them=True))
        return self._known

    def body(self) -> Body:
        """The body of the function with the buffer going round."""
        fresh_ones = [
            Binary(
                "or",
                Binary("lt", o.loop.loop_var, number(1, o.loop.loop_var)),
                Binary("ge", o.inner, number(o.extent - o.stride, o.inner)),
            )
            for o in self.overlaps
        ]
        where = joined([*conjuncts(self.block.predicate), *fresh_ones])
        rolled = self.rolled
        shape = tuple(number(rolled.extent) if d == rolled.dim else e for d, e in enumerate(self.buffer.shape))
        kinds = tuple("opaque" if a.var is rolled.axis else a.kind for a in axes_of(self.block))
        new = self.block.replace(predicate=where, kinds=kinds)
        body = edit(self.tree.function.body, {self.block: (new,)})
        turned = Buffer(self.buffer.data, self.buffer.dtype, shape)
        return Replaced(self.buffer.data, turned, self._turned).body(body)

    def _turned(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where an element is in the circular buffer."""
        dim = self.rolled.dim
        at = indices[dim]
        return (*indices[:dim], Binary("floormod", at, number(self.rolled.extent, at)), *indices[dim + 1 :])
