"""From functions of blocks to what every further stage takes: plain loops, memory with a place, TECs."""

from __future__ import annotations

from compassc.analysis.statements import is_lowered
from compassc.ir import exprs as E
from compassc.ir.stmts import IRModule
from compassc.ir.visit import all_exprs
from compassc.pass_manager import pipeline_names
from compassc.te.external import with_declarations
from compassc.te.machine import Machine, machine_for
from compassc.te.packed import text_of


def lower(module: IRModule, target: object = None, simple_mode: bool = False) -> IRModule:
    """The module without blocks, for a target (default: the module's, else that of COMPASS_TARGET).

    `simple_mode`: stop with plain loops over scalars, before transfers, vectors and accumulators are made of them.
    LowerError where a schedule has no program.
    """
    if all(map(is_lowered, module.functions)):
        return module
    machine = machine_for(target or module.target or None)
    names = (*pipeline_names("blocks"), *pipeline_names("threads"))
    made = _with_packed(machine.passed(module.replace(target=machine.name), names), machine)
    return made if simple_mode else machine.form(made)


def _with_packed(module: IRModule, machine: Machine) -> IRModule:
    """The module with declarations of the packed functions that its own functions call. LowerError for devices."""
    made, known = [], {f.name for f in module.functions}
    for f in module.functions:
        calls = [e for e in all_exprs(f.body, E.F_FUNC) if isinstance(e, E.FuncCall)]
        if any(text_of(e.func) for e in calls):
            body, declared = with_declarations(f.body, known, machine)
            made += [f.replace(body=body), *declared]
        else:
            made.append(f)
    return module if len(made) == len(module.functions) else module.replace(functions=tuple(made))
