"""How the framework says what runs a program: executors and runtimes with options, `BuildModule`, graph executors by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

from compass_core.errors import CompassError, UsageError
from compass_core.errors.suggest import help_for
from compass_runtime.devices import Device
from compass_runtime.graph_executor import GraphModule
from compass_runtime.module import Module
from compass_runtime.ndarray import NDArray
from compassc.ir import IRModule as KernelModule
from compassc.relay.backend.build import (
    DEVICE_TYPES,
    GraphExecutorFactoryModule,
    build,
    host_of,
    one_target,
    optimize,
)
from compassc.relay.backend.graph import GraphBuilder
from compassc.relay.backend.kernels import Kernels, lower_kernel, prefix_of
from compassc.relay.backend.storage import plan
from compassc.relay.expr import Function
from compassc.relay.module import IRModule
from compassc.targets import Target


class _Described:
    """A name of those that are registered, with options of their types."""

    registered: ClassVar[Mapping[str, Mapping[str, type]]]
    defaults: ClassVar[Mapping[str, Mapping[str, object]]] = MappingProxyType({})

    def __init__(self, name: str, options: Mapping[str, object] | None = None) -> None:
        kind = type(self).__name__
        if name not in self.registered:
            raise CompassError(
                f'{kind} "{name}" is not defined', code="input", help=help_for(name, list(self.registered), "names")
            )
        known = self.registered[name]
        for key, value in (options or {}).items():
            if key not in known:
                raise CompassError(
                    f'Attribute "{key}" is not available on this {kind}',
                    code="input",
                    help=help_for(key, list(known), "options"),
                )
            if not isinstance(value, known[key]):
                raise CompassError(
                    f'Attribute "{key}" should have type "{known[key].__name__}" but instead found '
                    f'"{type(value).__name__}"',
                    code="input",
                )
        self.name = name
        self._options = MappingProxyType({**self.defaults.get(name, {}), **(options or {})})

    @classmethod
    def list_registered(cls) -> list[str]:
        """The names."""
        return list(cls.registered)

    @classmethod
    def list_registered_options(cls, name: str) -> dict[str, str]:
        """The options of a name, and the names of their types. CompassError for a name that there is not."""
        return {key: kind.__name__ for key, kind in cls(name).registered[name].items()}

    def __contains__(self, key: object) -> bool:
        return key in self._options

    def __getitem__(self, key: str) -> object:
        return self._options[key]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (other.name, other._options) == (self.name, self._options)

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self._options)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {dict(self._options)!r})"


class Executor(_Described):
    """An executor by its name, with options."""

    registered: ClassVar = {
        "graph": {"link-params": bool},
        "aot": {
            "link-params": bool,
            "unpacked-api": bool,
            "interface-api": str,
            "workspace-byte-alignment": int,
            "constant-byte-alignment": int,
        },
    }
    defaults: ClassVar = {"graph": {"link-params": False}, "aot": {"link-params": True}}


class Runtime(_Described):
    """A runtime by its name, with options."""

    registered: ClassVar = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}


class AotModule(GraphModule):
    """What runs a build for the executor `aot`: a graph, which calls the same kernels in the same order."""

    def get_input_name(self, index: int) -> str:
        """The name of an input."""
        names = [n.name for n in self.module.graph.nodes if not n.kernel]
        return names[index]


class BuildModule:
    """Builds of modules, one after another; what the last one gave can be asked for."""

    def __init__(self) -> None:
        self._made: GraphExecutorFactoryModule | None = None
        self._given: dict[str, object] = {}

    def set_params(self, params: Mapping[str, object]) -> None:
        """Arrays by the names of parameters of `main`, for a build without `params` of its own."""
        self._given = dict(params)

    def build(
        self, mod: object, target: object = None, target_host: object = None, executor: object = None, runtime: object = None,
        workspace_memory_pools: object = None, constant_memory_pools: object = None,
        params: Mapping[str, object] | None = None, mod_name: str = "default",
    ) -> tuple[str, Module, dict[str, NDArray]]:  # fmt: skip
        """The graph, the kernels and the parameters of a module (`relay.build`)."""
        made = self._made = build(
            mod,
            target,
            target_host,
            executor,
            runtime,
            workspace_memory_pools,
            constant_memory_pools,
            params or self._given,
            mod_name,
        )
        return made.get_graph_json(), made.get_lib(), made.get_params()

    def optimize(
        self,
        mod: object,
        target: object = None,
        target_host: object = None,
        params: Mapping[str, object] | None = None,
    ) -> tuple[IRModule, dict[str, NDArray]]:
        """The module after the passes of a build, and the parameters that are left."""
        return optimize(mod, target, params)

    def _last(self) -> GraphExecutorFactoryModule:
        if self._made is None:
            raise CompassError("nothing was built", code="input", help="call build(module, target) first")
        return self._made

    def get_graph_json(self) -> str:
        """The graph of the last build."""
        return self._last().get_graph_json()

    def get_module(self) -> Module:
        """The kernels of the last build."""
        return self._last().get_lib()

    def get_params(self) -> dict[str, NDArray]:
        """The parameters of the last build."""
        return self._last().get_params()

    def get_irmodule(self) -> object:
        """The module of the last build, as it was given."""
        return self._last().ir_mod

    def get_function_metadata(self) -> dict[str, object]:
        """Nothing is told of single kernels."""
        return self._last().function_metadata

    def get_devices(self) -> list[Device]:
        """No devices: who runs it chooses."""
        return self._last().get_devices()

    def list_params(self) -> list[str]:
        """The names of the parameters of the last build."""
        return list(self._last().get_params())


class _BuildModule:
    """`BuildModule` as a module: its methods are functions by name."""

    def __init__(self) -> None:
        self._builds = BuildModule()

    def __getitem__(self, name: str) -> Callable[..., object]:
        """A method. UsageError, with the names that there are, for others."""
        if name not in _OF_BUILDS:
            raise UsageError(
                f"a build has no function '{name}'", code="input", help=help_for(name, _OF_BUILDS, "functions")
            )
        if name == "build":
            return self._build
        found: Callable[..., object] = getattr(self._builds, name)
        return found

    def _build(
        self, mod: object, target: object, target_host: object = None, executor: object = None, runtime: object = None,
        workspace_memory_pools: object = None, constant_memory_pools: object = None, mod_name: str = "default",
    ) -> None:  # fmt: skip
        self._builds.build(
            mod, target, target_host, executor, runtime, workspace_memory_pools, constant_memory_pools, None, mod_name
        )


_OF_BUILDS = """build get_devices get_function_metadata get_graph_json get_irmodule get_module get_params list_params optimize
    set_params""".split()


class GraphExecutorCodegen:
    """From a function after the passes of a build (`relay.optimize`) to the graph, functions of loops and parameters, for one target."""

    def __init__(self, mod: object, target: object) -> None:
        self.target = one_target(target)

    def codegen(
        self, ir_module: IRModule, func: Function
    ) -> tuple[str, dict[Target, KernelModule], dict[str, NDArray]]:
        """The graph, the lowered kernels by their target, and the parameters by the names of their nodes. Kernels of other
        compilers are not lowered."""
        made: list[KernelModule] = []

        def lowered(f: Function, name: str) -> Module:
            if not f.attrs.get("Compiler"):
                made.append(lower_kernel(f, host_of(self.target), name))
            return Module()

        kernels = Kernels(lowered, prefix_of("default"))
        builder = GraphBuilder(func, plan(func), kernels, DEVICE_TYPES[self.target.kind.name])
        functions = tuple([f for module in made for f in module.functions])
        module = KernelModule(functions, functions[0].name, "") if functions else KernelModule((), "", "")
        return builder.text(), {host_of(self.target): module}, dict(builder.params)
