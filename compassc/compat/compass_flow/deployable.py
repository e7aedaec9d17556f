"""What a flow makes: a library of host and NPU, written to a folder, and run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import files
from compass_core.arrays import Array
from compass_core.errors import UsageError
from compass_runtime.compass_module import CompassModule
from compass_runtime.debug_executor import GraphModuleDebug
from compass_runtime.devices import Device, cpu
from compass_runtime.factory import GraphExecutorFactory
from compass_runtime.graph_executor import GraphModule
from compass_runtime.module import Module, load_module
from compass_runtime.ndarray import NDArray
from compassc.compat.compass_flow.config import CODE, CompassConfig, CompassFunctionConfig
from compassc.relay.backend.build import GraphExecutorFactoryModule

if TYPE_CHECKING:
    from compass_runtime.profile.calls import Report

LIBRARY = "nn_model.so"
"""The file of graph, kernels and parameters in a folder of an export."""


class Deployable:
    """A built program. `compiled_model`: what `relay.build` gives."""

    def __init__(self, compiled_model: GraphExecutorFactoryModule, config: CompassConfig, engine: str) -> None:
        self.compiled_model, self.config, self.engine = compiled_model, config, engine
        for module in self.compiled_model.get_lib().imported_modules:
            if isinstance(module, CompassModule):
                files.write(_program_of(module), module.content)

    def export(self, dir_path: str | os.PathLike[str], fcompile: None = None, **options: object) -> None:
        """Write the library, and the aipu.bin of each function of the NPU below it, to a folder, which may be there. RuntimeError for
        another engine than `driver`."""
        if self.engine != "driver":
            raise RuntimeError(f"only what the engine driver runs can be exported, forward_engine is {self.engine}")
        folder = Path(dir_path)
        assert not folder.exists() or folder.is_dir(), f"'{folder}' is no folder"
        for module in self.compiled_model.get_lib().imported_modules:
            if isinstance(module, CompassModule):
                path = _program_of(module)
                copied = folder / path.relative_to(self.config.output_dir)
                copied.parent.mkdir(parents=True, exist_ok=True)
                files.write(copied, files.read(path))
        folder.mkdir(parents=True, exist_ok=True)
        self.compiled_model.export_library(str(folder / LIBRARY), fcompile, **options)

    def create_execution_engine(
        self,
        rpc_sess: object = None,
        devices: Device | Sequence[Device] | None = None,
        with_profile: bool = False,
        **options: Any,
    ) -> ExecutionEngine:
        """What runs it here, with what `with_profile` needs to measure. With a session it is exported to `deploy_dir` (with `options`),
        and refused: graphs are run by this process."""
        if rpc_sess is not None:
            self.export(self.config.deploy_dir, **options)
        return ExecutionEngine(self.compiled_model.module, rpc_sess, devices, with_profile)


def _program_of(module: CompassModule) -> Path:
    path = CompassFunctionConfig(module.func_name).executable_path
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


class ExecutionEngine:
    """Runs a program. Inputs are those of the model in their order and types."""

    def __init__(
        self,
        compiled_model: str | os.PathLike[str] | Module,
        rpc_sess: object = None,
        devices: Device | Sequence[Device] | None = None,
        with_profile: bool = False,
    ) -> None:
        """`compiled_model`: the folder of an export, or a library. UsageError for a session."""
        if rpc_sess is not None:
            raise UsageError(
                "a program of host and NPU runs in this process only",
                code=CODE,
                help="send its aipu.bin to the server: `compass-run aipu.bin --server HOST:PORT`",
            )
        library = compiled_model if isinstance(compiled_model, Module) else load_module(Path(compiled_model) / LIBRARY)
        assert isinstance(library, GraphExecutorFactory), "it has a graph"
        own = [devices] if isinstance(devices, Device) else list(devices or [cpu()])
        module = library.executor(*own)
        self._names = [name for name in module.names if name not in module.params]
        self._profiled = GraphModuleDebug(module, own, module.text) if with_profile else None
        self.executor = self._profiled or GraphModule(module)

    def set_inputs(self, *args: Array | NDArray) -> None:
        """Set the inputs. NotImplementedError for what is neither an NDArray nor an array of NumPy."""
        if len(args) != len(self._names):
            raise UsageError(f"{len(args)} inputs are given, the model has {len(self._names)}", code=CODE)
        for name, value in zip(self._names, args):
            if not isinstance(value, NDArray) and not hasattr(value, "__array__"):
                raise NotImplementedError(f"an input is an array, not {type(value).__name__}")
            self.executor.set_input(name, value)

    def run(self, *args: Array | NDArray) -> list[NDArray]:
        """The outputs for inputs; without any for those that were set."""
        if args:
            self.set_inputs(*args)
        self.executor.module.run()
        return [NDArray(self.executor.get_output(i).numpy().copy()) for i in range(self.executor.get_num_outputs())]

    def profile(self, *args: Array | NDArray) -> Report:
        """What each kernel takes. AssertionError unless it was made `with_profile`."""
        assert self._profiled is not None, "make it by create_execution_engine(with_profile=True)"
        if args:
            self.set_inputs(*args)
        return self._profiled.profile()
