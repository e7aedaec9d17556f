"""Make transfers by DMA of loops that copy between device memory and SRAM.

Before: any module. After: a nest of loops in the entry whose only statement moves an element is transfers.
Where a guard says which elements exist, the transfer has only these; where an element is chosen between memory and a
constant (padding), the memory is filled with the constant first, unless all of it is copied.
"""

from __future__ import annotations

from dataclasses import field, replace

from compass_core.dataclass import dataclass
from compassc.analysis.arith import SWAPPED
from compassc.analysis.buffers import position
from compassc.analysis.conditions import conjuncts, guarded
from compassc.analysis.statements import counts_up
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, VOID
from compassc.ir.exprs import Binary, Expr, FloatImm, IntImm, Var
from compassc.ir.stmts import IRModule, Stmt
from compassc.ir.visit import Rewritten, rewrites
from compassc.passes.loops._facts import ONE, ZERO, Scoped, Sum
from compassc.passes.loops._functions import on_entry

NAME = "InjectDmaCopy"
SRAM = ("lsram", "shared")
FEWEST = 8
"""Elements from which on a transfer takes less time than a loop does."""


def run(module: IRModule) -> IRModule:
    return on_entry(module, lambda f: _Copies(f).function(f))


@dataclass
class _Axis:
    """A loop of a copy: from `low` on, `count` of `extent` turns; elements that a turn goes ahead on both sides."""

    var: Var
    low: Expr
    count: Expr
    extent: Expr
    dst: int
    src: int

    @property
    def whole(self) -> bool:
        return self.count is self.extent


@dataclass
class _Copy:
    """A nest of loops (the outermost first) around a store, and the conditions under which it is done."""

    loops: list[S.For] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    store: S.BufferStore | None = None
    load: E.BufferLoad | None = None
    inside: list[Expr] = field(default_factory=list)
    fill: Expr | None = None


def _read(s: S.For) -> _Copy | None:
    """The copy that a loop is, None when it is none."""
    found = _Copy()
    at: Stmt = s
    while True:
        if isinstance(at, S.For) and at.kind == "serial" and counts_up(at):
            found.loops.append(at)
            inner = at.body
        elif isinstance(at, S.IfThenElse) and not at.else_case:
            found.conditions += conjuncts(at.condition)
            inner = at.then_case
        else:
            break
        if len(inner) != 1:
            return None
        at = inner[0]
    if not isinstance(at, S.BufferStore) or at.mask is not None:
        return None
    value = at.value
    if isinstance(value, E.Select) and isinstance(value.false_value, (IntImm, FloatImm)):
        found.inside, found.fill, value = conjuncts(value.condition), value.false_value, value.true_value
    if not isinstance(value, E.BufferLoad) or value.mask is not None or value.buffer.dtype is not at.buffer.dtype:
        return None
    to, source = at.buffer.scope, value.buffer.scope
    if (to in SRAM) == (source in SRAM) or not {to, source} <= {*SRAM, "global"}:
        return None
    if found.fill is not None and to not in SRAM:
        return None
    found.store, found.load = at, value
    return found


