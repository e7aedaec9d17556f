"""Names of the framework under the vendor's packages for which this package has no object of the same form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, cast

from compass_core import VERSION, switches
from compass_core.errors import CompassError, UsageError
from compass_core.hostcc.host import num_threads as processors
from compass_runtime import Device, device
from compass_runtime.module import Module as BuiltModule

from .. import relay, targets
from ..dsl.script import tec_range
from ..ir import IRModule as Module
from ..ir import PrimFunc
from ..ir.exprs import Expr
from ..ir.stmts import as_kernels
from ..language.dispatch import LOCAL
from ..language.specs import LoopSpec
from ..pass_manager.context import lowered as with_passes
from ..relay.module import Definitions, Functions
from ..settings.options import canonical_target
from ..targets import Target
from ..te import Schedule
from ..te import lower as lowered
from ..te.buffers import View
from ..te.machine import Machine
from ..te.tensor import Tensor

if TYPE_CHECKING:
    from ..dsl.script import Value

T = TypeVar("T")

__version__ = VERSION
_TEC_THREAD = "threadIdx.x"
_MAIN = "main"
"""The name of a module's entry where it has several functions."""


canonicalize_target = Target


class _WrongType(UsageError, TypeError):
    """A value of a type that is not taken."""


Bound = SupportsIndex | Expr
"""A bound of a loop of a kernel: a number, or a value."""


def serial(start: Bound, stop: Bound | None = None, step: Bound = 1) -> range | LoopSpec:
    """`range` in a kernel, under the framework's name."""
    bounds: tuple[Any, ...] = (0, start, step) if stop is None else (start, stop, step)
    if LOCAL.tec is not None:
        return range(*bounds)
    return LoopSpec("range", (start,) if stop is None and step == 1 else bounds)


def thread_binding(start: Bound, stop: Bound | None = None, thread: str = _TEC_THREAD) -> object:
    """A loop over TECs, each of which runs the body once with its number."""
    if thread != _TEC_THREAD:
        raise UsageError(f"a loop cannot be bound to {thread}", code="compat-thread", help=f"TECs are {_TEC_THREAD}")
    return tec_range(cast("Value", start), None if stop is None else cast("Value", stop))


