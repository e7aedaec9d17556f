"""The pieces of SRAM that a function takes, when arrays whose lives do not overlap share it."""

from __future__ import annotations

from compass_core.dataclass import dataclass

from ..analysis.buffers import size_of
from ..ir.stmts import IRModule, PrimFunc
from . import flatten_buffer, storage_rewrite

SRAM = ("lsram", "shared")


@dataclass(frozen=True)
class Room:
    """A piece of SRAM, and the names of the arrays that have it in turn."""

    scope: str
    bytes: int
    arrays: tuple[str, ...]


def rooms(f: PrimFunc) -> list[Room]:
    """The pieces of SRAM of a function, the largest first."""
    flat = flatten_buffer.run(IRModule((f,), f.name, "")).entry_func
    groups = [group for group in storage_rewrite.storage_groups(flat) if group[0].scope in SRAM]
    found = [Room(group[0].scope, max(map(size_of, group)), tuple(b.data.name for b in group)) for group in groups]
    return sorted(found, key=lambda r: -r.bytes)
