"""Functions of blocks and their schedules: blocks of loops are moved, joined and taken apart by checked steps.

f = te.create_prim_func([A, B])
s = tir.Schedule(f)
outer, inner = s.split(s.get_loops(s.get_block("B"))[0], factors=[None, 8])
s.bind(outer, "threadIdx.x")
s.vectorize(inner)
BuildManager("X2_1204").build(s.mod)
"""

from compassc.te.errors import LowerError, ScheduleError
from compassc.tir.create import create_prim_func
from compassc.tir.index_map import IndexMap
from compassc.tir.intrinsics import TensorIntrin
from compassc.tir.lowering import lower
from compassc.tir.schedule import Schedule
from compassc.tir.trace import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV, Trace

__all__ = [
    "BlockRV",
    "ExprRV",
    "IndexMap",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "LowerError",
    "Schedule",
    "ScheduleError",
    "TensorIntrin",
    "Trace",
    "create_prim_func",
    "lower",
]
