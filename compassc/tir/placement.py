"""Steps that move a block to a loop: as much of it as one turn of that loop needs, or can be made of what a turn gives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.itermap import bijective, covers
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.stmts import EXPRESSIONS, Body
from compassc.te.errors import ScheduleError
from compassc.tir.base import Base, Place
from compassc.tir.blocks import Axis, add, axes_of, constant, is_declaration, loop, number, sub, uses, with_axes
from compassc.tir.checks import (
    read,
    why_foreign,
    why_no_reduction,
    why_not_apart,
    why_not_complete,
    why_not_kept,
    written,
)
from compassc.tir.copy_checks import why_not_all_points
from compassc.tir.digits import apart, ranges_of
from compassc.tir.queries import consumers_of, is_output, producers_of
from compassc.tir.region_cover import (
    data_of,
    facts_of,
    fills,
    plain_index,
    reach_of,
    reads_of,
    spans_of,
    stands_free,
    within,
    writes_of,
)
from compassc.tir.regions import Spans, box
from compassc.tir.trace import BlockRV, LoopRV, instruction
from compassc.tir.tree import Tree, edit, edit_loop

Range = tuple[Expr, Expr]
MARKS = {"@root": "root", "@inline": "inline"}


class Placement(Base):
    """Steps that move blocks to loops."""

    @instruction("ComputeAt", ("block", "loop"), ("preserve_unit_loops", "index"))
    def compute_at(self, block: BlockRV, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Compute a block inside of a loop around all that read it: what one turn needs. `index`: its place among the
        statements of the loop, -1 the last possible, -2 the first."""
        if self._marked(loop, block, "compute_inline"):
            return
        move = _Move(self, "compute_at", block, loop)
        move.check_block()
        if is_output(self, move.function, move.tree, move.block):
            raise move.error("it is an output block")
        consumers = consumers_of(move.tree, move.block)
        outside = [b.name_hint for b in consumers if not move.tree.is_inside(b, move.loop)]
        if outside or not consumers:
            raise move.error(
                "the step requires all the consumer(s) of the given block to be present under the target loop, "
                f"{len(outside)} of {len(consumers)} are not: {', '.join(outside) or 'nobody reads it'}"
            )
        ranges = move.needed(consumers)
        self.commit(move.function, move.moved(ranges, consumers, preserve_unit_loops, index))

    @instruction("ReverseComputeAt", ("block", "loop"), ("preserve_unit_loops", "index"))
    def reverse_compute_at(
        self, block: BlockRV, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Compute a block inside of a loop in which all that it reads is computed: what can be made of one turn."""
        if self._marked(loop, block, "reverse_compute_inline"):
            return
        move = _Move(self, "reverse_compute_at", block, loop)
        move.check_block()
        producers = producers_of(move.tree, move.block)
        outside = [b.name_hint for b in producers if not move.tree.is_inside(b, move.loop)]
        if outside or not producers:
            raise move.error(
                "the step requires all the producer(s) of the given block to be present under the target loop, "
                f"{len(outside)} of {len(producers)} are not: {', '.join(outside) or 'it reads no block'}"
            )
        ranges = move.given(producers)
        move.check_all_points(ranges, producers)
        self.commit(move.function, move.moved(ranges, (), preserve_unit_loops, index))

    def _marked(self, loop: LoopRV, block: BlockRV, inline: str) -> bool:
        """Whether the loop is a mark of `sample_compute_location`, which is obeyed here."""
        found = self.symbols.get(loop)
        if not isinstance(found, Place) or found.key not in MARKS:
            return False
        if MARKS[str(found.key)] == "inline":
            getattr(self, inline)(block)
        return True


class _Move:
    """One move of a block into a loop."""

    def __init__(self, schedule: Base, step: str, block: BlockRV, loop: LoopRV) -> None:
        self.step = step
        self.function, self.tree, self.block = schedule.located_block(block)
        other, _, self.loop = schedule.located_loop(loop)
        self.buffers = schedule.buffers(self.function)
        if other != self.function or self.tree.scope(self.block) is not self.tree.scope(self.loop):
            raise self.error("the loop is not in the same block scope")
        if self.tree.is_inside(self.block, self.loop):
            raise self.error(f"the loop is an ancestor of block '{self.block.name_hint}' already")
        self.fixed = [*self.tree.loops_around(self.loop, all_of_them=True), self.loop]
        self.facts = facts_of(self.fixed)
        self.simplify = Simplifier(self.facts).expr
        self.axes = _computed(self.tree, self.block)

    def error(self, reason: str) -> ScheduleError:
        return ScheduleError(f"{self.step} of '{self.block.name_hint}' at '{self.loop.loop_var.name}': {reason}")

    def check_block(self) -> None:
        """ScheduleError for a block that must be computed where it is."""
        complete = why_not_complete(self.tree, self.block)
        if complete and (reduction := why_no_reduction(self.tree, self.block)):
            raise self.error(f"{complete}; {reduction}")
        foreign = why_foreign(self.tree, self.block)
        if foreign:
            raise self.error(foreign)
        check_only_flow(self.step, self.tree, self.block)
        if reason := why_not_apart(self.tree, self.block) or why_not_kept(self.tree, self.block):
            raise self.error(reason)
        for above in self.tree.around(self.block):
            if isinstance(above, S.Block):
                break
            if not isinstance(above, S.For):
                raise self.error("it stands in a condition")
        sizes = {s.loop_var: constant(s.stop) or 0 for s in self.tree.loops_around(self.block, all_of_them=True)}
        bindings = [a.binding for a in self.axes]
        if not self.tree.function.attr(EXPRESSIONS) and all(sizes.values()) and not covers(bindings, sizes):
            raise self.error("its loops do not surely give all values of its axes")

    # -- which points

    def needed(self, consumers: Sequence[S.Block]) -> dict[Var, Range]:
        """The ranges of axes that one turn of the loop needs; axes that are not named are needed whole. What lies in shared
        memory is needed for all threads of a block."""
        ranges: dict[Var, Range] = {}
        together = all(self.buffers[data_of(r)].scope == "shared" for r in self.block.writes)
        fixed = [s for s in self.fixed if not together or not s.kind.startswith("threadIdx")]
        for region in self.block.writes:
            data = data_of(region)
            spans: list[Spans] = []
            for c in consumers:
                reach = reach_of(self.tree, c, fixed)
                loops = facts_of(self.tree.loops_around(c, all_of_them=True))
                spans += [
                    spans_of(r, c, reach, partial(apart, facts=loops))
                    for r in (*reads_of(c, data), *writes_of(c, data))
                ]
            if not spans:
                continue
            found = box(spans, self.buffers[data], self.facts)
            for axis, range_ in self._by_axes(region, found).items():
                ranges[axis] = range_ if axis not in ranges else self._whole(axis)
        return ranges

    def _whole(self, var: Var) -> Range:
        axis = next(a for a in self.axes if a.var is var)
        return axis.start, axis.extent

    def _by_axes(self, region: E.BufferRegion, found: Sequence[Range]) -> dict[Var, Range]:
        """The ranges of the axes that are an index each."""
        ranges: dict[Var, Range] = {}
        twice: set[Var] = set()
        for index, extent, (start, count) in zip(region.starts, region.extents, found):
            plain = plain_index(index)
            parts = self._parts(index, extent, start, count) or {}
            twice |= parts.keys() & ranges.keys()
            ranges.update(parts)
            if plain is None or constant(extent) != 1 or not isinstance(count, IntImm):
                continue
            var, offset = plain
            if var not in self.block.vars:
                continue  # an axis of a block around
            if var in ranges:
                twice.add(var)
            ranges[var] = self.simplify(sub(start, number(offset, start))), count
        return {var: r for var, r in ranges.items() if var not in twice}

    def given(self, producers: Sequence[S.Block]) -> dict[Var, Range]:
        """The ranges of axes for which a turn of the loop gives all that is read."""
        ranges: dict[Var, Range] = {}
        reduced = {a.var for a in self.axes if a.is_reduction}
        for p in producers:
            if reason := why_not_apart(self.tree, p):
                raise self.error(f"'{p.name_hint}' does not give each element once: {reason}")
            reach = reach_of(self.tree, p, self.fixed)
            for region in p.writes:
                data = data_of(region)
                if data not in read(self.block):
                    continue
                spans, shape = spans_of(region, p, reach), self.buffers[data].shape
                found = box([spans], self.buffers[data], self.facts)
                whole = fills(self.tree, p, region, self.fixed, shape) and within(found, spans, self.facts, shape)
                if why_foreign(self.tree, p) or not whole:
                    raise self.error(f"a turn of the loop does not surely write a whole box of '{data.name}'")
                for var, range_ in self._usable(data, found).items():
                    if var in ranges and not self._same(ranges[var], range_):
                        raise self.error("what it reads is given in different ranges")
                    ranges[var] = range_
                    if var in reduced:
                        self._check_once(p)
        return ranges

    def _usable(self, data: Var, found: Sequence[Range]) -> dict[Var, Range]:
        """The ranges of the block's axes whose reads of a buffer are within a box."""
        ranges: dict[Var, Range] = {}
        shape = self.buffers[data].shape
        for region in reads_of(self.block, data):
            for d, (index, extent) in enumerate(zip(region.starts, region.extents)):
                start, count = found[d]
                if constant(start) == 0 and self.facts.compare("ge", count, shape[d]) is True:
                    continue
                plain = plain_index(index)
                parts = self._parts(index, extent, start, count)
                if parts is not None and not parts.keys() & ranges.keys():
                    self._check_within(data, d, index, extent)
                    ranges.update(parts)
                    continue
                if plain is None or constant(extent) != 1 or not isinstance(count, IntImm):
                    raise self.error(
                        f"a turn of the loop gives a part of dimension {d} of '{data.name}', of which it needs more than "
                        "one element at each point, or at an index that is no axis"
                    )
                var, offset = plain
                axis = next((a for a in self.axes if a.var is var), None)
                if axis is None:
                    raise self.error(
                        f"dimension {d} of '{data.name}' is read at '{var.name}', which is no axis of it but of a block around"
                    )
                self._check_within(data, d, index, extent)
                made = self.simplify(sub(start, number(offset, start))), count
                if var in ranges and not self._same(ranges[var], made):
                    raise self.error(f"one axis is the index of two dimensions of '{data.name}'")
                ranges[var] = made
        return ranges

    def _check_within(self, data: Var, d: int, index: Expr, extent: Expr) -> None:
        """ScheduleError where a point of the block reads beyond a dimension of a buffer: nothing gives the elements there, so
        the point would be left out."""
        mark = self.facts.mark()
        for a in self.axes:
            self.facts.bind_loop(a.var, a.start, add(a.start, a.extent), number(1, a.var))
        low = self.facts.range_of(index)[0]
        beyond = self.facts.difference(add(index, extent), self.buffers[data].shape[d])[1]
        self.facts.release(mark)
        if low < 0 or beyond > 0:
            names = " and ".join(f"'{a.var.name}'" for a in self.axes if uses(index, (a.var,)))
            raise self.error(f"axis {names} goes beyond dimension {d} of '{data.name}'")

    def _parts(self, index: Expr, extent: Expr, start: Expr, count: Expr) -> dict[Var, Range] | None:
        """The ranges of the axes that are the digits of an index (and of the `extent` elements from it on) in a range; None
        where they are not such, or that is not known."""
        wide, many = constant(extent), constant(count)
        if wide is None or many is None or (wide == 1 and plain_index(index) is not None):
            return None
        sizes = {a.var: constant(a.extent) or 0 for a in self.axes if constant(a.start) == 0}
        part = Var("part", index.dtype)
        whole = index if wide == 1 else add(index, part)
        found = ranges_of(whole, {**{v: n for v, n in sizes.items() if n}, part: wide}, start, many, self.facts)
        if found is None or part in found:
            return None
        return {v: (first, number(n, first)) for v, (first, n) in found.items()}

    def _same(self, a: Range, b: Range) -> bool:
        return self.facts.difference(a[0], b[0]) == (0, 0) and constant(a[1]) == constant(b[1])

    def _check_once(self, p: S.Block) -> None:
        """ScheduleError when what a block gives is given more than once: then it would be joined more than once."""
        loops = {s.loop_var: constant(s.stop) or 0 for s in self.tree.loops_around(p, all_of_them=True)}
        if not all(loops.values()) or not bijective([a.binding for a in axes_of(p)], loops):
            raise self.error(f"'{p.name_hint}' is not surely computed once for each element, but it reduces over it")

    def check_all_points(self, ranges: dict[Var, Range], producers: Sequence[S.Block]) -> None:
        """ScheduleError where the turns of the loops do not give all points of the block. Those of expressions are all
        given, as operations compute whole tensors."""
        outside = [s for s in self.fixed if self.tree.scope(s) is not self.tree.scope(self.block)]
        if not stands_free(self.tree, self.loop, outside):
            raise self.error("the loop stands in a condition")
        if self.tree.function.attr(EXPRESSIONS) or not ranges:
            return
        loops = [s for s in self.fixed if self.tree.scope(s) is self.tree.scope(self.block)]
        if any(constant(s.min) != 0 or constant(s.stop) is None for s in loops):
            self._check_domains(ranges, producers)
            return
        sizes = {s.loop_var: constant(s.stop) or 0 for s in loops}
        bindings: list[Expr] = []
        for a in self.axes:
            if a.var not in ranges:
                continue
            start, count = ranges[a.var]
            var = Var(f"ax{len(bindings)}", a.var.dtype)
            sizes[var] = constant(count) or 0
            bindings.append(add(start, var))
            low, high = self.facts.range_of(start)
            first, last = constant(a.start), constant(add(a.start, a.extent))
            if first is None or last is None or low > first or high + sizes[var] < last:
                raise self.error(f"the loops around do not surely give all points of its axis '{a.var.name}'")
        if not all(sizes.values()) or not covers(bindings, sizes):
            raise self.error("the loops around do not surely give all of its points")

    def _check_domains(self, ranges: dict[Var, Range], producers: Sequence[S.Block]) -> None:
        """ScheduleError where an axis has points beyond those of the producers, whose loops make all points of their
        axes."""
        own = {a.var: a for a in self.axes if a.var in ranges}
        facts = facts_of([])
        for p in producers:
            if why_not_all_points(self.tree, p, axes_of(p)):
                raise self.error(f"the loops around '{p.name_hint}' do not surely give all of its points")
            made = {a.var: a for a in axes_of(p)}
            for written_, read_ in ((w, r) for w in p.writes for r in reads_of(self.block, data_of(w))):
                assert isinstance(written_, E.BufferRegion) and isinstance(read_, E.BufferRegion)
                for there, here in zip(map(plain_index, written_.starts), map(plain_index, read_.starts)):
                    if here is None or here[0] not in own:
                        continue
                    a, b = own[here[0]], made.get(there[0]) if there is not None else None
                    if there is None or b is None:
                        raise self.error(f"the points of its axis '{a.var.name}' are not surely all given")
                    shift = number(here[1] - there[1], a.var)
                    first, last = add(a.start, shift), add(add(a.start, a.extent), shift)
                    end = add(b.start, b.extent)
                    if facts.compare("le", b.start, first) is not True or facts.compare("ge", end, last) is not True:
                        raise self.error(f"'{p.name_hint}' does not surely give all points of its axis '{a.var.name}'")

    # -- the new place

    def moved(
        self, ranges: dict[Var, Range], consumers: Sequence[S.Block], preserve_unit_loops: bool, index: int
    ) -> Body:
        """The body of the function with the block in the loop."""
        nest = self._nest(ranges, preserve_unit_loops)
        place = self._position(consumers, index)
        body = edit(self.tree.function.body, {self.block: ()})
        return edit_loop(
            body, self.loop.loop_var, lambda s: (s.replace(body=(*s.body[:place], *nest, *s.body[place:])),)
        )

    def _position(self, consumers: Sequence[S.Block], index: int) -> int:
        inside = [p for p in producers_of(self.tree, self.block) if self.tree.is_inside(p, self.loop)]
        first = max([self.tree.position(p, self.loop) + 1 for p in inside], default=0)
        while first < len(self.loop.body) and is_declaration(self.loop.body[first]):
            first += 1
        last = min([self.tree.position(c, self.loop) for c in consumers], default=len(self.loop.body))
        if first > last:
            raise self.error("what it reads is computed after what reads it")
        if index in (-1, -2):
            return last if index == -1 else first
        if not first <= index <= last:
            raise self.error(f"its place among the statements of the loop is {first} to {last}, not {index}")
        return index

    def _nest(self, ranges: dict[Var, Range], preserve_unit_loops: bool) -> Body:
        """The loops of the block at its new place."""
        axes: list[Axis] = []
        loops: list[tuple[Var, Expr]] = []
        conditions: list[Expr] = []
        for a in self.axes:
            start, extent = ranges.get(a.var, (a.start, a.extent))
            if self.facts.compare("ge", extent, a.extent) is True:
                start, extent = a.start, a.extent
            binding = start
            if constant(extent) != 1 or preserve_unit_loops:
                var = Var(f"ax{len(loops)}", a.var.dtype)
                loops.append((var, extent))
                binding = add(start, var)
            axes.append(a._replace(binding=binding))
            if start is not a.start:
                conditions += [Binary("le", a.start, binding), Binary("lt", binding, add(a.start, a.extent))]
        made: Body = (with_axes(self.block, axes).replace(predicate=joined(conditions)),)
        for var, extent in reversed(loops):
            made = (loop(var, extent, made),)
        return made


def _computed(tree: Tree, block: S.Block) -> list[Axis]:
    """The axes of a block with the values only that the loops around may give them: copies have axes for whole buffers, and
    those of what is needed are less."""
    facts = facts_of(tree.loops_around(block, all_of_them=True))
    made = []
    for a in axes_of(block):
        start, end = constant(a.start), constant(add(a.start, a.extent))
        if start is not None and end is not None:
            low, high = facts.range_of(a.binding)
            first, last = max(start, low), min(end, high + 1)
            a = a._replace(start=number(first, a.start), extent=number(max(last - first, 0), a.extent))
        made.append(a)
    return made


def check_only_flow(step: str, tree: Tree, block: S.Block) -> None:
    """ScheduleError when a block may not move because what it reads is overwritten later, or what it writes was read
    before."""
    around = tree.inside(tree.scope(block))
    for other in around:
        if other is block:
            continue
        later = tree.order[other] > tree.order[block]
        if later and written(other) & (read(block) - written(block)):
            raise ScheduleError(f"{step} of '{block.name_hint}': '{other.name_hint}' overwrites later what it reads")
        if not later and read(other) & (written(block) - written(other)):
            raise ScheduleError(f"{step} of '{block.name_hint}': '{other.name_hint}' reads before what it writes")


def unconditional(block: S.Block) -> bool:
    """Whether a block does something at every point of the loops around it."""
    return not conjuncts(block.predicate)
