"""Steps that change loops: how they are taken apart and joined, in which order they run, what runs them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from compass_core import vendor
from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.itermap import UNKNOWN, covers
from compassc.analysis.simplify import Simplifier
from compassc.ir import stmts as S
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import binary, kind_of
from compassc.ir.stmts import Body, Stmt
from compassc.ir.visit import substitute, substitute_body
from compassc.te.errors import ScheduleError
from compassc.te.schedule.loops import ceildiv
from compassc.tir.base import Base
from compassc.tir.blocks import add, axes_of, constant, loop, loop_extent, mul, number, uses, with_axes
from compassc.tir.checks import (
    check_unordered,
    read,
    why_no_reduction,
    why_not_apart,
    why_not_complete,
    why_unordered,
    written,
)
from compassc.tir.decompose import kinds_over
from compassc.tir.region_cover import facts_of
from compassc.tir.trace import BlockRV, LoopRV, instruction
from compassc.tir.tree import Tree, direct_blocks, edit


class Loops(Base):
    """Steps on loops."""

    @instruction("Split", ("loop", "*factors"), ("preserve_unit_iters", "disable_predication"))
    def split(
        self,
        loop: LoopRV,
        factors: Sequence[object],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[LoopRV]:
        """Take a loop apart into several, one within the other, with `factors` turns; one of them may be None, which is
        as many as are needed. What they do not divide is guarded, unless `disable_predication` says that the turns
        beyond the end do no harm."""
        function, tree, s = self.located_loop(loop)
        _check_plain("split", s)
        values = [self.number(f) for f in factors]
        extents = _factors(s, values)
        facts = facts_of([*tree.loops_around(s, all_of_them=True), s])
        made = [Var(f"{s.loop_var.name}_{i}", s.loop_var.dtype) for i in range(len(extents))]
        total = extents[0]
        for e in extents[1:]:
            total = mul(total, e)
        if None not in values and -1 not in values and facts.compare("ge", total, s.stop) is not True:
            raise ScheduleError(
                f"split of '{s.loop_var.name}': {' * '.join(str(e) for e in extents)} is not surely its extent "
                f"{s.stop} or more",
                "give None for one of the factors",
            )
        value: Expr = made[0]
        for var, extent in zip(made[1:], extents[1:]):
            value = add(mul(value, extent), var)
        inside = facts_of(tree.loops_around(s, all_of_them=True))
        for var, extent in zip(made, extents):
            inside.bind_loop(var, number(0, var), extent, number(1, var))
        body = substitute_body(s.body, {s.loop_var: value})
        if not disable_predication and inside.compare("lt", value, s.stop) is not True:
            condition = Simplifier(inside).expr(Binary("lt", value, s.stop))
            body = _guarded("split", s, body, condition)
        for var, extent in reversed(list(zip(made, extents))):
            body = (_loop(var, extent, body),)
        if not preserve_unit_iters:
            body = _without_units(body, tree.loops_around(s))
        self.commit(function, edit(tree.function.body, {s: body}))
        return [self.new_loop(function, var) for var in made]

    @instruction("Fuse", ("*loops",), ("preserve_unit_iters",))
    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Make one loop of loops that stand one within the other, with nothing else between them."""
        if not loops:
            raise ScheduleError("fuse: give a loop at least")
        if len(loops) == 1:
            return loops[0]
        function, tree, _ = self.located_loop(loops[0])
        listed = self._different("fuse", loops)
        for outer, inner in pairwise(listed):
            if tree.parents[inner] is not outer:
                raise ScheduleError(
                    f"fuse: the loops are not in a chain: '{outer.loop_var.name}' is not directly around '{inner.loop_var.name}'"
                )
            if len(outer.body) != 1:
                raise ScheduleError(f"fuse: '{inner.loop_var.name}' is not all that is in '{outer.loop_var.name}'")
        for i, s in enumerate(listed):
            _check_plain("fuse", s)
            if uses(s.stop, [x.loop_var for x in listed[:i]]):
                raise ScheduleError(
                    f"fuse: the extent of '{s.loop_var.name}' depends on a loop that is to be fused with it"
                )
        total = listed[0].stop
        for s in listed[1:]:
            total = mul(total, s.stop)
        var = Var("_".join(s.loop_var.name for s in listed) + "_fused", listed[0].loop_var.dtype)
        mapping: dict[Var, Expr] = {}
        inner_size: Expr = number(1, var)
        for i, s in reversed(list(enumerate(listed))):
            whole = mul(inner_size, s.stop)
            value = binary("floordiv", binary("floormod", var, whole) if i else var, inner_size)
            mapping[s.loop_var] = number(0, var) if constant(s.stop) == 1 else value
            inner_size = whole
        body = substitute_body(listed[-1].body, mapping)
        if not preserve_unit_iters:
            body = _without_units(body, tree.loops_around(listed[0]))
        self.commit(function, edit(tree.function.body, {listed[0]: (_loop(var, total, body),)}))
        return self.new_loop(function, var)

    @instruction("Reorder", ("*loops",))
    def reorder(self, *loops: LoopRV) -> None:
        """Have loops stand within each other in the given order; others stay where they are."""
        if not loops:
            return
        function, tree, _ = self.located_loop(loops[0])
        listed = self._different("reorder", loops)
        inmost = max(listed, key=lambda s: len(tree.around(s)))
        chain = [s for s in [*tree.loops_around(inmost), inmost]]
        for s in listed:
            if s not in chain:
                raise ScheduleError(
                    f"reorder: the loops are not in a chain: '{s.loop_var.name}' and '{inmost.loop_var.name}' do not stand one "
                    "within the other"
                )
        chain = chain[min(chain.index(s) for s in listed) :]
        for outer, inner in pairwise(chain):
            if tree.parents[inner] is not outer or len(outer.body) != 1:
                raise ScheduleError(f"reorder: '{inner.loop_var.name}' is not all that is in '{outer.loop_var.name}'")
        for s in chain:
            check_unordered("reorder", tree, s)
        _check_affine("reorder", tree, chain[0])
        rest = iter(listed)
        order = [next(rest) if s in listed else s for s in chain]
        for i, s in enumerate(order):
            for later in order[i + 1 :]:
                if uses(s.stop, (later.loop_var,)) or uses(s.min, (later.loop_var,)):
                    raise ScheduleError(
                        f"reorder: the bounds of '{s.loop_var.name}' depend on '{later.loop_var.name}', which would be inside of it"
                    )
        body = inmost.body
        for s in reversed(order):
            body = (s.replace(body=body),)
        self.commit(function, edit(tree.function.body, {chain[0]: body}))

    def _different(self, step: str, loops: Sequence[LoopRV]) -> list[S.For]:
        """The loops of symbols. ScheduleError where two stand for one, or for loops of different functions."""
        found = [self.located_loop(x) for x in loops]
        for i, (function, _, s) in enumerate(found):
            if any(s is other for _, _, other in found[:i]):
                raise ScheduleError(f"{step}: the loop '{s.loop_var.name}' is given twice")
            if function != found[0][0]:
                raise ScheduleError(
                    f"{step}: '{s.loop_var.name}' is a loop of '{function}', the others are of '{found[0][0]}'"
                )
        return [s for _, _, s in found]

    @instruction("AddUnitLoop", ("block_or_loop",))
    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV) -> LoopRV:
        """Put a loop of one turn around a block or a loop."""
        if isinstance(block_or_loop, LoopRV):
            found: tuple[str, Tree, Stmt] = self.located_loop(block_or_loop)
        else:
            found = self.located_block(block_or_loop)
        function, tree, s = found
        var = Var("u", s.loop_var.dtype if isinstance(s, S.For) else number(0).dtype)
        self.commit(function, edit(tree.function.body, {s: (_loop(var, number(1, var), (s,)),)}))
        return self.new_loop(function, var)

    @instruction("ReorderBlockIterVar", ("block",), ("new_order",))
    def reorder_block_iter_var(self, block: BlockRV, new_order: Sequence[int]) -> None:
        """Have the axes of a block in another order: `new_order` has the old places."""
        function, tree, s = self.located_block(block)
        axes = axes_of(s)
        if sorted(new_order) != list(range(len(axes))):
            raise ScheduleError(
                f"reorder_block_iter_var of '{s.name_hint}': {list(new_order)} is no order of its {len(axes)} axes"
            )
        self.commit(function, edit(tree.function.body, {s: (with_axes(s, [axes[i] for i in new_order]),)}))

    @instruction("Merge", ("*loops",))
    def merge(self, *loops: LoopRV) -> LoopRV:
        """Have the statements of loops of equal extents, each in loops of its own, in one common nest."""
        if len(loops) < 2:
            raise ScheduleError("merge: give two loops at least")
        function, tree, _ = self.located_loop(loops[0])
        nests = [self._branch(tree, x) for x in self._different("merge", loops)]
        common = [s for s in nests[0] if all(s in n for n in nests)]
        branches = [[s for s in n if s not in common] for n in nests]
        first = branches[0]
        for other in branches[1:]:
            if len(other) != len(first) or not other or tree.parents[other[0]] is not tree.parents[first[0]]:
                names = [f"'{n[-1].loop_var.name}'" for n in (nests[0], nests[branches.index(other)])]
                raise ScheduleError(f"merge: {' and '.join(names)} are not at the same depth, in nests of their own")
            for outer, inner in (*pairwise(first), *pairwise(other)):
                if outer.body != (inner,):
                    raise ScheduleError(f"merge: '{inner.loop_var.name}' is not all that is in '{outer.loop_var.name}'")
            for a, b in zip(first, other):
                if constant(a.stop) is None or constant(a.stop) != constant(b.stop):
                    raise ScheduleError(f"merge: '{a.loop_var.name}' and '{b.loop_var.name}' have different extents")
        branches.sort(key=lambda n: tree.order[n[0]])
        first = branches[0]
        self._check_passes(tree, [n[0] for n in branches])
        body: Body = ()
        for branch in branches:
            body += substitute_body(branch[-1].body, {b.loop_var: a.loop_var for a, b in zip(first, branch)})
        nest: Body = body
        for s in reversed(first):
            nest = (s.replace(body=nest),)
        changes: dict[Stmt, Sequence[Stmt]] = {branch[0]: () for branch in branches[1:]}
        made = self.commit(function, edit(tree.function.body, {**changes, first[0]: nest}))
        for s in first:
            check_unordered("merge", made, made.loops[s.loop_var])
        return self.new_loop(function, first[-1].loop_var)

    def _check_passes(self, tree: Tree, tops: list[S.For]) -> None:
        """ScheduleError where a nest that moves up to the first one would pass what it depends on."""
        around = tree.scope(tops[0])
        parent = tree.parents[tops[0]]
        if parent is not None and not any(all(any(x is t for x in body) for t in tops) for body in parent.bodies()):
            raise ScheduleError(f"merge: '{tops[0].loop_var.name}' is in the init of a reduction, the others are not")
        for top in tops[1:]:
            inside = [b for b in tree.inside(around) if tree.is_inside(b, top)]
            between = [
                b
                for b in tree.inside(around)
                if tree.order[tops[0]] < tree.order[b] < tree.order[top] and not any(tree.is_inside(b, t) for t in tops)
            ]
            for b, other in ((b, o) for b in inside for o in between):
                if written(b) & (written(other) | read(other)) or read(b) & written(other):
                    raise ScheduleError(
                        f"merge: '{b.name_hint}' would be computed before '{other.name_hint}', on which it depends"
                    )

    def _branch(self, tree: Tree, s: S.For) -> list[S.For]:
        around = [*tree.loops_around(s), s]
        for x in around:
            _check_plain("merge", x)
        return around

    # ---------------------------------------------------------------------------------------------------- who runs them

    @instruction("Parallel", ("loop",))
    def parallel(self, loop: LoopRV) -> None:
        """Say that the turns of a loop may run at the same time."""
        self._become("parallel", loop, "parallel", ())

    @instruction("Vectorize", ("loop",))
    def vectorize(self, loop: LoopRV) -> None:
        """Have the turns of a loop be lanes of vectors. Of a reduction each lane has a part of the values, which are joined
        after the loop; programs for the framework cannot say that."""
        _, tree, s = self.located_loop(loop)
        _check_known("vectorize", s)
        for block in direct_blocks(s.body):
            if {"spatial", "reduce"} <= kinds_over(tree, block, s):
                raise ScheduleError(
                    f"vectorize of '{s.loop_var.name}': '{block.name_hint}' is reduced over it in part only: a spatial axis depends on "
                    "it, too",
                    "vectorize a loop of one of the axes",
                )
        self._become("vectorize", loop, "vectorized", () if vendor.names_in_use else ("reduce",))

    @instruction("Bind", ("loop",), ("thread_axis",))
    def bind(self, loop: LoopRV, thread_axis: object) -> None:
        """Share the turns of a loop out over threads: `threadIdx.x` are the TECs."""
        tag = thread_axis.thread_tag if isinstance(thread_axis, IterVar) else thread_axis
        tag = f"{tag}.x" if tag in ("vthread", "cthread") else tag
        threads = {kind.replace("_", "."): kind for kind in (*S.THREAD_LOOPS, *S.VIRTUAL_LOOPS)}
        if not isinstance(tag, str):
            raise ExpressionTypeError(f"bind: thread_axis is a str or an IterVar, got {type(tag).__name__}")
        if tag not in threads:
            raise ScheduleError(f"bind: '{tag}' is none of {', '.join(threads)}")
        self._become("bind", loop, threads[tag], ("reduce",) if tag.startswith("threadIdx") else ())

    @instruction("Unroll", ("loop",))
    def unroll(self, loop: LoopRV) -> None:
        """Write the turns of a loop one after the other."""
        function, tree, s = self.located_loop(loop)
        _check_known("unroll", s)
        self.commit(function, edit(tree.function.body, {s: (s.replace(kind="unrolled"),)}))

    def _become(self, step: str, rv: LoopRV, kind: str, more: tuple[str, ...]) -> None:
        function, tree, s = self.located_loop(rv)
        blocks = list(direct_blocks(s.body))
        for block in blocks:
            for a in axes_of(block):
                if uses(a.binding, (s.loop_var,)) and a.kind not in ("spatial", *more):
                    raise ScheduleError(
                        f"{step} of '{s.loop_var.name}': the axis '{a.var.name}' of '{block.name_hint}' depends on it and is "
                        f"{'reduced over' if a.is_reduction else a.kind}, not spatial"
                    )
                if uses(a.binding, (s.loop_var,)) and a.is_reduction and (used := tree.used_loops(block)):
                    raise ScheduleError(
                        f"{step} of '{s.loop_var.name}': '{block.name_hint}' is reduced over it, and uses '{used[0].loop_var.name}', which "
                        "is no axis of it",
                        "give the block an axis for it",
                    )
        if self.enable_check:
            _check_compact(step, tree, s)
            for block in blocks:
                reason = why_unordered(tree, block, s) or why_not_apart(tree, block, s)
                if reason:
                    raise ScheduleError(
                        f"{step} of '{s.loop_var.name}': the points of '{block.name_hint}' depend on order: {reason}"
                    )
            check_unordered(step, tree, s)
        self.commit(function, edit(tree.function.body, {s: (s.replace(kind=kind),)}))


