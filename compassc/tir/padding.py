"""Buffers that get elements which no index of old becomes: who writes them, and what they hold."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from compassc.analysis.arith import Arith
from compassc.analysis.conditions import conjuncts
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import VOID
from compassc.ir.exprs import Binary, Buffer, Expr, Var
from compassc.ir.operators import as_expr, immediate, inverted
from compassc.ir.stmts import Body, Stmt
from compassc.ir.visit import Rewriter, rewrites, substitute, walk_exprs, walk_stmts
from compassc.te.errors import ScheduleError
from compassc.tir.blocks import Axis, axes_of, constant, loop, new_block, number, uses, view, with_axes
from compassc.tir.caching import insert, loops_of
from compassc.tir.index_map import IndexMap
from compassc.tir.tree import Tree, edit

STEP = "transform_layout"


class Padded:
    """`body`: that of a function, with what fills the elements of `new` that nothing of `old` becomes. Blocks that write all
    of the buffer, element by element, go over the new ones; else a block of its own fills them after the last that writes. Of
    a buffer that is only read it is assumed, as the caller fills it.

    `chosen` is the map, `pad` the value: a number, an expression, or a function of the new indices. `new` is a buffer beside
    the old one until the other accesses are mapped, too.
    """

    def __init__(
        self, tree: Tree, scope: S.Block | None, chosen: IndexMap, old: Buffer, new: Buffer, pad: object
    ) -> None:
        self.tree, self.chosen, self.old, self.new, self.pad = tree, chosen, old, new, pad
        self.back, self.general = chosen.non_surjective_inverse([e for e in old.shape])
        writers = [b for b in tree.blocks.values() if not tree.inside(b) and self._stores(b.body)]
        if scope is not None or any(tree.scope(b) is not None for b in writers):
            raise ScheduleError(f"{STEP} of '{old.data.name}': padding is made on the outermost level only")
        self.value([number(0) for _ in new.shape])
        body = tree.function.body
        if not writers:
            place = next(i for i, x in enumerate(body) if not isinstance(x, (S.Alloc, S.DeclBuffer, S.AllocConst)))
            self.body = insert(body, None, place, self._assumed())
        elif all(map(self._is_plain, writers)):
            self.body = edit(body, {self._nest(b)[0]: self._over_new(b) for b in writers})
        else:
            last = max(tree.position(b, None) for b in writers)
            self.body = insert(body, None, last + 1, self._filled())

    def value(self, at: Sequence[Expr]) -> Expr:
        """What an element of the padding holds. ScheduleError for a value of another type, or of other memory."""
        pad, name, kind = self.pad, self.old.data.name, self.new.dtype
        if isinstance(pad, IndexMap):
            pad = pad.map_indices(at)[0]
        elif callable(pad):
            pad = pad(*at)
        if isinstance(pad, float) and kind.is_integer and not pad.is_integer():
            raise ScheduleError(f"{STEP} of '{name}': pad_value is {pad}, which {kind} does not hold")
        value = immediate(pad, kind) if isinstance(pad, (int, float)) else as_expr(pad)
        if value.dtype is not kind or any(isinstance(x, E.BufferLoad) for x in walk_exprs(value)):
            raise ScheduleError(f"{STEP} of '{name}': pad_value is a {value.dtype}, or reads memory")
        return value

    def condition(self, at: Sequence[Expr]) -> Expr:
        """Where an element is padding."""
        return substitute(self.general, dict(zip(self.back.params, at)))

    # ------------------------------------------------------------------------------------------------------------ blocks

    def _stores(self, body: Body) -> list[S.BufferStore]:
        return [s for s in walk_stmts(body) if isinstance(s, S.BufferStore) and s.buffer.data is self.old.data]

    def _run(self, block: S.Block) -> int:
        """The place among a block's axes from which on they are the indices that it writes; -1 where they are not."""
        indices = [s.indices for s in self._stores((*block.init, *block.body))]
        first = next((i for i, v in enumerate(block.vars) if v is indices[0][0]), -1)
        run = block.vars[first : first + len(self.old.shape)] if first >= 0 else ()
        return first if all(len(run) == len(i) and all(a is b for a, b in zip(run, i)) for i in indices) else -1

    def _nest(self, block: S.Block) -> list[S.For]:
        """The loops that the axes are which a block writes by, outermost first."""
        first = self._run(block)
        bindings = block.iter_values[first : first + len(self.old.shape)]
        found = [self.tree.loops[b] for b in bindings if isinstance(b, Var) and b in self.tree.loops]
        return found if len(found) == len(bindings) and first >= 0 else []

    def _is_plain(self, block: S.Block) -> bool:
        """Whether a block writes each element of the buffer, by axes that are loops of their own, and nothing else."""
        nest = self._nest(block)
        if not nest or conjuncts(block.predicate) or len(self.tree.loops_around(block)) < len(nest):
            return False
        chain = [*self.tree.loops_around(block), block]
        place = chain.index(nest[0])
        if chain[place : place + len(nest)] != nest or any(x.body != (y,) for x, y in itertools.pairwise(chain)):  # type: ignore[attr-defined]
            return False
        axes = axes_of(block)[self._run(block) :]
        whole = all(
            a.kind == "spatial"
            and constant(a.start) == constant(x.min) == 0
            and constant(a.extent) == constant(x.stop) == constant(e)
            for a, x, e in zip(axes, nest, self.old.shape)
        )
        others = [x for x in walk_stmts((*block.init, *block.body)) if not isinstance(x, S.BufferStore)]
        stores = self._stores((*block.init, *block.body))
        own = len(stores) == sum(1 for _ in walk_stmts((*block.init, *block.body))) and all(
            s.mask is None for s in stores
        )
        loops = [x.loop_var for x in nest]
        free = [b for b in block.iter_values if b not in loops]
        return whole and not others and own and not any(uses(b, (v,)) for b in free for v in loops)

    def _over_new(self, block: S.Block) -> Body:
        """The loops of a block over the elements of the new buffer."""
        nest, first = self._nest(block), self._run(block)
        made = self._axes()
        points = [a.var for a in made]
        facts = Arith()
        for a in made:
            facts.bind_loop(a.var, a.start, a.extent, number(1))
        simplify = Simplifier(facts).expr
        old = block.vars[first : first + len(nest)]
        change = _OverNew(self, old, [simplify(e) for e in self.back.map_indices(points)], points)
        axes = axes_of(block)
        changed = with_axes(
            block, [*axes[:first], *made, *axes[first + len(nest) :]], change.body(block.body), change.body(block.init)
        )
        body: Body = edit(nest[-1].body, {block: (changed,)})
        for a in reversed(made):
            assert isinstance(a.binding, Var)
            body = (loop(a.binding, a.extent, body),)
        return body

    def _axes(self) -> list[Axis]:
        names = [f"axis{i}" for i in range(len(self.new.shape))]
        loops = [Var(n, number(0).dtype) for n in names]
        rows = zip(loops, self.new.shape)
        return [Axis(Var(f"v_{v.name}", v.dtype), "spatial", number(0), e, v) for v, e in rows]

    def _filled(self) -> Body:
        """Loops over the padding."""
        axes = self._axes()
        at = [a.var for a in axes]
        store = S.BufferStore(view(self.new), tuple(at), self.value(at), None)
        where = self.condition([a.binding for a in axes])
        return loops_of(new_block(self._name("padding"), axes, (store,), where=where))

    def _assumed(self) -> Body:
        """Loops that say what the padding holds."""
        axes = self._axes()
        at = [a.var for a in axes]
        holds = Binary("eq", E.BufferLoad(view(self.new), tuple(at)), self.value(at))
        claim = E.Call("assume", (Binary("or", inverted(self.condition(at)), holds),), VOID)
        return loops_of(new_block(self._name("assumptions"), axes, (S.Evaluate(claim),)))

    def _name(self, what: str) -> str:
        return self.tree.free_block_name(f"buffer_{self.old.data.name}_{what}")


class _OverNew(Rewriter):
    """What a block does for an element of the old buffer as what it does for one of the new, or the padding."""

    def __init__(self, padded: Padded, axes: Sequence[Var], at: Sequence[Expr], points: Sequence[Expr]) -> None:
        super().__init__()
        self.padded, self.axes, self.points = padded, axes, tuple(points)
        self.mapping = dict(zip(axes, at))

    @rewrites(Var)
    def rewrite_var(self, e: Var) -> Expr:
        return self.mapping.get(e, e)

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        own = e.buffer.data is self.padded.old.data and all(i is a for i, a in zip(e.indices, self.axes, strict=True))
        if own and e.mask is None:
            return E.BufferLoad(view(self.padded.new), self.points, None)
        return self.default(e)

    @rewrites(S.BufferStore)
    def rewrite_store(self, s: S.BufferStore) -> Stmt:
        value = E.Select(self.padded.condition(self.points), self.padded.value(self.points), self.expr(s.value))
        return S.BufferStore(view(self.padded.new), self.points, value, None, span=s.span)
