"""From plain loops to what the NPU is fast with: transfers by DMA, vectors, accumulators in registers.

`npu_form` takes a kernel of loops over scalars and gives one of the same results: each step is a module here, or a pass
that kernels of other kinds go through as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compass_core.targets import Target
from compassc.ir.exprs import Var
from compassc.ir.stmts import IRModule, PrimFunc
from compassc.passes import hoist_if_then_else, if_conversion, remove_no_op, simplify, unroll_loop
from compassc.te.npu.bools import bools_as_bytes
from compassc.te.npu.common import loads_apart, shared_vectors
from compassc.te.npu.copies import dma_copies
from compassc.te.npu.dots import dots
from compassc.te.npu.lanes import vectors
from compassc.te.npu.memory import check_memory, rooms
from compassc.te.npu.overlap import overlapped
from compassc.te.npu.partition import partitioned
from compassc.te.npu.registers import accumulators
from compassc.te.npu.reuse import reused
from compassc.te.npu.wide import check_constants

__all__ = ["npu_form", "rooms"]

_Step = Callable[[IRModule], IRModule]


def npu_form(module: IRModule, target: Target, double_buffered: Iterable[Var] = ()) -> IRModule:
    """The kernel with transfers, vectors and accumulators. `double_buffered`: the storage of arrays that are to be filled
    and emptied beside the work. LowerError where it takes more memory than the target has."""
    check_constants(module.entry_func)
    entry, stored = bools_as_bytes(module.entry_func)
    module = module.map_functions(lambda f: entry if f.name == module.entry else f)
    arrays = [stored.get(v, v) for v in double_buffered]
    for step in _steps(arrays, target):
        module = step(module)
    check_memory(module.entry_func, target)
    return module


def _steps(arrays: list[Var], target: Target) -> list[_Step]:
    def on_functions(step: Callable[[PrimFunc], PrimFunc]) -> _Step:
        """The step on the kernel of loops alone: functions that it calls are the user's."""
        return lambda module: module.map_functions(lambda f: step(f) if f.name == module.entry else f)

    return [
        hoist_if_then_else.run,
        on_functions(dma_copies),
        on_functions(lambda f: overlapped(f, arrays, target.events)),
        on_functions(partitioned),
        simplify.run,
        hoist_if_then_else.run,
        if_conversion.run,
        unroll_loop.run,
        simplify.run,
        on_functions(lambda f: vectors(f, target)),
        on_functions(lambda f: accumulators(f, target)),
        simplify.run,
        on_functions(dots),
        on_functions(shared_vectors),
        on_functions(reused),
        on_functions(loads_apart),
        remove_no_op.run,
    ]