def _check_compact(step: str, tree: Tree, s: S.For) -> None:
    """ScheduleError in a program for the framework where a block of a loop is neither complete nor a reduction, or its axes
    do not get all of their values: there, turns are for such blocks only."""
    _check_affine(step, tree, s)
    for block in tree.inside(s) if vendor.names_in_use else ():
        if (complete := why_not_complete(tree, block)) and (reduction := why_no_reduction(tree, block)):
            raise ScheduleError(f"{step} of '{s.loop_var.name}': '{block.name_hint}': {complete}; {reduction}")


def _check_affine(step: str, tree: Tree, s: S.For) -> None:
    """ScheduleError in a program for the framework where the loops do not give all values of the axes of a block: there,
    steps are for such blocks only."""
    for block in tree.inside(s) if vendor.names_in_use else ():
        sizes = {x.loop_var: loop_extent(x) for x in tree.loops_around(block, all_of_them=True)}
        known = all(n != UNKNOWN for n in sizes.values()) and not conjuncts(block.predicate)
        if known and not covers(block.iter_values, sizes):
            raise ScheduleError(
                f"{step} of '{s.loop_var.name}': the loops around '{block.name_hint}' do not give all values of its axes, "
                "each independently of the others"
            )


def _check_plain(step: str, s: S.For) -> None:
    """ScheduleError for a loop that is no plain one from 0 on."""
    if s.kind != "serial":
        raise ScheduleError(f"{step} of '{s.loop_var.name}': the loop is {s.kind}", "take this step before")
    if s.annotations:
        raise ScheduleError(f"{step} of '{s.loop_var.name}': the loop has the annotation '{s.annotations[0][0]}'")
    if constant(s.min) != 0 or constant(s.step) != 1:
        raise ScheduleError(f"{step} of '{s.loop_var.name}': the loop begins at {s.min}, not at 0")


