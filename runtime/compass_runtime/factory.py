"""What makes graph executors: a graph, its parameters, and the kernels as imports; one file when it is exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compass_core.errors import CompassError
from compass_runtime.devices import Device
from compass_runtime.errors import RuntimeValueError
from compass_runtime.graph_executor import GraphExecutor, read_graph
from compass_runtime.module import LOADER, RUNNABLE, SERIALIZABLE, Module, sealed, unsealed
from compass_runtime.ndarray import NDArray
from compass_runtime.packed import register_func
from compass_runtime.param_dict import load_param_dict, save_param_dict


class GraphExecutorFactory(Module):
    """A graph with its parameters. Its function `name` makes an executor on devices."""

    type_key = "compass.runtime.GraphExecutorFactory"
    flags = SERIALIZABLE | RUNNABLE

    def __init__(self, graph: str, params: Mapping[str, NDArray], name: str = "default") -> None:
        super().__init__()
        read_graph(graph)
        self.graph, self.params, self.name = graph, dict(params), name

    def executor(self, *devices: Device) -> GraphExecutor:
        """An executor with its parameters set."""
        return GraphExecutor(self.graph, self, devices, self.params)

    def without_params(self) -> GraphExecutorFactory:
        """The same without parameters, which are loaded into executors then."""
        made = GraphExecutorFactory(self.graph, {}, self.name)
        for module in self.imported_modules:
            made.import_module(module)
        return made

    def find(self, name: str) -> Callable[..., object] | None:
        functions: dict[str, Callable[..., object]] = {
            "get_graph_json": lambda: self.graph,
            "get_graph_params": lambda: dict(self.params),
            "remove_params": self.without_params,
            "debug_create": lambda name, *devices: self.executor(*devices),
        }
        return self.executor if name == self.name else functions.get(name)

    def save_to_bytes(self) -> bytes:
        return sealed({"graph": self.graph, "name": self.name}, bytes(save_param_dict(self.params)))


def load_content(data: bytes) -> GraphExecutorFactory:
    """The module that `save_to_bytes` wrote. RuntimeValueError when the bytes are damaged."""
    try:
        fields, content = unsealed(data, GraphExecutorFactory.type_key)
        graph, name = fields["graph"], fields["name"]
        if not isinstance(graph, str) or not isinstance(name, str):
            raise TypeError("a field is of another type")
        return GraphExecutorFactory(graph, load_param_dict(content), name)
    except (CompassError, ValueError, KeyError, TypeError):
        raise RuntimeValueError(
            f"the content of a {GraphExecutorFactory.type_key} is damaged", code="module-file"
        ) from None


register_func(LOADER + GraphExecutorFactory.type_key, load_content)
