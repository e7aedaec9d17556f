"""`relay.build`: from a module to kernels, a graph that calls them, and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from compass_core.errors import UsageError
from compass_runtime.devices import Device
from compass_runtime.factory import GraphExecutorFactory
from compass_runtime.module import Module
from compass_runtime.ndarray import NDArray
from compass_runtime.packed import PackedFunc
from compassc.ir.errors import warn
from compassc.operators.implementations import HOSTS
from compassc.pass_manager import pipeline_names
from compassc.pass_manager.context import Sequential
from compassc.relay.backend.graph import GraphBuilder
from compassc.relay.backend.kernels import Kernels, build_external, build_kernel, prefix_of
from compassc.relay.backend.layers import why_not
from compassc.relay.backend.one_device import on_one_device
from compassc.relay.backend.packing import pack_weights
from compassc.relay.backend.placement import BuildRegion, Placement, place
from compassc.relay.backend.storage import plan
from compassc.relay.bind import bind_params_by_name
from compassc.relay.expr import Function, GlobalVar
from compassc.relay.module import MAIN, BaseFunc, IRModule
from compassc.relay.passes import FOLDER, fuse_ops, infer_type, inline, make, qnn_canonicalize_ops, qnn_legalize
from compassc.relay.passes._functions import changed
from compassc.targets import Target
from compassc.targets.library import side_by_side
from compassc.targets.target import NPU

DEVICE_TYPES = {"llvm": 1, "c": 1, "cuda": 2, NPU: 1}
"""The numbers of devices in graphs, by kinds of targets. Programs of the NPU take the host's tensors."""


def given_module(given: object, params: Mapping[str, object] | None) -> IRModule:
    """The module of what is given, with parameters bound."""
    if isinstance(given, Function):
        warn("give relay.build an IRModule: a function is taken for its main")
        given = IRModule({GlobalVar("main"): given})
    if not isinstance(given, IRModule):
        raise _NoModule("Type of input parameter mod must be tvm.IRModule", code="input")
    if not params:
        return given
    return bind_main(given, params)


def bind_main(module: IRModule, params: Mapping[str, object]) -> IRModule:
    """The module with constants for parameters of `main`."""
    made: dict[GlobalVar, BaseFunc] = {
        v: bind_params_by_name(f, params) if v.name_hint == MAIN and isinstance(f, Function) else f
        for v, f in module.functions.items()
    }
    return changed(module, made)


class _NoModule(UsageError, ValueError):
    """What is to be built is no module."""


def one_target(target: object) -> Target:
    """The one target of what is given: a target, a list of one, or a mapping to one."""
    if isinstance(target, Mapping) and "kind" not in target:
        target = list(target.values())
    if isinstance(target, (list, tuple)):
        if len(target) != 1:
            raise UsageError(f"a graph is built for one target, {len(target)} are given", code="relay-target")
        target = target[0]
    chosen = Target.of(target)
    if chosen.kind.name not in DEVICE_TYPES:
        raise UsageError(
            f"relay.build has no kernels for {chosen.kind.name}",
            code="relay-target",
            help=f"give one of {', '.join(DEVICE_TYPES)}, or an NPU by its name",
        )
    return chosen


def optimize(
    mod: object, target: object = None, params: Mapping[str, object] | None = None
) -> tuple[IRModule, dict[str, NDArray]]:
    """The module after the passes of a build, its kernels in functions, and the parameters that are left (none: all are
    constants)."""
    return lowered(given_module(mod, params), one_target(target)).module, {}


def lowered(module: IRModule, target: Target, mod_name: str = "default", built: bool = False) -> Placement:
    """A module after the passes of a build. For an NPU, what its layers do is in functions of their own; with `built` they are
    built, and what the graph builder refuses is none of them."""
    module = on_one_device(module, target)
    placement = Placement(module)
    if target.kind.name == NPU:
        placement = placed(module, mod_name, builder_of(target) if built else None)
    names = pipeline_names("optimize", FOLDER)
    if target.kind.name in HOSTS:
        at = names.index(fuse_ops.NAME)
        packed = pack_weights(_after(module, names[:at]))
        return replace(placement, module=_inlined(_after(packed, ["InferType", *names[at:]])))
    return replace(placement, module=_inlined(_after(placement.module, names)))


def _inlined(module: IRModule) -> IRModule:
    """The module with functions in the place of their names, below level 1, too."""
    return infer_type.run(inline.run(module))


def partition(
    mod: object, target: object = None, params: Mapping[str, object] | None = None, mod_name: str = "default"
) -> Placement:
    """Where each call of a module would run that is built for an NPU, and why; nothing is built. `PassContext` says what the user
    wants (`relay.ext.compass.options`). UsageError for other targets."""
    chosen = one_target(target)
    if chosen.kind.name != NPU:
        raise UsageError(f"all of it runs on {chosen}", code="relay-target", help="give an NPU: X2_1204")
    return placed(on_one_device(given_module(mod, params), chosen), mod_name)


def partitioned(module: IRModule) -> IRModule:
    """The module after the passes of a build that come before kernels, what NPUs run in regions, whose functions are called where
    they stand. Modules that have some keep them."""
    return _inlined(placed(module).module)


