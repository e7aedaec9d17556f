"""From a schedule, a function or a module of functions to a runtime module, by the kind of the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compass_core.errors import UsageError
from compassc.targets.target import Target

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import IRModule


def build(
    inputs: object, args: Sequence[object] | None = None, target: object = None, name: str = "default_function"
) -> Module:
    """The module of a schedule with the parameters `args`, or of an IR function or module.

    Call it with one array or number for each parameter; outputs are changed in place. It can be timed, exported and
    loaded. LowerError as `te.lower`; TargetError for targets that are not known; UsageError for a module that was made
    for another target.
    """
    from compass_runtime.codegens import code_generator

    chosen = Target.of(target)
    return code_generator(chosen.kind.name)(lowered(inputs, args, chosen, name), chosen)


def lowered(inputs: object, args: Sequence[object] | None, target: Target, name: str) -> IRModule:
    """What `build` makes code of: the module of a schedule with the parameters `args`, or an IR function or module without blocks."""
    from compassc.ir.stmts import IRModule, PrimFunc
    from compassc.te import Schedule, lower

    if isinstance(inputs, Schedule):
        return lower(inputs, args, name, target)
    module = IRModule((inputs,), inputs.name, "") if isinstance(inputs, PrimFunc) else inputs
    if not isinstance(module, IRModule):
        raise UsageError(
            f"cannot build a {type(inputs).__name__}",
            code="input",
            help="give a schedule with its arguments, an IR function, or an IRModule",
        )
    wanted = target.machine().name
    if module.target not in ("", wanted):
        raise UsageError(
            f"the module was made for {module.target}, it is to be built for {wanted}",
            code="other-target",
            help="lower it for the target: `with Target(...):` around, or `target=`; or build the schedule",
        )
    from compassc.tir.lowering import lower as without_blocks

    return without_blocks(module, target).replace(target=wanted)