def _check_known(step: str, s: S.For) -> None:
    """ScheduleError for a loop of an open extent."""
    if constant(s.min) is None or constant(s.stop) is None:
        raise ScheduleError(f"{step} of '{s.loop_var.name}': its extent {s.stop} is not constant", "split it before")


def _factors(s: S.For, given: list[Any]) -> list[Expr]:
    """The extents that factors mean."""
    if not given:
        raise ScheduleError(f"split of '{s.loop_var.name}': give a factor at least")
    missing = [i for i, f in enumerate(given) if f is None or (isinstance(f, int) and f == -1)]
    if len(missing) > 1:
        raise ScheduleError(f"split of '{s.loop_var.name}': {len(missing)} factors are left open, at most one may be")
    for i, f in enumerate(given):
        if i in missing:
            continue
        if isinstance(f, bool) or not isinstance(f, (int, Expr)):
            raise ExpressionTypeError(f"split: factor {i} is a number, got {type(f).__name__}")
        if isinstance(f, int) and f <= 0:
            raise ScheduleError(f"split of '{s.loop_var.name}': factor {i} is {f}, not positive")
    found = [
        number(0) if i in missing else f if isinstance(f, Expr) else number(f, s.loop_var) for i, f in enumerate(given)
    ]
    if missing:
        rest: Expr = IntImm(kind_of(s.loop_var), 1)
        for i, e in enumerate(found):
            rest = rest if i in missing else mul(rest, e)
        found[missing[0]] = ceildiv(s.stop, rest)
    return found