def placed(module: IRModule, mod_name: str = "default", build_region: BuildRegion | None = None) -> Placement:
    """A module with what the layers of NPUs do in functions of their own, after the passes that do not look at machines.
    `build_region`: makes the program of one; what it refuses is none."""
    names = pipeline_names("optimize", FOLDER)
    own = [n for n in names[: names.index(fuse_ops.NAME)] if n not in (qnn_legalize.NAME, qnn_canonicalize_ops.NAME)]
    module = _after(make("FoldConstant", fold_qnn=True)(module), [*own, "ToGraphNormalForm", "InferType"])
    return place(module, why_not, mod_name, build_region)


def _after(module: IRModule, names: Sequence[str]) -> IRModule:
    """The module after passes."""
    made: IRModule = Sequential([make(name) for name in names])(module)
    return made


class GraphExecutorFactoryModule:
    """What `relay.build` gives: `lib["default"](device)` makes an executor, which `GraphModule` wraps."""

    kind: ClassVar = "graph"

    def __init__(
        self,
        ir_mod: object,
        target: Target,
        builder: GraphBuilder,
        kernels: Kernels[Module],
        name: str,
        placement: Placement,
    ) -> None:
        self.ir_mod, self.target, self.libmod_name = ir_mod, target, name
        self.executor = self.kind
        self.graph_json, self.params = builder.text(), dict(builder.params)
        self.placement = placement
        """For NPUs: where each call runs, and why."""
        self.function_metadata: dict[str, object] = {}
        self.lib = _Library()
        for module in kernels.modules.values():
            self.lib.import_module(module)
        self.module = GraphExecutorFactory(self.graph_json, self.params, name)
        for module in kernels.modules.values():
            self.module.import_module(module)

    def get_graph_json(self) -> str:
        """The graph."""
        return self.graph_json

    def get_executor_config(self) -> str | None:
        """The graph."""
        return self.graph_json

    def get_lib(self) -> Module:
        """The kernels."""
        return self.lib

    def get_params(self) -> dict[str, NDArray]:
        """The parameters by the names of their nodes."""
        return self.params

    def get_devices(self) -> list[Device]:
        """No devices: the caller chooses."""
        return []

    def export_library(self, file_name: str, fcompile: object = None, addons: object = None, **options: object) -> None:
        """Write graph, kernels and parameters to one file, which `load_module` reads."""
        self.module.export_library(file_name)

    def __getitem__(self, name: str) -> PackedFunc:
        return self.module[name]

    def __iter__(self) -> Iterator[str | Module | dict[str, NDArray]]:
        warn("unpack no build: use lib['default'](device)")
        return iter((self.graph_json, self.lib, self.params))


class AOTExecutorFactoryModule(GraphExecutorFactoryModule):
    """What `relay.build` gives for the executor `aot`: the same graph, which nobody is told of."""

    kind = "aot"

    def get_executor_config(self) -> None:
        """Nothing: there is nothing to configure."""


FACTORIES: dict[str, type[GraphExecutorFactoryModule]] = {
    made.kind: made for made in (GraphExecutorFactoryModule, AOTExecutorFactoryModule)
}
"""What builds give, by the executors."""


class _Library(Module):
    """The kernels of a program as one module."""


def build(
    ir_mod: object,
    target: object = None,
    target_host: object = None,
    executor: object = None,
    runtime: object = None,
    workspace_memory_pools: object = None,
    constant_memory_pools: object = None,
    params: Mapping[str, object] | None = None,
    mod_name: str = "default",
) -> GraphExecutorFactoryModule:
    """Kernels for a target (`llvm`, `c`, `cuda`, an NPU), a graph and parameters of the function `main` of a module.

    For an NPU, operators that are layers become its programs, a region of them each; the others run on its `host` (llvm).

    `params`: arrays by the names of parameters of `main`, which become constants before passes run. Passes are those of the
    current `PassContext`. What the executor cannot run (control flow, shapes with Any) is refused by name.
    """
    wanted = "graph" if executor is None else str(getattr(executor, "name", executor))
    if wanted not in FACTORIES:
        raise UsageError(
            f"there is no executor {executor}", code="relay-target", help=f"executors are {', '.join(FACTORIES)}"
        )
    if not str(mod_name or "").isascii():
        raise _NoModule(f"the name of a module is ASCII, {mod_name!r} is not", code="input")
    chosen = one_target(target)
    placement = lowered(given_module(ir_mod, params), chosen, mod_name, built=True)
    kernels = Kernels(builder_of(chosen), prefix_of(mod_name))
    kernels.modules.update(placement.modules)
    with side_by_side():
        f = _main(placement.module)
        builder = GraphBuilder(f, plan(f), kernels, DEVICE_TYPES[chosen.kind.name])
    return FACTORIES[wanted](ir_mod, chosen, builder, kernels, mod_name, placement)


def builder_of(target: Target) -> Callable[[Function, str], Module]:
    """What makes the module of a kernel for a target."""
    host = host_of(target)

    def build_one(f: Function, name: str) -> Module:
        if not f.attrs.get("Compiler"):
            return build_kernel(f, host, name)
        with target:
            return build_external(f)

    return build_one


def host_of(target: Target) -> Target:
    """What kernels of a target are built for: the host of an NPU, else itself."""
    return (target.host or Target.of("llvm")) if target.kind.name == NPU else target


def _main(module: IRModule) -> Function:
    for v, f in module.functions.items():
        if v.name_hint == "main" and isinstance(f, Function):
            return f
    names: Sequence[str] = [v.name_hint for v in module.functions]
    raise UsageError(f"the module has no function main, but {', '.join(names) or 'none at all'}", code="input")
