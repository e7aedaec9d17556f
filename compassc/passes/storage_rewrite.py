"""Move allocations to the top of their function and let arrays share storage.

Before: allocations have one constant extent and may stand in any block.
After: a function begins with its allocations, in the order of their first use. Arrays in lsram or shared memory of equal
element type whose live ranges do not overlap are one array of the larger size, under the name of the first. A pointer kept in
a variable keeps its array alive to the end of that variable's block; one that is assigned, stored, returned, taken as a
number or given to an asynchronous operation keeps it alive for good. What is loaded through a pointer is none. Arrays in
shared memory only share across a barrier.
"""

from __future__ import annotations

from ..analysis.statements import LOOPS
from ..analysis.structure import effect_of
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, PointerType
from ..ir.exprs import Buffer, Expr, IntImm, Var
from ..ir.stmts import Body, IRModule, PrimFunc, Stmt
from ..ir.visit import Rewritten, StatementRewriter, rename_vars, rewrites, walk_stmts

NAME = "StorageRewrite"
_SHAREABLE = ("lsram", "shared")
_SMALLEST_SHARED_BYTES = 5
_ESCAPES = (S.Assign, S.BufferStore, S.SetElement, S.Return)


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def storage_groups(f: PrimFunc) -> list[list[Buffer]]:
    """The allocations of a function, grouped by those that can share storage."""
    return [[array.buffer for array in group] for group in _groups(f)[1]]


def _groups(f: PrimFunc) -> tuple[list[_Array], list[list[_Array]]]:
    """The arrays of a function in the order of their first use, and in groups of one storage each."""
    lives = _Liveness(f.body)
    arrays = sorted(lives.arrays.values(), key=lambda a: a.first)
    return arrays, _share(arrays, lives.barriers)


def _function(f: PrimFunc) -> PrimFunc:
    if not any(type(s) is S.Alloc for s in walk_stmts(f.body)):
        return f
    arrays, groups = _groups(f)
    allocs = tuple(_alloc(group) for group in groups)
    if len(groups) == len(arrays) and f.body[: len(allocs)] == allocs:
        return f
    body = _DropAllocs().body(f.body)
    merged = {a.data: group[0].data for group in groups for a in group[1:]}
    return f.replace(body=allocs + rename_vars(body, merged))


class _DropAllocs(StatementRewriter):
    @rewrites(S.Alloc)
    def rewrite_alloc(self, s: S.Alloc) -> Rewritten:
        return None


class _Array:
    """An allocation and the span of statement numbers in which it holds something."""

    def __init__(self, stmt: S.Alloc, loops: tuple[int, ...], number: int) -> None:
        self.stmt, self.loops = stmt, loops
        self.first = self.last = number
        self.escapes = False
        self.uses = 0

    @property
    def buffer(self) -> Buffer:
        return self.stmt.buffer

    @property
    def data(self) -> Var:
        return self.buffer.data

    @property
    def count(self) -> int:
        (extent,) = self.buffer.shape
        assert isinstance(extent, E.IntImm)
        return extent.value

    @property
    def shareable(self) -> bool:
        large = self.count * self.buffer.dtype.total_bytes >= _SMALLEST_SHARED_BYTES
        return self.buffer.scope in _SHAREABLE and large and not self.escapes and self.uses > 0

    def extend(self, first: int, last: int) -> None:
        if not self.uses:
            self.first, self.last = first, last
        self.first, self.last = min(self.first, first), max(self.last, last)
        self.uses += 1


