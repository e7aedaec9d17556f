"""Steps that copy: what a block reads or writes goes by another buffer, in another memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compass_core import vendor
from compassc.analysis.arith import Arith
from compassc.analysis.conditions import joined
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.accesses import Elsewhere, always
from compassc.ir.dtypes import pointer_type
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Binary, Buffer, Expr, Var
from compassc.ir.names import NamePool
from compassc.ir.stmts import Body, Stmt
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.te.errors import ScheduleError
from compassc.tir.addresses import check_no_address, has_address
from compassc.tir.base import Base
from compassc.tir.blocks import (
    Axis,
    add,
    at,
    axes_of,
    constant,
    is_declaration,
    loop,
    new_block,
    number,
    sub,
    uses,
    view,
)
from compassc.tir.canonical import EXPLICIT
from compassc.tir.checks import read, writers, written
from compassc.tir.copy_checks import (
    check_all_points,
    check_apart,
    check_cover,
    check_no_other_part,
    check_written_once,
    check_written_whole,
    goes_on,
    only_access,
)
from compassc.tir.region_cover import (
    data_of,
    facts_of,
    reach_of,
    reads_of,
    spans_of,
    writes_of,
)
from compassc.tir.regions import box
from compassc.tir.trace import BlockRV, LoopRV, instruction
from compassc.tir.tree import Tree, edit, edit_block

Range = tuple[Expr, Expr]
_SCOPES = {"": "global", "local": "private", "private": "private"}
_PLAIN = ("global", "shared", "lsram", "constant")
_FOREIGN = ("warp", "wmma", "texture", "m16n8k8", "amx", "metal", "gsram")


def memory_scope(step: str, scope: object) -> str:
    """The memory that a scope of a schedule names. ScheduleError for none, or one that this target does not have."""
    if not isinstance(scope, str):
        raise ExpressionTypeError(f"{step}: the scope is a str, got {type(scope).__name__}")
    if scope in _SCOPES:
        return _SCOPES[scope]
    head, _, tag = scope.partition(".")
    if head in _PLAIN and (not tag or (head == "global" and tag in "123")):
        return scope
    if scope.startswith(_FOREIGN):
        if vendor.names_in_use:  # a program for other machines, where this is plain memory
            return "private"
        raise ScheduleError(f"{step}: there is no memory '{scope}' on an NPU", "use shared, lsram or local")
    raise ScheduleError(f"{step}: '{scope}' is no memory", "use global, shared, lsram or local")


class NoSuchBuffer(ScheduleError, AssertionError):
    """A block reads or writes no buffer of a name, or several."""


class Caching(Base):
    """Steps that copy."""

    @instruction("CacheRead", ("block", "consumer_blocks"), ("read_buffer_index", "storage_scope"))
    def cache_read(
        self,
        block: BlockRV,
        read_buffer_index: object,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV] | None = None,
    ) -> BlockRV:
        """Copy a buffer that a block reads; the blocks of `consumer_blocks`, or all that read it, read the copy."""
        step = "cache_read"
        function, tree, s = self.located_block(block)
        scope = memory_scope(step, storage_scope)
        buffer = self._given(step, s, "reads", "read_buffer_index", read_buffer_index)
        around = tree.scope(s)
        makers = self._one_writer(step, tree, buffer, around)
        users = [b for b in tree.inside(around) if buffer.data in read(b) and b not in makers]
        if consumer_blocks:
            listed = [self.located_block(c)[2] for c in consumer_blocks]
            for c in listed:
                if c not in users:
                    raise ScheduleError(
                        f"{step} of '{buffer.data.name}': '{c.name_hint}' does not read it in this scope"
                    )
            users = listed
        if s in makers and s not in users:
            raise ScheduleError(f"{step} of '{s.name_hint}': it writes '{buffer.data.name}', too", "use cache_inplace")
        early = [b.name_hint for b in users if makers and tree.order[b] < tree.order[makers[-1]]]
        if early:
            raise ScheduleError(
                f"{step} of '{buffer.data.name}': '{early[0]}' reads it before '{makers[-1].name_hint}' writes it"
            )
        if makers:
            common = common_around(tree, [*makers, *users])
            ranges = _written_ranges(tree, makers[-1], buffer, common)
            check_cover(step, tree, makers[-1], users, buffer, fixed_of(tree, common))
            place = _place_after(step, tree, makers[-1], users, common)
        else:
            common, ranges = around, _declared_ranges(around, buffer)
            place = _first_place(tree, common)
            for user in users:
                tree.position(user, common)
        copy, starts = self._part(
            tree, self._copy(step, function, tree, buffer, scope, storage_scope), common, ranges, buffer
        )
        name = self.free_block_name(tree, copy.data.name)
        nest = copy_nest(name, copy, buffer, ranges, starts)
        body = tree.function.body
        redirect = rebuffered({buffer.data: copy}, False, starts)
        body = insert(body, common, place, nest)
        for user in users:
            body = edit_block(body, user.name_hint, lambda b: redirect.body((b,)))
        self.commit(function, allocated(body, copy, around))
        return self.new_block(function, name)

    @instruction("CacheWrite", ("block", "consumer_blocks"), ("write_buffer_index", "storage_scope"))
    def cache_write(
        self,
        block: BlockRV,
        write_buffer_index: object,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV] | None = None,
    ) -> BlockRV:
        """Have a block write another buffer, of which the old one becomes a copy. Who reads the old one goes on doing so,
        but for `consumer_blocks`."""
        step = "cache_write"
        function, tree, s = self.located_block(block)
        scope = memory_scope(step, storage_scope)
        buffer = self._given(step, s, "writes", "write_buffer_index", write_buffer_index)
        around = tree.scope(s)
        check_no_address(f"{step} of '{s.name_hint}'", tree, buffer.data, declared=True)
        self._one_writer(step, tree, buffer, around)
        check_no_other_part(step, tree, s, buffer)
        if goes_on(tree, s, buffer):
            raise ScheduleError(
                f"{step} of '{s.name_hint}': it goes on with what is in '{buffer.data.name}', which the copy has not",
                "use cache_inplace",
            )
        users = [b for b in tree.inside(around) if buffer.data in read(b) and b is not s]
        moved = [self.located_block(c)[2] for c in consumer_blocks or ()]
        for c in moved:
            if c not in users:
                raise ScheduleError(f"{step} of '{buffer.data.name}': '{c.name_hint}' does not read it in this scope")
        common = common_around(tree, [s, *users]) if users else around
        ranges = _written_ranges(tree, s, buffer, common)
        copy, starts = self._part(
            tree, self._copy(step, function, tree, buffer, scope, storage_scope), common, ranges, buffer
        )
        check_written_whole(step, tree, s, buffer, fixed_of(tree, common), ranges)
        check_cover(step, tree, s, moved, buffer, fixed_of(tree, common))
        name = self.free_block_name(tree, copy.data.name)
        nest = copy_nest(name, buffer, copy, ranges, starts)
        body = insert(tree.function.body, common, _place_after(step, tree, s, users, common), nest)
        body = edit_block(body, s.name_hint, lambda b: rebuffered({buffer.data: copy}, True, starts).body((b,)))
        for c in moved:
            body = edit_block(body, c.name_hint, lambda b: rebuffered({buffer.data: copy}, False, starts).body((b,)))
        self.commit(function, allocated(body, copy, around))
        return self.new_block(function, name)

    @instruction("CacheInplace", ("block",), ("read_buffer_index", "storage_scope"))
    def cache_inplace(self, block: BlockRV, read_buffer_index: object, storage_scope: str) -> list[BlockRV]:
        """Copy a buffer that a block reads and writes, before and after the block."""
        step = "cache_inplace"
        function, tree, s = self.located_block(block)
        scope = memory_scope(step, storage_scope)
        buffer = self._given(step, s, "reads", "read_buffer_index", read_buffer_index)
        if buffer.data not in written(s):
            raise ScheduleError(f"{step} of '{s.name_hint}': it does not write '{buffer.data.name}'")
        check_no_address(f"{step} of '{s.name_hint}'", tree, buffer.data)
        around = tree.scope(s)
        copy = self._copy(step, function, tree, buffer, scope, storage_scope)
        check_apart(step, tree, s, buffer)
        ranges: list[Range] = [(number(0, e), e) for e in buffer.shape]
        if around is not None:  # other turns of the loops around may have other elements in hand
            fixed = fixed_of(tree, around)
            ranges = _written_ranges(tree, s, buffer, around)
            check_written_whole(step, tree, s, buffer, fixed, ranges)
            check_cover(step, tree, s, [s], buffer, fixed)
        first = self.free_block_name(tree, copy.data.name)
        last = self.free_block_name(tree, f"{copy.data.name}_out")
        place = tree.position(s, around)
        body = insert(tree.function.body, around, place + 1, copy_nest(last, buffer, copy, ranges))
        body = insert(body, again(body, around), place, copy_nest(first, copy, buffer, ranges))
        body = edit_block(body, s.name_hint, lambda b: rebuffered({buffer.data: copy}).body((b,)))
        self.commit(function, allocated(body, copy, around))
        return [self.new_block(function, first), self.new_block(function, last)]

    @instruction("ReadAt", ("loop", "block"), ("read_buffer_index", "storage_scope"))
    def read_at(self, loop: LoopRV, block: BlockRV, read_buffer_index: object, storage_scope: str) -> BlockRV:
        """Copy what one turn of a loop reads of a buffer: `cache_read` for the blocks of the loop, and `compute_at` of the
        copy."""
        function, tree, s = self.located_block(block)
        around = self.located_loop(loop)[2]
        data = self._given("read_at", s, "reads", "read_buffer_index", read_buffer_index).data
        users = [b for b in tree.inside(tree.scope(s)) if data in read(b) - written(b) and tree.is_inside(b, around)]
        inside = [self.new_block(function, b.name_hint) for b in users]
        made = self.cache_read(block, read_buffer_index, storage_scope, inside)
        self.compute_at(made, loop)  # type: ignore[attr-defined]
        return made

    @instruction("WriteAt", ("loop", "block"), ("write_buffer_index", "storage_scope"))
    def write_at(self, loop: LoopRV, block: BlockRV, write_buffer_index: object, storage_scope: str) -> BlockRV:
        """Copy what one turn of a loop writes of a buffer: `cache_write`, and `reverse_compute_at` of the copy."""
        made = self.cache_write(block, write_buffer_index, storage_scope)
        self.reverse_compute_at(made, loop)  # type: ignore[attr-defined]
        return made

    @instruction("ReIndex", ("block",), ("buffer",))
    def reindex(self, block: BlockRV, buffer: object) -> BlockRV:
        """Copy a buffer so that a block accesses it by its own axes: a dimension for each axis that the access uses."""
        step = "reindex"
        function, tree, s = self.located_block(block)
        side, found = self.given_buffer(step, s, buffer)
        self._one_writer(step, tree, found, tree.scope(s))
        if tree.inside(s):
            raise ScheduleError(f"{step} of '{s.name_hint}': it has blocks in it")
        access = only_access(step, tree, s, found)
        used = [a for a in axes_of(s) if any(uses(e, (a.var,)) for e in access)]
        data = Var(f"{found.data.name}_reindex", pointer_type(found.dtype, "global"))
        copy = Buffer(data, found.dtype, tuple(a.extent for a in used) or (number(1),))
        body, name = self.redirected(step, tree, s, side, found, copy, used, lambda points: points)
        self.noted = {"buffer": [side, [data_of(r) for r in getattr(s, side + "s")].index(found.data)]}
        self.commit(function, body)
        return self.new_block(function, name)

    def redirected(
        self,
        step: str,
        tree: Tree,
        s: S.Block,
        side: str,
        old: Buffer,
        copy: Buffer,
        used: Sequence[Axis],
        layout: Callable[[tuple[Expr, ...]], tuple[Expr, ...]],
    ) -> tuple[Body, str]:
        """The body of the function with a block that accesses a copy in place of a buffer, at what `layout` makes of its
        axes `used`, and the block that makes the copy (or copies it back), whose name is given, too."""
        check_no_address(f"{step} of '{s.name_hint}'", tree, old.data)
        access = only_access(step, tree, s, old)
        if old.data in read(s) & written(s):
            raise ScheduleError(
                f"{step} of '{s.name_hint}': it reads and writes '{old.data.name}'", "use cache_inplace"
            )
        if any(constant(a.start) != 0 for a in used):
            raise ScheduleError(f"{step} of '{s.name_hint}': an axis does not begin at 0")
        if side == "write":
            check_all_points(step, tree, s, used, old.data)
        axes = [
            Axis(Var(f"v{i}", a.var.dtype), "spatial", a.start, a.extent, Var(f"ax{i}", a.var.dtype))
            for i, a in enumerate(used)
        ]
        mapping: dict[Var, Expr] = {a.var: new.var for a, new in zip(used, axes)}
        there_indices = tuple(at(e, mapping) for e in access)
        points = layout(tuple(a.var for a in axes)) or (number(0),)
        name = self.free_block_name(tree, copy.data.name)
        if side == "read":
            store = S.BufferStore(view(copy), points, E.BufferLoad(view(old), there_indices), None)
        else:
            check_written_once(step, s, access)
            store = S.BufferStore(view(old), there_indices, E.BufferLoad(view(copy), points), None)
        there = []  # an index may be outside of the buffer where nobody uses what is there
        at_loops: dict[Var, Expr] = {a.var: a.binding for a in axes}
        for e, extent in zip(there_indices, old.shape):
            point = at(e, at_loops)
            there += [Binary("le", number(0, point), point), Binary("lt", point, extent)]
        nest = loops_of(new_block(name, axes, (store,), where=joined(there)))
        check_apart(step, tree, s, old)
        for used_there in {
            x.buffer.data: x.buffer for e in access for x in walk_exprs(e) if isinstance(x, E.BufferLoad)
        }.values():
            check_apart(step, tree, s, used_there)
        around = tree.scope(s)
        place = tree.position(s, around)
        body = insert(tree.function.body, around, place if side == "read" else place + 1, nest)
        indices = layout(tuple(a.var for a in used)) or (number(0),)
        change = Elsewhere({old.data: (view(copy), always(indices))}, regions=False)
        body = edit_block(body, s.name_hint, lambda b: change.body((b,)))
        return allocated(body, copy, around), name

    # ------------------------------------------------------------------------------------------------------- arguments

    def given_buffer(self, step: str, s: S.Block, given: object) -> tuple[str, Buffer]:
        """The side of a block and the buffer that `("read", 0)`, a name or a Buffer mean."""
        if isinstance(given, (tuple, list)) and len(given) == 2 and given[0] in ("read", "write"):
            return given[0], self._given(step, s, given[0] + "s", "", given[1], NoSuchBuffer)
        for side in ("read", "write"):
            regions = getattr(s, side + "s")
            name = given.data.name if isinstance(given, Buffer) else given
            matches = [r for r in regions if r.buffer.data.name == name]
            if len(matches) == 1:
                return side, self._given(step, s, side + "s", "", regions.index(matches[0]))
        if not isinstance(given, (str, Buffer, tuple, list)):
            raise ExpressionTypeError(f"{step}: a buffer is a name, a Buffer or a pair, got {type(given).__name__}")
        raise NoSuchBuffer(
            f"{step} of '{s.name_hint}': it has no buffer {given!r}", 'give ("read", 0), ("write", 0) or a name'
        )

    def _given(
        self,
        step: str,
        s: S.Block,
        side: str,
        argument: str,
        given: object,
        outside: type[ScheduleError] = ScheduleError,
    ) -> Buffer:
        """The buffer at a place of what a block reads or writes. `outside`: the error where there is no such place."""
        regions = getattr(s, side)
        names = [data_of(r).name for r in regions]
        given = self.number(given)
        if isinstance(given, Buffer):
            given = given.data.name
        if isinstance(given, str):
            if names.count(given) != 1:
                raise NoSuchBuffer(
                    f"{step} of '{s.name_hint}': '{given}' is {names.count(given)} times among its {side} {names}"
                )
            given = names.index(given)
        if isinstance(given, bool) or not isinstance(given, int):
            raise ExpressionTypeError(
                f"{step}: {argument or 'the place of a buffer'} is an int, got {type(given).__name__}"
            )
        if not 0 <= given < len(regions):
            raise outside(
                f"{step} of '{s.name_hint}': there is no place {given} among its {len(regions)} {side}: {names}"
            )
        if argument:
            self.noted = {argument: given}
        function = next(f.name for f in self.mod.functions if s in self.tree(f.name).order)
        return self.buffers(function)[data_of(regions[given])]

    def _one_writer(self, step: str, tree: Tree, buffer: Buffer, scope: S.Block | None) -> list[S.Block]:
        found = writers(tree, buffer.data, scope)
        if len(found) > 1:
            listed = ", ".join(b.name_hint for b in found)
            raise ScheduleError(f"{step}: '{buffer.data.name}' is written by several blocks: {listed}")
        return found

    def _part(
        self, tree: Tree, copy: Buffer, common: Stmt | None, ranges: Sequence[Range], buffer: Buffer
    ) -> tuple[Buffer, list[Expr]]:
        """A copy with the shape of the box that it is for, and where the box begins: where it is made in a block in which all
        that read the buffer are."""
        whole = all(constant(s) == 0 and constant(e) == constant(n) for (s, e), n in zip(ranges, buffer.shape))
        fixed = all(constant(e) is not None for _, e in ranges)
        if whole or not fixed or not isinstance(common, S.Block):
            return copy, []
        if any(has_address(s, buffer.data) for s in tree.parents):
            return copy, []
        return copy.replace(shape=tuple(e for _, e in ranges)), [s for s, _ in ranges]

    def _copy(self, step: str, function: str, tree: Tree, buffer: Buffer, scope: str, word: str) -> Buffer:
        names = NamePool(b.data.name for b in self.buffers(function).values())
        name = names.take(f"{buffer.data.name}_{word.replace('.', '_') or 'global'}")
        return buffer.replace(data=Var(name, pointer_type(buffer.dtype, scope)))


# ------------------------------------------------------------------------------------------------------------ the copies


def copy_nest(name: str, to: Buffer, source: Buffer, ranges: Sequence[Range], starts: Sequence[Expr] = ()) -> Body:
    """Loops that copy a box of a buffer to the same place of another one. `starts`: one of the two, whose shape is that of
    the box, holds the box alone, which begins there in the other one."""
    part = to if starts and all(e is extent for e, (_, extent) in zip(to.shape, ranges)) else source
    whole = source if part is to else to
    axes: list[Axis] = []
    conditions: list[Expr] = []
    inside: list[Expr] = []
    for d, ((start, extent), size) in enumerate(zip(ranges, whole.shape)):
        var, point = Var(f"ax{d}", number(0, size).dtype), Var(f"v{d}", number(0, size).dtype)
        there = add(start, var)
        axes.append(Axis(point, "spatial", number(0, size), extent if starts else size, var if starts else there))
        inside.append(add(start, point) if starts else point)
        conditions += [Binary("le", number(0, size), there), Binary("lt", there, size)]
    own = tuple(a.var for a in axes)
    at_whole = tuple(inside)
    load = E.BufferLoad(view(source), own if source is part else at_whole)
    store = S.BufferStore(view(to), own if to is part else at_whole, load, None)
    made: Body = (new_block(name, axes, (store,), where=joined(conditions)),)
    for a, (_, extent) in reversed(list(zip(axes, ranges))):
        counter = a.binding if isinstance(a.binding, Var) else a.binding.children()[-1]
        assert isinstance(counter, Var)
        made = (loop(counter, extent, made),)
    return made


def loops_of(block: S.Block) -> Body:
    """A block in loops over its axes, which are bound to their variables."""
    made: Body = (block,)
    for a in reversed(axes_of(block)):
        assert isinstance(a.binding, Var)
        made = (loop(a.binding, a.extent, made),)
    return made


def common_around(tree: Tree, blocks: Sequence[Stmt]) -> Stmt | None:
    """The innermost loop (or block, or the function) around all of them."""
    chains = [tree.around(b)[::-1] for b in blocks]
    found: Stmt | None = None
    for level in zip(*chains):
        if any(s is not level[0] for s in level) or not isinstance(level[0], (S.For, S.Block)):
            break
        found = level[0]
    return found


def fixed_of(tree: Tree, common: Stmt | None) -> list[S.For]:
    """The loops that stand still inside of a statement."""
    if common is None:
        return []
    inner = [common] if isinstance(common, S.For) else []
    return [*tree.loops_around(common, all_of_them=True), *inner]


def _declared_ranges(around: S.Block | None, buffer: Buffer) -> list[Range]:
    """The box of a buffer, which nothing writes in a block, that is read in it."""
    found = [r for r in reads_of(around, buffer.data)] if around is not None else []
    whole: list[Range] = [(number(0, e), e) for e in buffer.shape]
    if len(found) != 1 or EXPLICIT["reads"] in dict(around.annotations if around is not None else ()):
        return whole
    (region,) = found
    return [(s, e) if constant(e) is not None else w for s, e, w in zip(region.starts, region.extents, whole)]


def _written_ranges(tree: Tree, block: S.Block, buffer: Buffer, common: Stmt | None) -> list[Range]:
    """The box of a buffer that a block writes while the loops around a place stand still."""
    fixed = fixed_of(tree, common)
    reach = reach_of(tree, block, fixed)
    spans = [spans_of(r, block, reach) for r in writes_of(block, buffer.data)]
    found = box(spans, buffer, facts_of(fixed))
    return [r if constant(r[1]) is not None else (number(0, e), e) for r, e in zip(found, buffer.shape)]


def _place_after(step: str, tree: Tree, maker: S.Block, users: Sequence[S.Block], common: Stmt | None) -> int:
    """The place of a copy in the loop around a block and its users: after the one, before the others."""
    place = tree.position(maker, common) + 1
    for user in users:
        if tree.position(user, common) < place:
            raise ScheduleError(
                f"{step} of '{maker.name_hint}': '{user.name_hint}' is computed in the loops of '{maker.name_hint}', other blocks that "
                "read the same are not: there is no place for a copy before all of them",
                "say with consumer_blocks which of them read the copy",
            )
    return place


def _first_place(tree: Tree, scope: S.Block | None) -> int:
    body = tree.function.body if scope is None else scope.body
    return next((i for i, s in enumerate(body) if not is_declaration(s)), len(body))


def insert(body: Body, at: Stmt | None, place: int, made: Body) -> Body:
    """A body with statements at a place of a loop, of a block or of itself."""
    if at is None:
        return (*body[:place], *made, *body[place:])
    assert isinstance(at, (S.For, S.Block))
    return edit(body, {at: (at.replace(body=(*at.body[:place], *made, *at.body[place:])),)})


def again(body: Body, scope: S.Block | None) -> Stmt | None:
    """The block of the same name after a change."""
    if scope is None:
        return None
    return next(s for s in walk_stmts(body) if isinstance(s, S.Block) and s.name_hint == scope.name_hint)


def allocated(body: Body, buffer: Buffer, scope: S.Block | None) -> Body:
    """A body with memory for a buffer at the beginning of a scope."""
    if scope is None:
        place = next((i for i, s in enumerate(body) if not is_declaration(s)), len(body))
        return (*body[:place], S.Alloc(buffer), *body[place:])
    return edit_block(body, scope.name_hint, lambda b: (b.replace(body=(S.Alloc(buffer), *b.body)),))


def rebuffered(buffers: Mapping[Var, Buffer], stores: bool = True, starts: Sequence[Expr] = ()) -> Elsewhere:
    """Accesses of buffers as accesses of others, at the same indices. `starts`: where what the other one holds begins."""
    simplify = Simplifier(Arith()).expr

    def moved(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(simplify(sub(i, start)) for i, start in zip(indices, starts)) if starts else indices

    return Elsewhere({data: (view(buffer), moved) for data, buffer in buffers.items()}, stores)
