"""The graph executor: runs the kernels of a graph one after another, on memory that is planned before.

A graph is JSON: nodes with inputs (`null`) and kernels (`tvm_op`), outputs, and for each value its shape, type of elements and
the number of the storage it lies in. Values whose lives do not overlap share a storage.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.dataclass import dataclass
from compass_core.reading import jsontext
from compass_runtime.devices import Device, cpu
from compass_runtime.errors import RuntimeStateError, RuntimeValueError
from compass_runtime.host_module import HostLibrary
from compass_runtime.module import Module
from compass_runtime.ndarray import NDArray
from compass_runtime.ndarray import empty as empty_tensor
from compass_runtime.packed import PackedFunc
from compass_runtime.param_dict import load_param_dict
from compass_runtime.program import numpy_dtype
from compass_runtime.timing import BenchmarkResult, Plan, time_evaluator

if TYPE_CHECKING:
    from compass_runtime.rpc.remote import RemoteModule

NOTHING = "__nop"
"""The kernel of nodes whose result is their input with another shape."""
COPY = "__copy"
CPU = 1


@dataclass(frozen=True)
class Node:
    """A value that is given (`kernel` is empty), or a kernel that is run on values (numbers of entries)."""

    name: str
    kernel: str
    inputs: tuple[int, ...]
    outputs: int


@dataclass(frozen=True)
class Graph:
    """A graph that was read. `first`: the number of the first entry of each node; shapes, types of elements and storages are
    those of entries."""

    nodes: tuple[Node, ...]
    arguments: tuple[int, ...]
    heads: tuple[int, ...]
    first: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    storages: tuple[int, ...]
    devices: tuple[int, ...]


def _wrong(why: str) -> RuntimeValueError:
    return RuntimeValueError(
        f"this is no graph that can be run: {why}", code="graph-json", help="give the graph that relay.build made"
    )


def read_graph(text: str) -> Graph:
    """The graph of a JSON text. RuntimeValueError where it is damaged."""
    given = jsontext.parse(text, "graph", code="graph-json", what="the graph")
    try:
        return _graph(given)
    except RuntimeValueError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _wrong(f"{type(error).__name__}: {error}") from None


def _graph(given: Any) -> Graph:
    rows = tuple(int(n) for n in given["node_row_ptr"])
    attrs = {name: pair[1] for name, pair in given["attrs"].items()}
    entries = len(attrs["shape"])
    if len(rows) != len(given["nodes"]) + 1 or rows[0] != 0 or rows[-1] != entries or list(rows) != sorted(rows):
        raise _wrong("the numbers of its entries do not fit its nodes")
    nodes = tuple(_node(i, n, rows) for i, n in enumerate(given["nodes"]))
    arguments = tuple(int(i) for i in given["arg_nodes"])
    if list(arguments) != [i for i, n in enumerate(nodes) if not n.kernel]:
        raise _wrong("arg_nodes are not the nodes without a kernel")
    shapes = tuple(tuple(int(d) for d in shape) for shape in attrs["shape"])
    dtypes, storages = tuple(map(str, attrs["dltype"])), tuple(int(s) for s in attrs["storage_id"])
    devices = tuple(int(d) for d in attrs.get("device_index", [CPU] * entries))
    if not len(dtypes) == len(storages) == len(devices) == entries:
        raise _wrong(
            f"its {entries} entries have {len(dtypes)} types, {len(storages)} storages, {len(devices)} devices"
        )
    if any(d < 0 for shape in shapes for d in shape) or any(not 0 <= s < entries for s in storages):
        raise _wrong("a shape or a storage is negative, or there is no such storage")
    return Graph(
        nodes, arguments, tuple(_entry(h, rows) for h in given["heads"]), rows, shapes, dtypes, storages, devices
    )


def _entry(given: list[int], rows: Sequence[int], before: int | None = None) -> int:
    """The number of an entry that is given as [node, output, version]."""
    node, output = int(given[0]), int(given[1])
    most = len(rows) - 1 if before is None else before
    if not 0 <= node < most or not 0 <= output < rows[node + 1] - rows[node]:
        raise _wrong(f"there is no output {output} of node {node} at that place")
    return rows[node] + output


def _node(i: int, given: Any, rows: Sequence[int]) -> Node:
    inputs = tuple(_entry(x, rows, i) for x in given["inputs"])
    outputs = rows[i + 1] - rows[i]
    if given["op"] == "null":
        if inputs or outputs != 1:
            raise _wrong(f"the input '{given['name']}' has inputs or several outputs")
        return Node(str(given["name"]), "", (), 1)
    if given["op"] != "tvm_op":
        raise _wrong(f"a node is a {given['op']!r}")
    kernel, name = str(given["attrs"]["func_name"]), str(given["name"])
    if kernel == NOTHING and (outputs != 1 or len(inputs) != 1):
        raise _wrong(f"the node '{name}' reshapes {len(inputs)} values to {outputs}")
    return Node(name, kernel, inputs, outputs)


class GraphExecutor(Module):
    """A graph with its memory and its kernels, on a device. As a module it has the functions that programs call by name.

    With the device and the library of a remote session the memory is there, and each kernel is a call.
    """

    type_key = "GraphExecutor"

    def __init__(
        self,
        graph: str,
        library: Module | RemoteModule,
        devices: Sequence[Device],
        params: Mapping[str, NDArray] | None = None,
    ) -> None:
        super().__init__()
        self.text, self.graph, self.library = graph, read_graph(graph), library
        self.device = devices[0] if devices else cpu()
        self.names = [self.graph.nodes[i].name for i in self.graph.arguments]
        self._places = {name: i for i, name in enumerate(self.names)}
        self.params: set[str] = set()
        self.entries = self._memory()
        self.steps = [(n, self._step(n, i)) for i, n in enumerate(self.graph.nodes) if n.kernel not in ("", NOTHING)]
        self._run = [step for _, step in self.steps]
        self.set_params(params or {})

    def _memory(self) -> list[NDArray]:
        """A tensor for each entry, within the storage that it shares."""
        g = self.graph
        sizes: dict[int, int] = {}
        for shape, dtype, storage in zip(g.shapes, g.dtypes, g.storages):
            size = math.prod(shape) * _dtype(dtype).itemsize
            sizes[storage] = max(sizes.get(storage, 0), size)
        try:
            pools = {s: empty_tensor((max(-(-size // 4), 1),), "float32", self.device) for s, size in sizes.items()}
        except (MemoryError, OverflowError, ValueError) as error:
            total = sum(sizes.values())
            raise RuntimeStateError(f"the graph takes {total} bytes of memory: {error}", code="out-of-memory") from None
        return [
            pools[storage]._create_view(shape, _dtype(dtype))
            for shape, dtype, storage in zip(g.shapes, g.dtypes, g.storages)
        ]

    def _step(self, node: Node, index: int) -> Callable[[], object]:
        first = self.graph.first[index]
        inputs = [self.entries[i] for i in node.inputs]
        outputs = self.entries[first : first + node.outputs]
        if node.kernel == COPY:
            return partial(inputs[0].copyto, outputs[0])
        for module in self.library.tree() if isinstance(self.library, Module) else ():
            if isinstance(module, HostLibrary) and module.find(node.kernel):
                return module.prepared(*inputs, *outputs)
        if not self.library.implements_function(node.kernel, query_imports=True):
            raise RuntimeValueError(
                f"no such function in module: {node.kernel}", code="no-function", help="give the library of the graph"
            )
        return partial(self.library.get_function(node.kernel, query_imports=True), *inputs, *outputs)

    # ------------------------------------------------------------------------------------------------- what programs call

    def set_params(self, params: Mapping[str, NDArray]) -> None:
        """Set parameters: inputs that stay. Names that are not in the graph are skipped."""
        for name, value in params.items():
            if name in self._places:
                self.entry_of(name).copyfrom(value)
                self.params.add(name)

    def load_params(self, data: bytes | bytearray) -> None:
        """Set the parameters of a file (`save_param_dict`)."""
        self.set_params(load_param_dict(data))

    def input_index(self, key: int | str) -> int:
        """The number of an input by its name; -1 where there is none."""
        if isinstance(key, str):
            return self._places.get(key, -1)
        return key if 0 <= key < len(self.names) else -1

    def entry_of(self, key: int | str) -> NDArray:
        """The tensor of an input. RuntimeStateError where there is none of that name or number."""
        index = self.input_index(key)
        if index < 0:
            raise RuntimeStateError(
                f"Could not find '{key}' in graph's inputs",
                code="graph-input",
                help=f"inputs are {', '.join(self.names)}",
            )
        return self.entries[self.graph.first[self.graph.arguments[index]]]

    def set_input(self, key: int | str, value: Array | NDArray | None) -> None:
        """Copy an array into an input. RuntimeValueError for another shape."""
        target = self.entry_of(key)
        array = np.asarray(value)
        if array.shape != target.shape:
            raise RuntimeValueError(
                f"the input '{key}' has the shape {target.shape}, the array {array.shape}", code="tensor-shape"
            )
        target.copyfrom(array)

    def run(self) -> None:
        """Run all kernels."""
        for step in self._run:
            step()

    def output(self, index: int) -> NDArray:
        """An output, which the next run overwrites. RuntimeValueError where there is none of that number."""
        if not 0 <= index < len(self.graph.heads):
            raise RuntimeValueError(
                f"there is no output {index}: the graph has {len(self.graph.heads)}", code="graph-output"
            )
        return self.entries[self.graph.heads[index]]

    def find(self, name: str) -> Callable[..., object] | None:
        functions: dict[str, Callable[..., object]] = {
            "set_input": self.set_input,
            "run": self.run,
            "get_output": lambda i, out=None: _out(self.output(i), out),
            "get_input": lambda key, out=None: None if self.input_index(key) < 0 else _out(self.entry_of(key), out),
            "get_num_outputs": lambda: len(self.graph.heads),
            "get_num_inputs": lambda: len(self.names),
            "get_input_index": self.input_index,
            "get_input_info": self.input_info,
            "load_params": self.load_params,
        }
        return functions.get(name)

    def input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and types of elements of the inputs that are no parameters, by name."""
        free = [name for name in self.names if name not in self.params]
        return {n: self.entry_of(n).shape for n in free}, {n: self.entry_of(n).dtype for n in free}


