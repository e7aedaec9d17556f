"""Accesses that lie outside of storage whose size is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compass_core.errors import CompassError, Finding, Span
from compass_core.extents import apply
from compass_core.namedtuple import NamedTuple

from ..analysis.arith import Linear
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr, IntImm
from ..ir.visit import walk_exprs
from ..ops.effects import Arg, touched
from . import Subject
from ._walk import Address, ReachedStatement, Root, Walker, storage

CODE = "out-of-bounds"


def run(subject: Subject) -> Iterator[CompassError]:
    """One finding per access; an error when the access is certain to happen."""
    for function in subject.functions():
        entry = function.name == subject.module.entry
        params = dict(enumerate(function.params)) if entry else {}
        known = {params[i]: value for i, value in subject.values.items()} if entry else {}
        shapes = {params[i]: shape for i, shape in subject.shapes.items()} if entry else {}
        roots = storage(function, shapes)
        if roots:
            yield from _Bounds(Walker(function, subject.target.tecs, known), roots).run()


class Access(NamedTuple):
    """A read or write of memory: how its statement is reached, and where it stands itself."""

    place: ReachedStatement
    span: Span | None
    verb: str


class _Bounds:
    def __init__(self, walker: Walker, roots: dict[E.Var, Root]) -> None:
        self.walker, self.roots = walker, roots
        self.found: list[CompassError] = []
        self.seen: set[tuple[Span | None, str]] = set()

    def run(self) -> list[CompassError]:
        for place in self.walker.walk():
            s = place.stmt
            if type(s) is S.BufferStore:
                self.element(Access(place, s.span, "writes"), s.buffer, s.indices)
            for root in s.exprs():
                if root.flags & (E.F_LOAD | E.F_CALL):
                    for e in walk_exprs(root):
                        self.expression(place, e)
        return self.found

    def expression(self, place: ReachedStatement, e: Expr) -> None:
        if type(e) is E.BufferLoad:
            self.element(Access(place, e.span, "reads"), e.buffer, e.indices)
        elif type(e) is E.Call:
            for index, kind, size in touched(e):
                self.operand(Access(place, e.span, "writes" if kind == "w" else "reads"), e, index, size)

    # -- accesses

    def element(self, at: Access, buffer: E.Buffer, indices: tuple[Expr, ...]) -> None:
        """A subscript: on a flat buffer through its pointer, else each index against its dimension."""
        if any(type(i) is E.Ramp for i in indices):
            return
        if not buffer.shape:
            address = self.walker.address(E.Pointer(buffer.dtype, buffer.data, indices[0]))
            if address is not None:
                self.access(at, address, buffer.dtype.total_bytes)
            return
        for axis, (index, size) in enumerate(zip(indices, buffer.shape)):
            form, limit = self.walker.arith.exact(self.walker.settle(index)), self.walker.settle(size)
            if type(limit) is IntImm:
                ends = self.outside(at.place, form, 1, limit.value)
                if ends is not None:
                    worst = _worst(ends, limit.value, 1)
                    where = f"index {worst} of dimension {axis}"
                    self.report(at, f"this {at.verb} {buffer.data.name!r} at {where}", f"{limit.value} there", worst)

    def operand(self, at: Access, call: E.Call, index: int, size: object) -> None:
        """An address given to an operation."""
        address = self.walker.address(call.args[index])
        count = self._bytes(call, size)
        if address is not None and count is not None and count > 0:
            self.access(at, address, count)

    def _bytes(self, call: E.Call, size: object) -> int | None:
        if size == "lanes":
            return self._vector_bytes(call)
        constants = [self.walker.settle(a) for a in call.args]
        count: int | None = _evaluate(size, constants, call.attr("itemsize") or 1)
        return count

    def _vector_bytes(self, call: E.Call) -> int | None:
        """From the first lane to the last active one."""
        vector = call.dtype if call.op == "vload" else call.args[0].dtype
        stride = self.walker.settle(call.args[1 if call.op == "vload" else 2])
        if type(stride) is not IntImm or not (call.mask is None or type(call.mask) is E.ConstMask):
            return None
        lanes = vector.lanes
        if call.mask is not None:
            lanes = call.mask.bits.bit_length()
            if not lanes:
                return None
        return ((lanes - 1) * stride.value + 1) * vector.bytes

    # -- judging

    def access(self, at: Access, address: Address, count: int) -> None:
        root = self.roots.get(address.data)
        if root is None:
            return
        ends = self.outside(at.place, address.offset, count, root.size)
        if ends is not None:
            worst = _worst(ends, root.size, root.item)
            self.report(at, f"this {at.verb} {root.name!r} at element {worst}", root.items, worst)

    def outside(self, place: ReachedStatement, form: Linear, count: int, size: int) -> tuple[int, int] | None:
        """(first, last) unit of `count` units from `form` on, if they cannot all lie within `size` units."""
        low, high = self.walker.arith.bounds(form)
        if low + count > size:
            return low, low + count - 1
        if high < 0:
            return high, high + count - 1
        ends = None if place.guarded else self.walker.attained(form)
        if ends is None or (ends[0] >= 0 and ends[1] + count <= size):
            return None
        return ends[0], ends[1] + count - 1

    def report(self, at: Access, message: str, size: str, index: int) -> None:
        place, span = at.place, at.span or at.place.stmt.span
        if (span, message) in self.seen:
            return
        self.seen.add((span, message))
        kind = Finding if place.guarded else CompassError
        notes = ("it does so whenever this line is reached",) if place.guarded else ()
        help = "begin at 0 or later" if index < 0 else "enlarge the storage, or stop earlier"
        self.found.append(kind(f"{message}, but it has {size}", span, code=CODE, notes=notes, help=help))


def _worst(ends: tuple[int, int], size: int, item: int) -> int:
    """The unit to name: the last one when the end is passed, else the first."""
    return (ends[1] if ends[1] >= size else ends[0]) // item


def _evaluate(size: object, constants: list[Expr], itemsize: int) -> Any:
    """A byte count of `compassc.ops.effects` with constant operands; None when one is not constant."""
    if isinstance(size, int):
        return size
    if size == "itemsize":
        return itemsize
    if isinstance(size, Arg):
        value = constants[size.index]
        return value.value if type(value) is IntImm else None
    if not isinstance(size, list):
        return None
    parts = [_evaluate(part, constants, itemsize) for part in size[1:]]
    if any(part is None for part in parts):
        return None
    if size[0] == "select":
        return parts[1] if parts[0] else parts[2]
    return apply(size[0], *parts)
