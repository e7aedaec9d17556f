"""`vm.compile`: from a module to an executable of the virtual machine."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.errors import UsageError
from compassc.pass_manager import pipeline_names
from compassc.pass_manager.context import Sequential
from compassc.relay.backend.build import builder_of, given_module, one_target, partitioned
from compassc.relay.backend.kernels import Kernels
from compassc.relay.backend.one_device import on_one_device
from compassc.relay.backend.vm.codegen import Program
from compassc.relay.backend.vm.executable import Executable
from compassc.relay.backend.vm.primitives import Primitives
from compassc.relay.expr import Function, RefCreate, RefRead, RefWrite
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
from compassc.relay.visit import post_order
from compassc.targets.library import side_by_side
from compassc.targets.target import NPU

HOSTS = ("llvm", "c")
PREFIX = "vm_mod_"


def compile(
    mod: object, target: object = "llvm", target_host: object = None, params: Mapping[str, object] | None = None
) -> Executable:
    """The executable of a module, with kernels for the host (`llvm`, `c`), or for an NPU and its host.

    `params`: arrays by the names of parameters of `main`, which become constants. Passes are those of the current
    `PassContext`, and those that the machine needs. UsageError for other targets, ExpressionError for programs that do not fit.
    """
    return executable(given_module(mod, params), target, MAIN)


def executable(module: IRModule, target: object, entry: str) -> Executable:
    """The executable of what a function of a module uses."""
    chosen = one_target(target)
    on_npu = chosen.kind.name == NPU
    if not on_npu and chosen.kind.name not in HOSTS:
        raise UsageError(
            f"the virtual machine runs on the host and on NPUs, not on {chosen.kind.name}",
            code="relay-target",
            help=f"give one of {', '.join(HOSTS)}, or an NPU by its name",
        )
    if not any(v.name_hint == entry for v in module.functions):
        names = ", ".join(v.name_hint for v in module.functions) or "none at all"
        raise UsageError(f"the module has no function {entry}, but {names}", code="input")
    module = on_one_device(module, chosen)
    primitives = Primitives(Kernels(builder_of(chosen), PREFIX), on_npu)
    with side_by_side():
        return Program(lowered(module, entry, on_npu), primitives).executable


def lowered(module: IRModule, entry: str, on_npu: bool = False) -> IRModule:
    """The module with the functions that an entry uses: kernels are functions, values have names, no function has literals of
    others. `on_npu`: what an NPU's layers do is in regions, but in programs with references, whose order counts."""
    used = infer_type.run(remove_unused_functions.run(module, [entry]))
    names = [name for name in pipeline_names("optimize", FOLDER) if name != remove_unused_functions.NAME]
    ready = eta_expand.run(used, expand_constructor=True)
    if (
        on_npu
        and entry == MAIN
        and not any(isinstance(e, _REFERENCES) for f in _functions(ready) for e in post_order(f))
    ):
        ready = partitioned(ready)
    optimised: IRModule = Sequential([make(name) for name in names])(ready)
    return lambda_lift.run(infer_type.run(to_a_normal_form.run(optimised)))


_REFERENCES = (RefCreate, RefRead, RefWrite)


def _functions(module: IRModule) -> list[Function]:
    return [f for f in module.functions.values() if isinstance(f, Function)]


class VMCompiler:
    """A compilation in steps: `lower` (or `optimize`), `codegen`, then `get_exec`."""

    def __init__(self) -> None:
        self._params: dict[str, object] = {}
        self._exec: Executable | None = None

    def set_params(self, params: Mapping[str, object]) -> None:
        """Arrays by the names of parameters of `main`, which become constants."""
        self._params = dict(params)

    def get_params(self) -> dict[str, object]:
        """The arrays that were set."""
        return dict(self._params)

    def lower(self, mod: object, target: object = "llvm", target_host: object = None) -> None:
        """Make the executable of a module."""
        self._exec = compile(mod, target, target_host, self._params)

    def codegen(self) -> None:
        """Nothing: `lower` builds the kernels."""

    def optimize(
        self,
        mod: object,
        target: object = "llvm",
        target_host: object = None,
        params: Mapping[str, object] | None = None,
    ) -> tuple[IRModule, dict[str, object]]:
        """The module after the passes of a compilation, and the parameters that are left (none: all are constants)."""
        chosen = one_target(target)
        module = on_one_device(given_module(mod, params if params is not None else self._params), chosen)
        return lowered(module, MAIN, chosen.kind.name == NPU), {}

    def get_exec(self) -> Executable:
        """The executable. UsageError before `lower`."""
        if self._exec is None:
            raise UsageError("nothing was compiled", code="relay-vm", help="call lower(mod, target) first")
        return self._exec