class _Block:
    """A block or loop being walked, and the arrays live until its end, with the start of their live range."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.waiting: list[tuple[_Array, int]] = []


class _Liveness:
    """Numbers the statements of a function and finds the live range of each array."""

    def __init__(self, body: Body) -> None:
        self.arrays: dict[Var, _Array] = {}
        self.aliases: dict[Var, _Array] = {}
        self.has_numbers = False
        """Whether a variable that is no pointer may have an address."""
        self.barriers: list[int] = []
        self.number = 0
        self.loops: list[_Block] = []
        self._walk(body, top=True)

    def _walk(self, body: Body, top: bool = False) -> None:
        block = _Block(self.number)
        for s in body:
            self.number += 1
            if type(s) is S.Alloc:
                loops = tuple(map(id, self.loops))
                self.arrays[s.buffer.data] = _Array(s, loops, self.number)
            if top and type(s) is S.Evaluate and type(s.value) is E.Call and s.value.op == "barrier":
                self.barriers.append(self.number)
            if isinstance(s, LOOPS):
                self._loop(s, block)
            else:
                self._mentions(s, block)
                for nested in s.bodies():
                    self._walk(nested)
        self._close(block)

    def _loop(self, s: Stmt, block: _Block) -> None:
        loop = _Block(self.number)
        self.loops.append(loop)
        self._mentions(s, block)
        for nested in s.bodies():
            self._walk(nested)
        self.loops.pop()
        self._close(loop)

    def _close(self, block: _Block) -> None:
        for array, first in block.waiting:
            array.extend(first, self.number)

    def _mentions(self, s: Stmt, block: _Block) -> None:
        """Note the arrays a statement touches: `accesses` by loads and stores, `addresses` in any other way."""
        if not (s.flags & E.F_ADDRESS or self.has_numbers):
            return
        accesses: set[Var] = set()
        addresses: set[Var] = set()
        if type(s) is S.BufferStore:
            accesses.add(s.buffer.data)
        kept = False
        for root in s.exprs():
            if type(s) is S.BufferStore and root is s.buffer.data:
                continue
            kept |= self._scan(root, accesses, addresses)
        for var in accesses | addresses:
            array = self.arrays.get(var) or self.aliases.get(var)
            if array is None:
                continue
            self._use(array)
            if var in addresses:
                self._address(s, array, block, kept)

    def _address(self, s: Stmt, array: _Array, block: _Block, kept: bool) -> None:
        if kept or (isinstance(s, _ESCAPES) and s.value is not None and _may_be_address(s.value)):
            array.escapes = True
        elif type(s) is S.Let and _may_be_address(s.value):
            self.aliases[s.var] = array
            self.has_numbers = self.has_numbers or not isinstance(s.var.dtype, PointerType)
            block.waiting.append((array, self.number))

    def _use(self, array: _Array) -> None:
        array.extend(self.number, self.number)
        entered = [loop for loop in self.loops if id(loop) not in array.loops]
        if entered:
            array.extend(entered[0].start, self.number)
            entered[0].waiting.append((array, entered[0].start))

    def _scan(self, root: Expr, accesses: set[Var], addresses: set[Var]) -> bool:
        """Whether the expression has an asynchronous operation, or a pointer as a number."""
        kept = False
        stack = [root]
        while stack:
            e = stack.pop()
            if type(e) is Var:
                if isinstance(e.dtype, PointerType) or e in self.aliases:
                    addresses.add(e)
            elif type(e) is E.BufferLoad:
                accesses.add(e.buffer.data)
                stack += e.indices
            else:
                if type(e) is E.Call:
                    kept |= e.op.startswith("async") and effect_of(e) != "pure"
                elif type(e) is E.Reinterpret:
                    kept |= isinstance(e.value.dtype, PointerType) and not isinstance(e.dtype, PointerType)
                stack += e.children()
        return kept


def _may_be_address(e: Expr) -> bool:
    """Whether the value of an expression may lead to an array whose pointer it has: functions may give any number."""
    return isinstance(e.dtype, PointerType) or bool(e.flags & E.F_FUNC)


def _share(arrays: list[_Array], barriers: list[int]) -> list[list[_Array]]:
    """The arrays in groups of one storage each."""
    groups: list[list[_Array]] = []
    for array in arrays:
        fitting = [g for g in groups if all(_may_share(a, array, barriers) for a in g)]
        fitting.sort(key=lambda g: g[0].count != array.count)
        if fitting:
            fitting[0].append(array)
        else:
            groups.append([array])
    return groups


def _may_share(a: _Array, b: _Array, barriers: list[int]) -> bool:
    """Whether two arrays, `a` first used before `b`, can be one."""
    if not (a.shareable and b.shareable) or a.buffer.dtype is not b.buffer.dtype or a.buffer.scope != b.buffer.scope:
        return False
    if a.buffer.scope == "shared":
        return any(a.last < barrier < b.first for barrier in barriers)
    return a.last < b.first


def _alloc(group: list[_Array]) -> Stmt:
    largest = max(a.count for a in group)
    first = group[0]
    if largest == first.count:
        return first.stmt
    buffer = Buffer(first.data, first.buffer.dtype, (IntImm(INT32, largest),))
    return S.Alloc(buffer, span=first.stmt.span)