class _ModuleType(type):
    """The type of `IRModule`: what it makes, and counts as its own, are modules of kernels and modules of Relay."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (Module, relay.IRModule))

    def __call__(
        cls,
        functions: Functions | None = None,
        type_definitions: Definitions | None = None,
        attrs: Mapping[str, object] | None = None,
        global_infos: object = None,
    ) -> Module | relay.IRModule:
        _refuse(global_infos=global_infos)
        given = functions or {}
        named = {str(name): f for name, f in given.items() if isinstance(f, PrimFunc)}
        if type_definitions or not given or len(named) < len(given):
            return relay.IRModule(functions, type_definitions, attrs)
        notes = tuple((attrs or {}).items())
        entry = named[_MAIN] if _MAIN in named else next(iter(named.values()))
        return Module(tuple(named.values()), entry.name, "", (), notes)


class IRModule(metaclass=_ModuleType):
    """`IRModule({"main": function}, attrs=None)`: a module of lowered functions, which keep their names, for any target. With
    functions of graphs or data types, or without anything, it is a module of Relay, which can hold kernels too."""

    @staticmethod
    def from_expr(
        function: object, functions: Functions | None = None, type_defs: Definitions | None = None
    ) -> Module | relay.IRModule:
        """A module of one function, by the name it has; of an expression of Relay a function of its free variables."""
        if isinstance(function, PrimFunc) and not functions and not type_defs:
            return Module((function,), function.name, "")
        return relay.IRModule.from_expr(function, functions, type_defs)


Args = Sequence[object] | None
"""The parameters of a kernel: tensors, buffers and variables."""


def lower(
    inp: object, args: Args = None, name: str = "main", binds: Mapping[Tensor, View] | None = None, simple_mode: bool = False
) -> Module:  # fmt: skip
    """The kernel of a schedule with the parameters `args` for the current target, a function or a module. Where no
    output is among the arguments, all are parameters after them. `binds`: buffers of tensors. `simple_mode`: plain loops, to be read.
    Without a current target they are plain loops for any; a build lowers them for its own."""

    inp = as_kernels(inp)
    if isinstance(inp, Schedule):
        given = list(args) if isinstance(args, (list, tuple)) else args
        if isinstance(given, list):
            bound = [t for t, buffer in (binds or {}).items() if any(buffer is x for x in given)]
            results = [t for op in inp.outputs for t in op.outputs]
            if not any(t in (*given, *bound) for t in results):
                given += results
        anywhere = Target.current() is None
        module = lowered(inp, given, name, Machine("") if anywhere else None, simple_mode, binds)
    else:
        _refuse(binds=binds)
        if not isinstance(inp, (Module, PrimFunc)):
            raise _WrongType(
                f"cannot lower a {type(inp).__name__}",
                code="input",
                help="give a schedule, a function or a module",
            )
        module = inp if isinstance(inp, Module) else Module((inp,), inp.name, "")
    made = with_passes(module)
    if isinstance(inp, Schedule):
        around = copy_context()  # with the passes that are added here, wherever it is built
        _remember(made, lambda target: around.run(lambda: with_passes(lowered(inp, given, name, target, binds=binds))))
    return made


_lowered: list[tuple[Module, Callable[[Target], Module]]] = []
_MOST_LOWERED = 32
"""Modules of which it is known what they were lowered from."""


def _remember(module: Module, again: Callable[[Target], Module]) -> None:
    """Keeps how a module is lowered for another target: nobody has said yet what it is to be built for."""
    _lowered.append((module, again))
    del _lowered[:-_MOST_LOWERED]


def _for_target(module: Module, target: Target) -> Module:
    """The module, or where it was lowered for another target by `lower` and is as it was, what that gives for this one."""
    if module.target == target.machine().name:
        return module
    return next((again(target) for known, again in reversed(_lowered) if known is module), module)


def build(
    inputs: object,
    args: Args = None,
    target: object = None,
    target_host: object = None,
    runtime: object = None,
    name: str = "default_function",
    binds: Mapping[Tensor, View] | None = None,
) -> BuiltModule:
    """The module of a schedule, a function or a module of functions for a target: the current one, or else this machine, unless
    the environment chooses an NPU. `target_host` changes nothing: what calls a kernel is this process."""

    _refuse(runtime=runtime)
    inputs = as_kernels(inputs)
    chosen = Target("llvm") if target is None and _nothing_said(inputs) else Target.of(target)
    if isinstance(inputs, Schedule):
        inputs = with_passes(lowered(inputs, args, name, chosen, binds=binds))
    else:
        _refuse(binds=binds)
    if isinstance(inputs, Module):
        inputs = _for_target(inputs, chosen)
    return targets.build(inputs, None, chosen, name)


def _nothing_said(inputs: object) -> bool:
    """Whether neither what is built nor the context nor the environment says for which target: it is this machine then."""
    lowered_for = inputs.target if isinstance(inputs, Module) else ""
    switch = switches.TARGET.setting()
    chosen = switch.origin != "default" or canonical_target(None) != switch.value
    return not lowered_for and Target.current() is None and not chosen


def compile(
    mod: object, target: object = None, *, relax_pipeline: str = "default", tir_pipeline: str = "default"
) -> BuiltModule:
    """The module of a function or of a module of functions for a target. Pipelines are `default`."""
    for pipeline in (relax_pipeline, tir_pipeline):
        if pipeline != "default":
            raise UsageError(f"there is no pipeline '{pipeline}'", code="compat-name", help="known: default")
    return build(mod, target=target)


def build_functions(mod: object, target: object = None, pipeline: str = "default") -> BuiltModule:
    """`compile` under the name that it has for functions of loops."""
    return compile(mod, target, tir_pipeline=pipeline)


def _of_kind(kind: str) -> Callable[[int], Device]:
    def make(index: int = 0) -> Device:
        return device(kind, index)

    make.__name__, make.__doc__ = kind, f"The device of kind {kind} with that index."
    return make


gpu = _of_kind("cuda")
cl, opencl, vulkan, metal, rocm = map(_of_kind, ("opencl", "opencl", "vulkan", "metal", "rocm"))
ext_dev, hexagon, webgpu, vpi = map(_of_kind, ("ext_dev", "hexagon", "webgpu", "vpi"))


def _refuse(**given: object) -> None:
    """UsageError for arguments that have no meaning here."""
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"the argument '{name}' is not supported", code="compat-name", help="leave it out")


def likely(condition: T) -> T:
    """A condition that mostly holds, which changes nothing: loops are parted where conditions are needed."""
    return condition


def enabled(target: str) -> bool:
    """Whether there is something to run what is built for a target: for `cuda` a device."""

    try:
        made = Target(target)
    except CompassError:
        return False
    return bool(made.kind.device == "compass" or device(made.kind.device, 0).exist)


def num_threads() -> int:
    """How many threads parallel loops run on."""
    return switches.THREADS.get() or processors()


def llvm(options: str = "") -> Target:
    """The host, as a target."""
    return Target(f"llvm {options}".strip())


def cuda(model: str = "unknown", arch: str | None = None, options: str = "") -> Target:
    """A CUDA device, as a target; `model` says nothing."""
    return Target(" ".join(filter(None, ["cuda", f"-arch={arch}" if arch else "", options])))