def _without_units(body: Body, around: Sequence[S.For]) -> Body:
    """Blocks whose axes are bound to no loop of one turn. `around`: the loops around the body."""

    def inside(statements: Body, units: dict[Var, Expr]) -> Body:
        made: list[Stmt] = []
        for s in statements:
            if isinstance(s, S.Block):
                made.append(s.replace(iter_values=tuple([substitute(e, units) for e in s.iter_values])))
                continue
            inner = {**units, s.loop_var: s.min} if isinstance(s, S.For) and loop_extent(s) == 1 else units
            made.append(s.map(lambda e: e, partial(inside, units=inner)))
        return tuple(made)

    return inside(body, {s.loop_var: s.min for s in around if loop_extent(s) == 1})


def _loop(var: Var, extent: Expr, body: Body) -> S.For:
    return loop(var, extent, body)


def _guarded(step: str, s: S.For, body: Body, condition: Expr) -> Body:
    """Blocks with one condition more."""

    def guard(inner: Body) -> Body:
        made: list[Stmt] = []
        for x in inner:
            if isinstance(x, S.Block):
                made.append(x.replace(predicate=joined([*conjuncts(x.predicate), condition])))
            elif isinstance(x, S.For):
                made.append(x.replace(body=guard(x.body)))
            elif isinstance(x, S.Alloc):
                made.append(x)
            else:
                raise ScheduleError(
                    f"{step} of '{s.loop_var.name}': it has statements that are in no block, and the factors do not divide it"
                )
        return tuple(made)

    return guard(body)
