"""Refuse a kernel that takes more SRAM than there is, with a table of what takes how much.

Before: any module whose arrays in SRAM have constant sizes. After: the same. Arrays whose lives do not overlap share memory.
"""

from __future__ import annotations

from compass_core import targets
from compassc.analysis.buffers import size_of
from compassc.ir import stmts as S
from compassc.ir.stmts import IRModule
from compassc.ir.visit import walk_stmts
from compassc.passes._sram_pieces import rooms
from compassc.te.errors import LowerError

NAME = "VerifyMemory"
_MEMORIES = {"lsram": "the LSRAM of a TEC", "shared": "the memory that TECs share"}


def run(module: IRModule) -> IRModule:
    f, target = module.entry_func, targets.load(module.target)
    sizes = {"lsram": target.lsram_bytes, "shared": target.gsram_bytes}
    taken = dict.fromkeys(sizes, 0)
    for s in walk_stmts(f.body):
        if isinstance(s, S.Alloc) and s.buffer.scope in taken:
            taken[s.buffer.scope] += size_of(s.buffer)
    if all(taken[scope] <= sizes[scope] for scope in sizes):
        return module
    pieces = rooms(f)
    for scope, size in sizes.items():
        own = [r for r in pieces if r.scope == scope]
        total = sum(r.bytes for r in own)
        if total <= size:
            continue
        table = "\n".join(f"  {r.bytes:>9,}  {', '.join(r.arrays)}" for r in own)
        raise LowerError(
            f"{_MEMORIES[scope]} on {target.name} has {size:,} bytes, the schedule needs {total:,}:\n{table}",
            "compute stages at inner loops or split into smaller tiles, so that less is held at a time",
        )
    return module
