"""Give buffers their place, and the size that is alive at once.

Before: functions of innermost blocks. After: all memory of a function is at its beginning, in its size and place. A buffer that is used inside of some loops only needs what one of their turns uses, provided that each turn writes
what it reads. Which memory it lies in depends on who runs the function (`Machine.memory_of`). On an NPU buffers without a memory
(`global`, but no parameters) get one: that of the TEC where a TEC alone uses them, else what the TECs share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compassc.analysis.arith import Arith
from compassc.ir import accesses
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import pointer_type
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.passes.loops._functions import on_blocks
from compassc.te.buffers import aligned
from compassc.te.errors import LowerError
from compassc.te.machine import Machine, Use, machine_of
from compassc.tir.addresses import has_address
from compassc.tir.blocks import constant, noted, number, sub, uses, view
from compassc.tir.region_cover import facts_of, reach_of, spans_of, turn_writes
from compassc.tir.regions import Spans, box
from compassc.tir.tree import Tree

NAME = "CompactBufferAllocation"


def run(module: IRModule) -> IRModule:
    machine = machine_of(module)
    return on_blocks(module, lambda f: _placed(f, machine))


def _placed(function: PrimFunc, machine: Machine) -> PrimFunc:
    """The function with all its memory at its beginning, in the size and the place that it needs."""
    tree = Tree(function)
    moves: dict[Var, tuple[Buffer, accesses.Place]] = {}
    allocations: list[Stmt] = []
    for s in walk_stmts(function.body):
        if not isinstance(s, S.Alloc):
            continue
        users = Users(tree, s.buffer)
        scope = machine.memory_of(s.buffer.data.name, s.buffer.scope, users.use)
        known = function.params if scope in machine.open_memory else ()
        used, starts = users.window(scope, known)
        shape = aligned(s.buffer.data.name, used, _alignments(tree, s.buffer))
        if users.has_address() and [*map(constant, shape)] != [*map(constant, used)]:
            raise LowerError(
                f"storage_align of '{s.buffer.data.name}': an address of it is taken, and its elements would lie elsewhere"
            )
        data = Var(s.buffer.data.name, pointer_type(s.buffer.dtype, scope))
        buffer = Buffer(data, s.buffer.dtype, shape)
        allocations.append(S.Alloc(buffer, span=s.span))
        moves[s.buffer.data] = view(buffer), partial(_beyond, starts)
    body = accesses.Elsewhere(moves).body(_without_allocations(function.body))
    first = 0
    while first < len(body) and isinstance(body[first], (S.DeclBuffer, S.AllocConst)):
        first += 1
    made = function.replace(body=(*body[:first], *allocations, *body[first:]))
    sized = all(isinstance(e, IntImm) for s in allocations if isinstance(s, S.Alloc) for e in s.buffer.shape)
    return made if sized or made.attr(S.OPEN_MEMORY) else made.with_attr(S.OPEN_MEMORY, 1)


def _beyond(starts: tuple[Expr, ...], indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Indices counted from others on."""
    return tuple(map(sub, indices, starts))


def _without_allocations(body: Body) -> Body:
    return tuple([s.map(lambda e: e, _without_allocations) for s in body if not isinstance(s, S.Alloc)])


