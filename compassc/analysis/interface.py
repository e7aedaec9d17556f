"""The interface of a kernel: its parameters with their roles, and how many elements of each it accesses.

This is found in the lowered module, where accesses are still in terms of the kernel's own arrays, and kept with the
legalised module for the stages after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core import targets
from compass_core.dataclass import dataclass

from ..ir import exprs as E
from ..ir.stmts import IRModule
from ..ir.visit import all_exprs
from . import extents, roles

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import ParamFields
    from compass_core.extents.structure import Program


@dataclass(frozen=True)
class Interface:
    """`params`, `extents` and `groups` of `NAME.params.json` (docs/internals/files.md)."""

    params: list[ParamFields]
    extents: Program | None
    groups: int = 1


def interface_of(lowered: IRModule) -> Interface:
    """The interface of a lowered module's entry."""
    return Interface(roles.parameters(lowered), extents.program(lowered), groups(lowered))


GRID_OPS = ("get_group_id", "get_num_groups")
"""What a kernel asks that runs on all cores."""


def groups(module: IRModule) -> int:
    """How many groups of TECs run a kernel: one per core if it asks for its group, else one."""
    calls = (e for f in module.functions for e in all_exprs(f.body, E.F_CALL))
    asks = any(type(e) is E.Call and e.op in GRID_OPS for e in calls)
    return targets.load(module.target).cores if asks else 1
