"""Schedules under the vendor's names: `Schedule` of kernels, functions and modules, and recipes for element-wise ones."""

from __future__ import annotations

from typing import Any

from compass_core import targets
from compass_core.errors import UsageError
from compassc.ir.dtypes import PointerType
from compassc.settings.options import canonical_target
from compassc.te.errors import ScheduleError
from compassc.tir import BlockRV, ExprRV, Instruction, LoopRV, Trace
from compassc.tir import Schedule as BlockSchedule

from ..language.functions import PyPrimFunc
from ..language.parser import parse

__all__ = [
    "BlockRV",
    "ExprRV",
    "Instruction",
    "LoopRV",
    "Schedule",
    "ScheduleError",
    "Trace",
    "elementwise_binary",
    "elementwise_unary",
]


class Schedule(BlockSchedule):
    """The schedule of a kernel (S.prim_func with S.block in it), a function or a module."""

    def __init__(self, mod: object, *args: Any, **options: Any) -> None:
        if isinstance(mod, PyPrimFunc):
            mod = parse(mod, canonical_target(None), blocks=True)
        super().__init__(mod, *args, **options)

    def bind_tec(self, loop: LoopRV) -> None:
        """Share the turns of a loop out over the TECs."""
        self.bind(loop, "threadIdx.x")


def elementwise_unary(func: object, target: object, block: object = "B") -> Schedule:
    """A schedule of a kernel of one flat loop that makes one array of another: TECs, copies in LSRAM, vectors."""
    return _elementwise(func, target, block, 1)


def elementwise_binary(func: object, target: object, block: object = "B") -> Schedule:
    """A schedule of a kernel of one flat loop that makes one array of two others: TECs, copies in LSRAM, vectors."""
    return _elementwise(func, target, block, 2)


def _elementwise(func: object, target: object, block: Any, inputs: int) -> Schedule:
    chosen = targets.load(canonical_target(target))
    s = func if isinstance(func, Schedule) else Schedule(func)
    entry = s.mod.entry_func
    pointers = [p.dtype for p in entry.params if isinstance(p.dtype, PointerType)]
    if len(pointers) != inputs + 1 or len({p.elem for p in pointers}) != 1:
        raise UsageError(
            f"'{entry.name}' has {len(pointers)} arrays, of {len({p.elem for p in pointers})} types; expected {inputs + 1} of one",
            code="te-schedule",
        )
    elem = pointers[0].elem
    count = chosen.lsram_bytes // 2 // elem.total_bytes // (inputs + 1) // 64 * 64
    (loop,) = s.get_loops(block)
    tec, middle, inner = s.split(loop, [chosen.tecs, None, count])
    s.bind_tec(tec)
    for place in range(inputs):
        s.read_at(middle, block, place, "lsram")
    s.write_at(middle, block, 0, "lsram")
    _, lanes = s.split(inner, [None, elem.native_lanes])
    s.vectorize(lanes)
    return s
