"""Steps on layouts: how a buffer lies in memory, how the points of a block are numbered; padding."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.analysis.arith import Arith
from compassc.analysis.conditions import joined
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.accesses import Elsewhere, always
from compassc.ir.dtypes import BOOL, pointer_type
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Binary, Buffer, Expr, FloatImm, IntImm, Var
from compassc.ir.operators import immediate
from compassc.ir.stmts import Body
from compassc.ir.visit import substitute_body, walk_exprs
from compassc.te.errors import ScheduleError
from compassc.tir.addresses import check_no_address
from compassc.tir.annotations import Notes
from compassc.tir.blocks import Axis, add, at, axes_of, constant, loop, new_block, number, uses, view, with_axes
from compassc.tir.buffer_rewriting import Replaced
from compassc.tir.caching import allocated, loops_of, rebuffered
from compassc.tir.checks import accumulates, has_effects, read, single_store, why_foreign, why_unordered, written
from compassc.tir.index_map import as_index_map
from compassc.tir.loop_domains import cut_to
from compassc.tir.padding import Padded
from compassc.tir.placement import unconditional
from compassc.tir.region_cover import always_stores, facts_of
from compassc.tir.trace import BlockRV, LoopRV, instruction
from compassc.tir.tree import Tree, edit


class Layouts(Notes):
    """Steps on layouts and padding."""

    @instruction("TransformLayout", ("block",), ("buffer", "index_map", "pad_value", "assume_injective_transform"))
    def transform_layout(
        self,
        block: BlockRV,
        buffer: object,
        index_map: object,
        pad_value: object = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """Have a buffer lie otherwise: its element at `i...` is at `index_map(i...)`. What no index becomes holds
        `pad_value`."""
        step = "transform_layout"
        function, tree, s = self.located_block(block)
        side, found = self.given_buffer(step, s, buffer)
        check_no_address(f"{step} of '{found.data.name}'", tree, found.data)
        chosen = as_index_map(index_map, len(found.shape), separators=True)
        if len(chosen.params) != len(found.shape):
            raise ScheduleError(
                f"{step} of '{found.data.name}': it has {len(found.shape)} dimensions, the map takes {len(chosen.params)} indices"
            )
        padding: Expr = IntImm(BOOL, 0)
        try:
            shape = tuple(chosen.map_shape([e for e in found.shape]))
            if not assume_injective_transform:
                _, padding = chosen.non_surjective_inverse([e for e in found.shape])
        except ExpressionError as error:
            raise ScheduleError(f"{step} of '{found.data.name}': {error.message}") from None
        padded = not (isinstance(padding, IntImm) and not padding.value)
        if padded and pad_value is None:
            raise ScheduleError(
                f"{step} of '{found.data.name}': no index becomes an element where {padding}; say what it holds",
                "give pad_value",
            )
        new = Buffer(found.data, found.dtype, shape)
        body, beside = tree.function.body, new.replace(data=Var(found.data.name, found.data.dtype))
        if callable(pad_value):
            pad_value = as_index_map(pad_value, len(shape))
        if padded:
            body = Padded(tree, tree.scope(s), chosen, found, beside, pad_value).body
        simplify = Simplifier(Arith()).expr
        body = Replaced(found.data, new, lambda at: tuple(map(simplify, chosen.map_indices(at)))).body(body)
        if padded:
            body = rebuffered({beside.data: new}).body(body)
        places = [r.buffer.data for r in getattr(s, side + "s")]
        noted = {"buffer": [side, places.index(found.data)], "index_map": chosen, "pad_value": pad_value}
        self.commit(function, body)
        if chosen.separators:
            self.set_axis_separator(block, (side, places.index(found.data)), chosen.separators)
        self.noted = noted

    @instruction("TransformBlockLayout", ("block",), ("index_map",))
    def transform_block_layout(self, block: BlockRV, index_map: object) -> None:
        """Number the points of a block otherwise: its axes become `index_map(axes...)`, with a loop for each."""
        step = "transform_block_layout"
        function, tree, s = self.located_block(block)
        axes = axes_of(s)
        chosen = as_index_map(index_map, len(axes))
        if len(chosen.params) != len(axes):
            raise ScheduleError(
                f"{step} of '{s.name_hint}': it has {len(axes)} axes, the map takes {len(chosen.params)}"
            )
        reason = why_unordered(tree, s)
        loops = tree.loops_around(s)
        if reason or not unconditional(s):
            raise ScheduleError(f"{step} of '{s.name_hint}': {reason or 'it is done under a condition'}")
        _check_own_loops(step, s, axes, loops)
        if any(constant(a.start) != 0 for a in axes) or any(x.kind != "serial" for x in loops):
            raise ScheduleError(f"{step} of '{s.name_hint}': its loops are not plain ones from 0 on")
        extents = [a.extent for a in axes]
        try:
            inverse, shape = chosen.inverse(extents), chosen.map_shape(extents)
        except ExpressionError as error:
            raise ScheduleError(f"{step} of '{s.name_hint}': {error.message}") from None
        made: list[Axis] = []
        for i, (e, extent) in enumerate(zip(chosen.exprs, shape)):
            kinds = {a.kind for p, a in zip(chosen.params, axes) if uses(e, (p,))} or {"spatial"}
            if len(kinds) > 1:
                raise ScheduleError(f"{step} of '{s.name_hint}': axis {i} would be spatial and reduced over")
            made.append(
                Axis(Var(f"v{i}", number(0).dtype), kinds.pop(), number(0), extent, Var(f"ax{i}", number(0).dtype))
            )
        mapping: dict[Var, Expr] = {a.var: e for a, e in zip(axes, inverse.map_indices([m.var for m in made]))}
        facts = Arith()
        for m in made:
            facts.bind_loop(m.var, m.start, m.extent, number(1))
        simplify = Simplifier(facts).expr
        mapping = {v: simplify(e) for v, e in mapping.items()}
        new = with_axes(s, made, substitute_body(s.body, mapping), substitute_body(s.init, mapping))
        self.noted = {"index_map": chosen}
        self.commit(function, edit(tree.function.body, {loops[0] if loops else s: loops_of(new)}))

    # --------------------------------------------------------------------------------------------------------- padding

    @instruction("DecomposePadding", ("block", "loop"))
    def decompose_padding(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """Fill a padded tensor with its constant before a loop, and copy only what is inside of the padding."""
        step = "decompose_padding"
        function, tree, s = self.located_block(block)
        _, _, before = self.located_loop(loop)
        loops = tree.loops_around(s)
        if before not in loops:
            raise ScheduleError(f"{step} of '{s.name_hint}': the loop '{before.loop_var.name}' is not around it")
        select, store = _padding(step, tree, s)
        inner = loops[loops.index(before) :]
        for x in inner:
            if len(x.body) != 1 or not isinstance(x.body[0], (S.For, S.Block)):
                raise ScheduleError(f"{step} of '{s.name_hint}': it is not all that is in '{x.loop_var.name}'")
        fresh_loops = {x.loop_var: Var(x.loop_var.name, x.loop_var.dtype) for x in inner}
        mapping: dict[Var, Expr] = dict(fresh_loops)
        axes = [a._replace(var=Var(a.var.name, a.var.dtype), binding=at(a.binding, mapping)) for a in axes_of(s)]
        points: dict[Var, Expr] = {a.var: n.var for a, n in zip(axes_of(s), axes)}
        name = self.free_block_name(tree, f"{s.name_hint}_pad_const")
        fill = S.BufferStore(store.buffer, tuple(at(i, points) for i in store.indices), select.false_value, None)
        nest: Body = (new_block(name, axes, (fill,), where=at(s.predicate, mapping)),)
        for x in reversed(inner):
            nest = (_loop_like(fresh_loops[x.loop_var], x, nest),)
        inside = S.BufferStore(store.buffer, store.indices, select.true_value, None, span=store.span)
        copy = cut_to(s, (before,), inner, select.condition, inside)
        if copy is None:
            bound: dict[Var, Expr] = dict(zip(s.vars, s.iter_values))
            where = joined([c for c in (s.predicate, at(select.condition, bound)) if not _is_true(c)])
            copy = edit((before,), {s: (s.replace(predicate=where, body=(inside,)),)})
        self.commit(function, edit(tree.function.body, {before: (*nest, *copy)}))
        return self.new_block(function, name)

    def can_decompose_padding(self, block: BlockRV, loop: LoopRV) -> bool:
        """Whether `decompose_padding` is legal; nothing changes."""
        saved = self.snapshot()
        self.depth += 1
        try:
            self.decompose_padding(block, loop)
        except ScheduleError:
            return False
        finally:
            self.depth -= 1
            self.restore(saved)
        return True

    @instruction("PadEinsum", ("block",), ("padding",))
    def pad_einsum(self, block: BlockRV, padding: Sequence[int]) -> None:
        """Round the extent of each axis of a block up to a multiple of its entry: what it reads is copied with zeros
        outside, what it writes is copied back."""
        step = "pad_einsum"
        function, tree, s = self.located_block(block)
        axes = axes_of(s)
        loops = tree.loops_around(s)
        if len(padding) != len(axes) or any(isinstance(p, bool) or not isinstance(p, int) or p <= 0 for p in padding):
            raise ScheduleError(f"{step} of '{s.name_hint}': give a positive number for each of its {len(axes)} axes")
        _check_own_loops(step, s, axes, loops)
        reason = why_unordered(tree, s) or why_foreign(tree, s) or ("it is in another block" if tree.scope(s) else "")
        if reason or not unconditional(s):
            raise ScheduleError(f"{step} of '{s.name_hint}': {reason or 'it is done under a condition'}")
        new_extents: dict[Var, Expr] = {}
        for a, p in zip(axes, padding):
            if constant(a.start) != 0:
                raise ScheduleError(f"{step} of '{s.name_hint}': the range of '{a.var.name}' does not begin at 0")
            new_extents[a.var] = _rounded_up(a.extent, p)
        extents = {a.var: a.extent for a in axes}
        longer = {v for v, e in extents.items() if new_extents[v] is not e}
        self._check_sum(step, s, [a.var for a in axes if a.is_reduction and a.var in longer])
        nests_before: Body = ()
        nests_after: Body = ()
        body_map: dict[Var, tuple[Buffer, tuple[Expr, ...]]] = {}
        made: list[Buffer] = []
        for data, indices, writes in _plain_accesses(step, s):
            old = self.buffers(function)[data]
            if not longer & {*indices}:
                continue
            size = tuple(new_extents[i] for i in indices)
            pad = Buffer(Var(f"{data.name}_pad", pointer_type(old.dtype, "global")), old.dtype, size)
            made.append(pad)
            body_map[data] = view(pad), tuple(indices)
            name = self.free_block_name(tree, f"{data.name}_pad")
            if writes:
                nests_after += loops_of(_copy_block(name, old, pad, tuple(extents[i] for i in indices)))
            else:
                nests_before += loops_of(_fill_block(name, pad, old, [extents[i] for i in indices]))
        scope_loops = {x: new_extents[a.var] for x, a in zip(loops, axes)}
        change = Elsewhere({data: (buffer, always(at)) for data, (buffer, at) in body_map.items()}, regions=False)
        block_made = with_axes(
            s, [a._replace(extent=new_extents[a.var]) for a in axes], change.body(s.body), change.body(s.init)
        )
        nest: Body = (block_made,)
        for x in reversed(loops):
            nest = (x.replace(stop=scope_loops[x], body=nest),)
        body = edit(tree.function.body, {loops[0]: (*nests_before, *nest, *nests_after)})
        for buffer in made:
            body = allocated(body, buffer, None)
        self.commit(function, body)

    def _check_sum(self, step: str, s: S.Block, padded: Sequence[Var]) -> None:
        """ScheduleError unless zeros outside change nothing: a product summed up, or a value of one point. `padded`: axes
        that are summed over further."""
        for x in s.body:
            for e in (y for root in x.exprs() for y in walk_exprs(root)):
                if isinstance(e, Binary) and e.op in ("div", "mod", "floordiv", "floormod") and constant(e.b) is None:
                    raise ScheduleError(f"{step} of '{s.name_hint}': it divides, and outside there are zeros")
        if not s.init:
            if both := read(s) & written(s):
                name = min(v.name for v in both)
                raise ScheduleError(f"{step} of '{s.name_hint}': it updates '{name}', whose init is in another block")
            for data in written(s):
                if not always_stores(s.body, data):
                    raise ScheduleError(
                        f"{step} of '{s.name_hint}': it does not write '{data.name}' at each of its points"
                    )
            return
        store = single_store(s)
        value = store.value if store is not None else None
        ok = isinstance(value, Binary) and value.op == "add" and accumulates(s) and _zero_stays(value.b)
        if not ok:
            raise ScheduleError(f"{step} of '{s.name_hint}': it is no sum of products, zeros outside would change it")
        assert isinstance(value, Binary)
        for axis in padded:
            if not _zero_stays(value.b, axis):
                raise ScheduleError(
                    f"{step} of '{s.name_hint}': along '{axis.name}' what is summed up does not end, further turns would add it "
                    "again; give it the padding 1"
                )


def _check_own_loops(step: str, s: S.Block, axes: Sequence[Axis], loops: Sequence[S.For]) -> None:
    """ScheduleError unless each axis of a block is one of the loops around it, which hold nothing else and give all values
    of the axis: as many turns of a step would write what other blocks keep."""
    chain = [*loops[1:], s]
    if [a.binding for a in axes] != [x.loop_var for x in loops] or any(x.body != (y,) for x, y in zip(loops, chain)):
        raise ScheduleError(f"{step} of '{s.name_hint}': its axes are not bound to the loops around it, each to one")
    same = facts_of([]).interner.same
    for a, x in zip(axes, loops):
        if not same(x.min, a.start) or not same(x.stop, add(a.start, a.extent)):
            raise ScheduleError(
                f"{step} of '{s.name_hint}': the loop '{x.loop_var.name}' does not give all values of its axis '{a.var.name}'"
            )


def _zero_stays(e: Expr, along: Var | None = None) -> bool:
    """Whether an expression is 0 where everything that it reads is 0, or all that it reads at places of an axis."""
    if isinstance(e, E.BufferLoad):
        return along is None or any(i is along for i in e.indices)
    if isinstance(e, E.Cast):
        return _zero_stays(e.value, along)
    if isinstance(e, Binary) and e.op == "mul":
        return _zero_stays(e.a, along) or _zero_stays(e.b, along)
    return isinstance(e, Binary) and e.op in ("add", "sub") and _zero_stays(e.a, along) and _zero_stays(e.b, along)


def _plain_accesses(step: str, s: S.Block) -> list[tuple[Var, tuple[Var, ...], bool]]:
    """The buffers that a block accesses, with the axes that are their indices, and whether they are written."""
    found: dict[Var, tuple[tuple[Expr, ...], bool]] = {}
    own_writes = written(s)
    for region in (*s.reads, *s.writes):
        data = region.buffer.data
        own = set(s.vars)
        plain = all(isinstance(i, Var) and i in own for i in region.starts) and all(
            constant(e) == 1 for e in region.extents
        )
        if not plain or (data in found and found[data][0] != region.starts):
            raise ScheduleError(f"{step} of '{s.name_hint}': '{data.name}' is not accessed at plain axes")
        found[data] = region.starts, data in own_writes
    return [(d, i, w) for d, (i, w) in found.items()]  # type: ignore[misc]


def _copy_block(name: str, to: Buffer, source: Buffer, shape: tuple[Expr, ...]) -> S.Block:
    axes = [
        Axis(Var(f"v{i}", number(0).dtype), "spatial", number(0), e, Var(f"ax{i}", number(0).dtype))
        for i, e in enumerate(shape)
    ]
    points = tuple(a.var for a in axes)
    return new_block(name, axes, (S.BufferStore(view(to), points, E.BufferLoad(view(source), points), None),))


def _rounded_up(extent: Expr, by: int) -> Expr:
    """The next multiple of a number; the extent itself where it is one."""
    known = constant(extent)
    if by == 1 or (known is not None and known % by == 0):
        return extent
    if known is not None:
        return number(-(-known // by) * by, extent)
    steps = Binary("floordiv", add(extent, number(by - 1, extent)), number(by, extent))
    return Binary("mul", steps, number(by, extent))


def _fill_block(name: str, pad: Buffer, old: Buffer, limits: Sequence[Expr]) -> S.Block:
    """A block that copies a buffer into another one as far as `limits`, with zeros beyond."""
    block = _copy_block(name, pad, old, pad.shape)
    store = block.body[0]
    assert isinstance(store, S.BufferStore)
    ends = [_smaller(n, e) for n, e in zip(limits, old.shape)]
    inside = [Binary("lt", v, n) for v, n, big in zip(block.vars, ends, pad.shape) if not _alike(n, big)]
    zero = immediate(0, pad.dtype)
    value = E.Select(joined(inside), store.value, zero) if inside else store.value
    return block.replace(body=(S.BufferStore(store.buffer, store.indices, value, None),))


def _alike(a: Expr, b: Expr) -> bool:
    return a is b or (constant(a) is not None and constant(a) == constant(b))


def _smaller(limit: Expr, size: Expr) -> Expr:
    """How far a dimension is read: as far as its axis, or as it has elements, where both are numbers."""
    first, second = constant(limit), constant(size)
    return size if first is not None and second is not None and second < first else limit


def _padding(step: str, tree: Tree, s: S.Block) -> tuple[E.Select, S.BufferStore]:
    store = single_store(s)
    reason = why_unordered(tree, s) or why_foreign(tree, s)
    if reason or s.init:
        raise ScheduleError(f"{step} of '{s.name_hint}': {reason or 'it has an init'}")
    if store is None or not isinstance(store.value, E.Select):
        raise ScheduleError(f"{step} of '{s.name_hint}': what it stores is no choice between a value and a constant")
    select = store.value
    if not isinstance(select.false_value, (IntImm, FloatImm)) or has_effects(select.true_value):
        raise ScheduleError(
            f"{step} of '{s.name_hint}': the value outside is no constant, or the one inside has effects"
        )
    return select, store


def _loop_like(var: Var, like: S.For, body: Body) -> S.For:
    return loop(var, like.stop, body, like)


def _is_true(e: Expr) -> bool:
    return isinstance(e, IntImm) and bool(e.value)
