"""`vm.compile`: from a module to an executable of the virtual machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compass_core.errors import UsageError
from compassc.pass_manager import pipeline_names
from compassc.pass_manager.context import Sequential
from compassc.relay.backend.build import builder_of, given_module, one_target
from compassc.relay.backend.kernels import Kernels
from compassc.relay.backend.vm.codegen import Program
from compassc.relay.backend.vm.executable import Executable
from compassc.relay.backend.vm.primitives import Primitives
from compassc.relay.module import MAIN, IRModule
from compassc.relay.passes import (
    FOLDER,
    eta_expand,
    infer_type,
    lambda_lift,
    make,
    remove_unused_functions,
    to_a_normal_form,
)
from compassc.targets.library import side_by_side

HOSTS = ("llvm", "c")
PREFIX = "vm_mod_"


def compile(
    mod: Any, target: Any = "llvm", target_host: Any = None, params: Mapping[str, Any] | None = None
) -> Executable:
    """The executable of a module, with kernels for the host (`llvm`, `c`).

    `params`: arrays by the names of parameters of `main`, which become constants. Passes are those of the current
    `PassContext`, and those that the machine needs. UsageError for other targets, ExpressionError for programs that do not fit.
    """
    return executable(given_module(mod, params), target, MAIN)


def executable(module: IRModule, target: Any, entry: str) -> Executable:
    """The executable of what a function of a module uses."""
    chosen = one_target(target)
    if chosen.kind.name not in HOSTS:
        raise UsageError(
            f"the virtual machine runs on the host, not on {chosen.kind.name}",
            code="relay-target",
            help=f"give one of {', '.join(HOSTS)}",
        )
    if not any(v.name_hint == entry for v in module.functions):
        names = ", ".join(v.name_hint for v in module.functions) or "none at all"
        raise UsageError(f"the module has no function {entry}, but {names}", code="input")
    primitives = Primitives(Kernels(builder_of(chosen), PREFIX))
    with side_by_side():
        return Program(lowered(module, entry), primitives).executable


def lowered(module: IRModule, entry: str) -> IRModule:
    """The module with the functions that an entry uses: kernels are functions, values have names, no function has literals of
    others."""
    used = infer_type.run(remove_unused_functions.run(module, [entry]))
    names = [name for name in pipeline_names("optimize", FOLDER) if name != remove_unused_functions.NAME]
    optimised: IRModule = Sequential([make(name) for name in names])(eta_expand.run(used, expand_constructor=True))
    return lambda_lift.run(infer_type.run(to_a_normal_form.run(optimised)))


class VMCompiler:
    """A compilation in steps: `lower` (or `optimize`), `codegen`, then `get_exec`."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._exec: Executable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Arrays by the names of parameters of `main`, which become constants."""
        self._params = dict(params)

    def get_params(self) -> dict[str, Any]:
        """The arrays that were set."""
        return dict(self._params)

    def lower(self, mod: Any, target: Any = "llvm", target_host: Any = None) -> None:
        """Make the executable of a module."""
        self._exec = compile(mod, target, target_host, self._params)

    def codegen(self) -> None:
        """Nothing: `lower` builds the kernels."""

    def optimize(
        self, mod: Any, target: Any = "llvm", target_host: Any = None, params: Mapping[str, Any] | None = None
    ) -> tuple[IRModule, dict[str, Any]]:
        """The module after the passes of a compilation, and the parameters that are left (none: all are constants)."""
        one_target(target)
        return lowered(given_module(mod, params if params is not None else self._params), MAIN), {}

    def get_exec(self) -> Executable:
        """The executable. UsageError before `lower`."""
        if self._exec is None:
            raise UsageError("nothing was compiled", code="relay-vm", help="call lower(mod, target) first")
        return self._exec