def _dtype(name: str) -> NumpyDType:
    try:
        return numpy_dtype(name)
    except TypeError:
        raise _wrong(f"a value has elements of {name!r}") from None


def _out(found: NDArray, out: NDArray | None) -> NDArray:
    if out is None:
        return found
    if tuple(out.shape) != found.shape:
        raise RuntimeValueError(
            f"the result has the shape {found.shape}, `out` {tuple(out.shape)}", code="tensor-shape"
        )
    found.copyto(out)
    return out


class GraphModule:
    """What programs do with a graph executor."""

    def __init__(self, module: GraphExecutor) -> None:
        self.module = module

    def set_input(
        self, key: int | str | None = None, value: Array | NDArray | None = None, **params: Array | NDArray
    ) -> None:
        """Copy an array into an input, by number or name, or several by name; unknown names among several are skipped."""
        if key is not None:
            self.module.set_input(key, value)
        for name in sorted(params, key=lambda n: -np.asarray(params[n]).size):
            if self.module.input_index(name) >= 0:
                self.module.set_input(name, params[name])

    def run(self, **inputs: Any) -> None:
        """Run the graph, after inputs were set by name."""
        if inputs:
            self.set_input(**inputs)
        self.module.run()

    def get_num_outputs(self) -> int:
        """How many outputs there are."""
        return len(self.module.graph.heads)

    def get_num_inputs(self) -> int:
        """How many inputs there are, parameters among them."""
        return len(self.module.names)

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray | None:
        """An input, by number or name; None where there is none of that name."""
        return None if self.module.input_index(index) < 0 else _out(self.module.entry_of(index), out)

    def get_input_index(self, name: str) -> int:
        """The number of an input; -1 where there is none."""
        return self.module.input_index(name)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and types of elements of the inputs that are no parameters, by name."""
        return self.module.input_info()

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output, which the next run overwrites; with `out` a copy in it."""
        return _out(self.module.output(index), out)

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Set the parameters of a file (`save_param_dict`)."""
        self.module.load_params(params_bytes)

    def benchmark(
        self, device: Device, func_name: str = "run", repeat: int = 5, number: int = 5, min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100, end_to_end: bool = False, cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1, **inputs: Any,
    ) -> BenchmarkResult:  # fmt: skip
        """Seconds per run, after inputs were set by name. `end_to_end`: inputs are set and outputs are copied in each run, too.
        See `timing.Plan` for the numbers."""
        self.set_input(**inputs)
        plan = Plan(
            number, repeat, min_repeat_ms or 0, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
        )

        def whole() -> None:
            self.run(**inputs)
            for i in range(self.get_num_outputs()):
                self.get_output(i).numpy()

        return time_evaluator(whole if end_to_end else self.module.get_function(func_name), device, plan)()

    def debug_get_output(self, node: int | str, out: NDArray | Device | None = None) -> NDArray:
        """NotImplementedError: the debug executor has it."""
        raise NotImplementedError("give the graph to the debug executor for outputs of nodes within it")

    def __getitem__(self, key: str) -> PackedFunc:
        return self.module[key]


def create(graph_json_str: str, libmod: Module | RemoteModule, device: Device | Sequence[Device]) -> GraphModule:
    """A graph with the library of its kernels on a device, or both of a remote session. RuntimeValueError for damaged graphs and other devices."""
    devices = [device] if isinstance(device, Device) else list(device) if isinstance(device, (list, tuple)) else []
    if not devices or not all(isinstance(d, Device) for d in devices):
        raise RuntimeValueError("dev has to be the type of Device or a list of Device", code="graph-input")
    return GraphModule(GraphExecutor(graph_json_str, libmod, devices))


def text_of(graph: Mapping[str, object]) -> str:
    """The JSON of a graph."""
    return json.dumps(graph, indent=2)
