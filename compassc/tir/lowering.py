"""From functions of blocks to what every further stage takes: plain loops, memory with a place, TECs."""

from __future__ import annotations

from typing import Any

from compassc.analysis.statements import is_lowered
from compassc.ir.stmts import IRModule
from compassc.pass_manager import pipeline_names
from compassc.te.machine import machine_for


def lower(module: IRModule, target: Any = None, simple_mode: bool = False) -> IRModule:
    """The module without blocks, for a target (default: the module's, else that of COMPASS_TARGET).

    `simple_mode`: stop with plain loops over scalars, before transfers, vectors and accumulators are made of them.
    LowerError where a schedule has no program.
    """
    if all(map(is_lowered, module.functions)):
        return module
    machine = machine_for(target or module.target or None)
    names = (*pipeline_names("blocks"), *pipeline_names("threads"))
    made = machine.passed(module.replace(target=machine.name), names)
    return made if simple_mode else machine.form(made)
