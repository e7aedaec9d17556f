"""Steps that put a block's expression in place of what reads it, or of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compassc.analysis.conditions import conjuncts, joined
from compassc.ir import exprs as E
from compassc.ir import stmts as S
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
from compassc.tir.copied import why_not_all_points
from compassc.tir.cover import facts_of, fills, plain_index, turn_writes, writes_of
from compassc.tir.placement import check_only_flow, unconditional
from compassc.tir.queries import is_output
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
        axes = _indexed("compute_inline", s, store.indices)
        data = store.buffer.data
        check_no_address(f"compute_inline of '{s.name_hint}'", tree, data)
        body = edit(tree.function.body, {s: ()})

        def value(e: E.BufferLoad) -> Expr:
            mapping: dict[Var, Expr] = {a.var: a.start for a in axes_of(s)}
            mapping.update({a: i for a, i in zip(axes, e.indices) if a is not None})
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
        scope = tree.scope(s)
        made = [d for d in read(s) if writers(tree, d, scope)]
        if not made:
            raise ScheduleError(f"{step} of '{s.name_hint}': it reads no block")
        latest = max(made, key=lambda d: max(tree.order[w] for w in writers(tree, d, scope)))
        producers = writers(tree, latest, scope)
        if len(producers) != 1:
            raise ScheduleError(
                f"{step} of '{s.name_hint}': '{latest.name}' is written by {len(producers)} blocks, not by one"
            )
        producer = producers[0]
        first = _simple(step, tree, producer)
        foreign = why_foreign(tree, producer)
        if foreign:
            raise ScheduleError(
                f"{step} of '{s.name_hint}': '{producer.name_hint}' does not compute all of it: {foreign}"
            )
        others = [b.name_hint for b in tree.inside(scope) if b is not s and latest in read(b)]
        if others or is_output(self, function, tree, producer):
            raise ScheduleError(
                f"{step} of '{s.name_hint}': '{latest.name}' is needed elsewhere, too: {', '.join(others) or 'as output'}"
            )
        loads = [e for e in walk_exprs(store.value) if is_load_of(e, latest)]
        indices = loads[0].indices  # type: ignore[attr-defined]
        for e in loads:
            if any(a is not b for a, b in zip(e.indices, indices)):  # type: ignore[attr-defined]
                raise ScheduleError(f"{step} of '{s.name_hint}': it reads '{latest.name}' at different indices")
        axes = _indexed(step, s, indices)
        for d, (axis, extent) in enumerate(zip(axes, self.buffers(function)[latest].shape)):
            if axis is None and constant(extent) != 1:
                raise ScheduleError(
                    f"{step} of '{s.name_hint}': of dimension {d} of '{latest.name}' it reads one element, '{producer.name_hint}' "
                    "computes more",
                    "compute_inline the producer",
                )
        _check_covered(step, tree, s, producer, zip(axes, first.indices), self.buffers(function)[latest])
        mapping: dict[Var, Expr] = {a: i for a, i in zip(axes, first.indices) if a is not None}
        mapping.update({a.var: a.start for a in axes_of(s) if a.var not in mapping})
        value = _at_points(store.value, latest, first.value, mapping)
        new = S.BufferStore(store.buffer, tuple(at(i, mapping) for i in store.indices), value, None, span=store.span)
        bindings: dict[Var, Expr] = dict(zip(producer.vars, producer.iter_values))
        inside = []
        for a in axes_of(s):
            point = at(mapping[a.var], bindings)
            inside += [Binary("le", a.start, point), Binary("lt", point, add(a.start, a.extent))]
        where = joined([*conjuncts(producer.predicate), *inside])
        _check_said(step, tree, s, producer, mapping)
        merged = with_axes(producer, _narrowed(axes_of(producer), axes_of(s), mapping), (new,)).replace(predicate=where)
        changes: dict[S.Stmt, tuple[S.Stmt, ...]] = {s: (), producer: (merged,)}
        made_tree = self.commit(function, without(edit(tree.function.body, changes), latest))
        _check_available(step, tree, s, producer, made_tree, self.buffers(function))


def _narrowed(axes: Iterable[Axis], by: Iterable[Axis], mapping: dict[Var, Expr]) -> list[Axis]:
    """Axes with the points only for which there is one of the axes `by`, which are the expressions of `mapping`: the loops
    around may give no more, and then no condition says so."""
    limits = [(plain_index(mapping[b.var]), b) for b in by]
    made = []
    for a in axes:
        start, end = constant(a.start), constant(add(a.start, a.extent))
        for plain, b in limits:
            first, last = constant(b.start), constant(add(b.start, b.extent))
            if plain is None or plain[0] is not a.var or None in (start, end, first, last):
                continue
            assert start is not None and end is not None and first is not None and last is not None
            start, end = max(start, first - plain[1]), min(end, last - plain[1])
        if start is not None and end is not None:
            a = a._replace(start=number(start, a.start), extent=number(max(end - start, 0), a.extent))
        made.append(a)
    return made


def _check_said(step: str, tree: Tree, s: S.Block, producer: S.Block, mapping: dict[Var, Expr]) -> None:
    """ScheduleError where a block has a point for all that its producer is computed at only because the loops around that
    leave out points of its axes, and neither the axes nor a condition would say so."""
    loops, domain = facts_of(tree.loops_around(producer, all_of_them=True)), facts_of([])
    for a in axes_of(producer):
        domain.bind_loop(a.var, a.start, add(a.start, a.extent), number(1, a.start))
    bindings: dict[Var, Expr] = dict(zip(producer.vars, producer.iter_values))
    for a in axes_of(s):
        point, start, end = mapping[a.var], a.start, add(a.start, a.extent)
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
    step: str, tree: Tree, s: S.Block, producer: S.Block, pairs: Iterable[tuple[Var | None, Expr]], buffer: Buffer
) -> None:
    """ScheduleError where a block has points for which its producer computes nothing, as those of padding. `pairs`: the
    axes of the block, each with the index of the producer that is it."""
    facts = facts_of(tree.loops_around(producer, all_of_them=True))
    bindings: dict[Var, Expr] = dict(zip(producer.vars, producer.iter_values))
    ranges = {a.var: (a.start, add(a.start, a.extent)) for a in axes_of(s)}
    own = {a.var: (a.start, add(a.start, a.extent)) for a in axes_of(producer)}
    whole = all(fills(tree, producer, r, [], buffer.shape) for r in writes_of(producer, buffer.data))
    for var, index in pairs:
        if var is None:
            continue
        plain = plain_index(index)
        if plain is not None and plain[0] in own:
            low, high = (add(e, number(plain[1], e)) for e in own[plain[0]])
        else:
            found = facts.range_of(at(index, bindings))
            low, high = (number(found[0]), number(found[1] + 1)) if whole else (number(0), number(0))
        start, end = ranges[var]
        if facts.compare("le", low, start) is not True or facts.compare("ge", high, end) is not True:
            raise ScheduleError(
                f"{step} of '{s.name_hint}': '{producer.name_hint}' does not compute all points of its axis '{var.name}'"
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


def _indexed(step: str, block: S.Block, indices: tuple[Expr, ...]) -> list[Var | None]:
    """The axis that each index is; None for the only element of a dimension. ScheduleError where an index is something
    else, or an axis is missing."""
    found: list[Var | None] = []
    own = {a.var: a for a in axes_of(block)}
    for i in indices:
        if isinstance(i, Var) and i in own and i not in found:
            found.append(i)
        elif constant(i) is not None:
            found.append(None)
        else:
            raise ScheduleError(f"{step} of '{block.name_hint}': its indices are not its axes, each once")
    for var, a in own.items():
        if var not in found and constant(a.extent) != 1:
            raise ScheduleError(f"{step} of '{block.name_hint}': its axis '{var.name}' is no index")
    return found


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