class _Copies(Scoped):
    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        made = self._transfers(s)
        return self.inside(s) if made is None else made

    def _transfers(self, s: S.For) -> list[Stmt] | None:
        copy = _read(s)
        if copy is None:
            return None
        mark = self.facts.mark()
        for loop in copy.loops:
            self.enter(loop)
        made = self._made(copy)
        self.facts.release(mark)
        return made

    def _made(self, copy: _Copy) -> list[Stmt] | None:
        assert copy.store is not None and copy.load is not None
        own = [loop.loop_var for loop in copy.loops]
        dst, src = (
            Sum.of(self.simplify(position(x.buffer.shape, x.indices)), own, self.facts) for x in (copy.store, copy.load)
        )
        bounds = self._limits(copy.conditions, copy.loops)
        inner = self._limits(copy.inside, copy.loops)
        if dst is None or src is None or bounds is None or inner is None:
            return None
        around, written = bounds
        chosen, read = inner
        axes = self._axes(copy.loops, dst, src, [*written, *read])
        if axes is None or sum(a.dst == a.src == 1 for a in axes) != 1 or self._most(axes) < FEWEST:
            return None
        made: list[Stmt] = []
        if copy.fill is not None:
            filled = self._axes(copy.loops, dst, src, written)
            assert filled is not None
            made += self._fill(copy, dst, filled, axes, chosen)
        made += guarded(chosen, self._copy(copy, dst, src, axes))
        return guarded(around, made)

    def _most(self, axes: list[_Axis]) -> int:
        most = 1
        for axis in axes:
            most *= max(self.facts.range_of(axis.extent)[1], 0)
        return most

    # -- which elements

    def _limits(
        self, conditions: list[Expr], loops: list[S.For]
    ) -> tuple[list[Expr], list[tuple[Var, str, Expr]]] | None:
        """Conditions as those that no loop changes, and bounds of loops (`low`: from it on, `high`: below it)."""
        around: list[Expr] = []
        bounds: list[tuple[Var, str, Expr]] = []
        own = [loop.loop_var for loop in loops]
        for cond in conditions:
            if not isinstance(cond, Binary) or cond.op not in ("lt", "le", "gt", "ge") or not cond.a.dtype.is_integer:
                return None
            op, a, b = cond.op, cond.a, cond.b
            if op in SWAPPED:
                op, a, b = SWAPPED[op], b, a
            left = Sum.of(Binary("sub", a, b), own, self.facts)
            if left is None or len(left.factors) > 1:
                return None
            if not left.factors:
                around.append(cond)
                continue
            ((var, factor),) = left.factors.items()
            beyond = 0 if op == "lt" else 1
            if factor == 1:  # var + rest < 0
                bounds.append((var, "high", Binary("sub", IntImm(INT32, beyond), left.rest)))
            elif factor == -1:  # rest - var < 0
                bounds.append((var, "low", Binary("add", left.rest, IntImm(INT32, 1 - beyond))))
            else:
                return None
        return around, bounds

    def _axes(self, loops: list[S.For], dst: Sum, src: Sum, bounds: list[tuple[Var, str, Expr]]) -> list[_Axis] | None:
        found = []
        own = {loop.loop_var for loop in loops}
        for loop in loops:
            if variables(loop.stop) & own:
                return None
            low: Expr = ZERO
            high = loop.stop
            for var, side, limit in bounds:
                if var is not loop.loop_var:
                    continue
                if side == "low":
                    low = self.simplify(Binary("max", low, limit))
                else:
                    high = self.simplify(Binary("min", high, limit))
            whole = high is loop.stop and low is ZERO
            count = loop.stop if whole else self.simplify(Binary("sub", high, low))
            axis = _Axis(
                loop.loop_var,
                low,
                count,
                loop.stop,
                dst.factors.get(loop.loop_var, 0),
                src.factors.get(loop.loop_var, 0),
            )
            if axis.dst <= 0 or axis.src < 0:
                return None
            found.append(axis)
        return found

    def _exists(self, axes: list[_Axis]) -> list[Expr]:
        """The conditions under which there is something to do."""
        return [Binary("lt", ZERO, a.count) for a in axes if self.facts.range_of(a.count)[0] < 1]

    # -- statements

    def _copy(self, copy: _Copy, dst: Sum, src: Sum, axes: list[_Axis]) -> list[Stmt]:
        assert copy.store is not None and copy.load is not None
        width, left = _row(axes, both=True)
        rows = next((a for a in reversed(left) if a.src > 0 and _above(width, a.dst) and _above(width, a.src)), None)
        outer = [a for a in left if a is not rows]
        starts = {a.var: Binary("add", a.var, a.low) if a in outer else a.low for a in axes}
        size = copy.store.buffer.dtype.bytes
        pointers = [
            E.Pointer(x.buffer.dtype, x.buffer.data, self.simplify(form.at(starts)))
            for x, form in ((copy.store, dst), (copy.load, src))
        ]
        row = self._bytes(width, size)
        strides = [row, row] if rows is None else [IntImm(INT32, rows.src * size), IntImm(INT32, rows.dst * size)]
        total = row if rows is None else self.simplify(Binary("mul", row, rows.count))
        call = E.Call("dma_copy", (*pointers, row, strides[0], total, strides[1]), VOID)
        return guarded(self._exists(axes), _around(outer, [S.Evaluate(call)]))

    def _bytes(self, count: Expr, size: int) -> Expr:
        return self.simplify(Binary("mul", count, IntImm(INT32, size)))

    def _fill(self, copy: _Copy, dst: Sum, filled: list[_Axis], axes: list[_Axis], chosen: list[Expr]) -> list[Stmt]:
        """Fill what is written with the constant, unless all of it is copied."""
        assert copy.store is not None
        less: list[Expr] = [Binary("lt", a.count, f.count) for a, f in zip(axes, filled) if not _same(a.count, f.count)]
        less += [E.Unary("not", c) for c in chosen]
        if not less:
            return []
        any_less = less[0]
        for cond in less[1:]:
            any_less = Binary("or", any_less, cond)
        width, outer = _row(filled, both=False)
        fresh = {a.var: Var(a.var.name, a.var.dtype, True) for a in outer}
        dst = Sum({fresh.get(v, v): factor for v, factor in dst.factors.items()}, dst.rest)
        outer = [replace(a, var=fresh[a.var]) for a in outer]
        filled = [a for a in filled if a.var not in fresh] + outer
        starts = {a.var: Binary("add", a.var, a.low) if a in outer else a.low for a in filled}
        buffer = copy.store.buffer
        pointer = E.Pointer(buffer.dtype, buffer.data, self.simplify(dst.at(starts)))
        value = IntImm(INT32, _bits(copy.fill))
        call = E.Call(
            "dma_memset",
            (pointer, self._bytes(width, buffer.dtype.bytes), value),
            VOID,
            attrs=(("itemsize", buffer.dtype.bytes),),
        )
        return guarded([any_less, *self._exists(filled)], _around(outer, [S.Evaluate(call)]))


