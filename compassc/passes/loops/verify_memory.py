"""Refuse a kernel that takes more SRAM than there is, with a table of what takes how much.

Before: any module whose arrays in SRAM have constant sizes. After: the same. Arrays whose lives do not overlap share memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from compass_core import targets
from compassc.ir import stmts as S
from compassc.ir.exprs import Buffer, IntImm
from compassc.ir.stmts import IRModule, PrimFunc
from compassc.ir.visit import walk_stmts
from compassc.passes import flatten_buffer, storage_rewrite
from compassc.te.errors import LowerError

NAME = "VerifyMemory"
_MEMORIES = {"lsram": "the LSRAM of a TEC", "shared": "the memory that TECs share"}


@dataclass(frozen=True)
class Room:
    """A piece of SRAM, and the arrays that have it in turn."""

    scope: str
    bytes: int
    arrays: tuple[str, ...]


def rooms(f: PrimFunc) -> list[Room]:
    """The pieces of SRAM of a function, the largest first."""
    flat = flatten_buffer.run(IRModule((f,), f.name, "")).entry_func
    found = []
    for group in storage_rewrite.storage_groups(flat):
        if group[0].scope in _MEMORIES:
            found.append(Room(group[0].scope, max(map(_bytes, group)), tuple(b.data.name for b in group)))
    return sorted(found, key=lambda r: -r.bytes)


def run(module: IRModule) -> IRModule:
    f, target = module.entry_func, targets.load(module.target)
    sizes = {"lsram": target.lsram_bytes, "shared": target.gsram_bytes}
    taken = dict.fromkeys(sizes, 0)
    for s in walk_stmts(f.body):
        if isinstance(s, S.Alloc) and s.buffer.scope in taken:
            taken[s.buffer.scope] += _bytes(s.buffer)
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


def _bytes(buffer: Buffer) -> int:
    count = buffer.dtype.total_bytes
    for extent in buffer.shape:
        assert isinstance(extent, IntImm)
        count *= extent.value
    return count