class Users:
    """The blocks that use a buffer, and the loops around all of them."""

    def __init__(self, tree: Tree, buffer: Buffer) -> None:
        self.tree, self.buffer = tree, buffer
        self.blocks = [b for b in tree.blocks.values() if _regions(b, buffer)]
        self.plain = [s for s in tree.parents if _names(s, buffer.data) and tree.scope(s) is None]
        """Statements outside of blocks that use it."""
        users: list[Stmt] = [*self.blocks, *self.plain]
        self.roots = {[s, *tree.around(s)][-1] for s in users}
        """The statements of the outermost level that use it."""
        self.chains = [tree.loops_around(s, all_of_them=True) for s in users]
        self.loops: list[S.For] = []
        for level in zip(*self.chains):
            if any(s is not level[0] for s in level):
                break
            self.loops.append(level[0])

    @property
    def use(self) -> Use:
        """Who they are. Functions without blocks say themselves which TEC uses what."""
        alone, bound = (any(s.kind.startswith("threadIdx") for s in x) for x in (self.loops, self.tree.loops.values()))
        bound = bound and bool(self.blocks or self.buffer.scope.startswith("global"))
        apart = [s.kind for chain in self.chains for s in chain if s.kind in S.THREAD_LOOPS and s not in self.loops]
        return Use(alone, bound, len(self.roots) > 1, apart)

    def window(self, scope: str, known: Sequence[Var] = ()) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The shape that is alive at once in some memory, and the index of its first element, while the loops around stand
        still of which it has one turn. `known`: variables that it may be made of where all of the buffer is."""
        together = {"shared": "threadIdx", "global": ""}.get(scope)
        loops = [s for s in self.loops if together is None or not s.kind.startswith(together)]
        whole = tuple(self.buffer.shape), tuple(number(0, e) for e in self.buffer.shape)
        if not self.blocks or self.plain or self.has_address():
            return self._checked(*whole, known)
        facts = facts_of(loops)
        for fixed in (list(loops), []):
            found = self._box(fixed, facts)
            if found is None:
                continue
            starts = tuple(start for start, _ in found)
            if not any(uses(e, [s.loop_var for s in loops]) for e in starts) or turn_writes(
                self.tree, self.blocks, self.buffer.data, fixed, self.buffer.shape
            ):
                shape = tuple(number(max(constant(extent) or 1, 1)) for _, extent in found)
                return shape, starts
        return self._checked(*whole, known)

    def has_address(self) -> bool:
        """Whether a block takes an address of it, so that its elements must lie as they are declared."""
        return any(has_address(s, self.buffer.data) for b in self.blocks for s in walk_stmts((*b.init, *b.body)))

    def _checked(
        self, shape: tuple[Expr, ...], starts: tuple[Expr, ...], known: Sequence[Var]
    ) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        for extent in shape:
            if not all(isinstance(e, (IntImm, Binary)) or e in known for e in walk_exprs(extent)):
                raise LowerError(
                    f"the memory of '{self.buffer.data.name}' has no constant size",
                    "compute it at an inner loop, or make it a parameter of the kernel",
                )
        return shape, starts

    def _box(self, fixed: list[S.For], facts: Arith) -> list[tuple[Expr, Expr]] | None:
        spans = [row for b in self.blocks for row in self._spans(b, fixed)]
        found = box(spans, self.buffer, facts)
        return found if all(isinstance(extent, IntImm) for _, extent in found) else None

    def _spans(self, block: S.Block, fixed: list[S.For]) -> list[Spans]:
        reach = reach_of(self.tree, block, fixed)
        listed = [*block.writes, *block.reads]
        return [spans_of(r, block, reach) for r in listed if is_region_of(r, self.buffer)]


def _regions(block: S.Block, buffer: Buffer) -> bool:
    return any(is_region_of(r, buffer) for r in (*block.reads, *block.writes))


def is_region_of(e: Expr, buffer: Buffer) -> bool:
    """Whether a region is one of a buffer."""
    return isinstance(e, E.BufferRegion) and e.buffer.data is buffer.data


def _names(s: Stmt, data: Var) -> bool:
    if isinstance(s, (S.Alloc, S.DeclBuffer, S.Block)):
        return False
    return any(x is data for e in s.exprs() for x in walk_exprs(e))


def _alignments(tree: Tree, buffer: Buffer) -> dict[int, tuple[int, int]]:
    """What storage_align demands of the dimensions of a buffer: strides of a given remainder."""
    found: dict[int, tuple[int, int]] = {}
    for block in tree.blocks.values():
        listed = noted(block.annotations, "buffer_dim_align")
        for row in listed if isinstance(listed, list) else ():
            index, axis, factor, offset = row
            region, rank = block.writes[index] if index < len(block.writes) else None, len(buffer.shape)
            if region is not None and is_region_of(region, buffer) and axis % rank < rank - 1:
                found[axis % rank] = factor, offset
    return found
