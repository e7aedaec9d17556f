"""Load every other element as the even lanes of what lies there.

Before: any module, of which ReuseLoads knows already. After: a load of the entry of every other element, of half a register
of them or more, is the even lanes of contiguous loads, which take a fraction of the time of one that gathers; the element
after the last one is masked out, so that nothing is read that was not.
"""

from __future__ import annotations

from compassc.ir import exprs as E
from compassc.ir.exprs import Expr, IntImm, Ramp
from compassc.ir.stmts import IRModule
from compassc.ir.visit import Rewriter, rewrites
from compassc.passes.loops._functions import on_entry

NAME = "DeinterleaveLoads"


def run(module: IRModule) -> IRModule:
    return on_entry(module, lambda f: _Contiguous().function(f))


class _Contiguous(Rewriter):
    interest = E.F_LOAD

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        made = e.map(self.expr)
        kind, last = made.dtype, made.indices[-1]
        if made.mask is not None or not isinstance(last, Ramp) or not _is_two(last.stride):
            return made
        lanes = 2 * last.lanes
        if not kind.is_vector or kind.is_mask or lanes % kind.native_lanes:
            return made
        present = E.ConstMask((1 << lanes - 1) - 1, lanes)
        row = Ramp(last.base, IntImm(last.base.data_type, 1), lanes)
        whole = E.BufferLoad(made.buffer, (*made.indices[:-1], row), present)
        return E.Call("vconcat", (whole,), kind, attrs=(("part", "even"),))


def _is_two(stride: Expr) -> bool:
    return isinstance(stride, IntImm) and stride.value == 2