def _row(axes: list[_Axis], both: bool) -> tuple[Expr, list[_Axis]]:
    """The elements that follow one another in the destination (and, for `both`, the source), and the axes left."""
    left = list(axes)
    at = next(a for a in left if a.dst == 1 and (a.src == 1 or not both))
    left.remove(at)
    width = at.count
    while at.whole and isinstance(width, IntImm):
        more = next((a for a in left if a.dst == width.value and (a.src == a.dst or not both)), None)
        if more is None:
            break
        left.remove(more)
        at = more
        if not isinstance(more.count, IntImm):
            return Binary("mul", more.count, width), left
        width = IntImm(INT32, width.value * more.count.value)
    return width, left


def _above(width: Expr, stride: int) -> bool:
    """Whether rows of a width do not overlap at a stride (a width that is not constant is less than the stride)."""
    return not isinstance(width, IntImm) or width.value <= stride


def _around(axes: list[_Axis], body: list[Stmt]) -> list[Stmt]:
    for axis in reversed(axes):
        body = [S.For(axis.var, "serial", ZERO, axis.count, ONE, tuple(body))]
    return body


def _same(a: Expr, b: Expr) -> bool:
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)


def _bits(fill: Expr | None) -> int:
    """A constant as the 32-bit number that the DMA unit fills with."""
    if isinstance(fill, IntImm):
        return fill.value if fill.value < 1 << 31 else fill.value - (1 << 32)
    import numpy as np

    assert isinstance(fill, FloatImm)
    kind = np.dtype(str(fill.dtype))
    bits = int(np.array(fill.value, kind).view(f"u{kind.itemsize}"))
    return bits - (1 << 32) if bits >= 1 << 31 else bits
