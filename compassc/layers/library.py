"""The layers of this toolchain for the graph builder: which layers make one kernel, and the kernels' objects.

An element-wise layer joins the kernel of the layer before it where nobody else uses what stands between them. Results
are the same as in kernels of their own: between two layers of a kernel values are as they would be stored.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from compass_core.errors import CompassError
from compassc.gbuilder import plugin_api
from compassc.gbuilder.memory import owner
from compassc.gbuilder.nodes import Node, Nodes, content_of
from compassc.gbuilder.plugin_api import BuilderOpPlugin, BuilderParams, SubgraphNode
from compassc.gbuilder.plugin_host import Groups, OnAiff, Plugin
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Array
from compassc.layers.declare import all_types
from compassc.layers.kernel_cache import KernelCache
from compassc.layers.kernels import STEPS, kernel_of, load_kernels, takes_tail
from compassc.layers.machine import planned_for

STACK = 0x10000
"""Bytes of stack of a task: all LSRAM arrays of a kernel and its frames."""
LONGEST = 16
"""Layers of one kernel."""


def constant(name: str, array: Array) -> plugin_api.Tensor:
    """Constant data of a kernel as a tensor of the graph."""
    tensor = plugin_api.Tensor()
    tensor.name, tensor.shape, tensor.dtype = name, list(array.shape), array.dtype.name
    tensor.content = content_of(array)
    return tensor


class KernelCall(NamedTuple):
    """A call of the kernel that computes a group of layers: an argument per parameter, and functions that return the
    kernel's object and the kernel as a function of the DSL.

    `name` identifies the kernel.
    """

    name: str
    args: list[Any]
    object: Callable[[], Path]
    function: Callable[[], Any]


class GroupPlugin(BuilderOpPlugin):
    """Makes the kernel of one group of layers."""

    compassc_stack = STACK

    def __init__(self, work: KernelCall) -> None:
        self.work = work

    def setup(self, sgnode: SubgraphNode, nodes: list[Any]) -> bool:
        """The constants that the kernel wants replace the layers' own."""
        wanted = [a for a in self.work.args if isinstance(a, plugin_api.Tensor) and a.is_constant]
        inputs = {id(t) for t in sgnode.inputs}
        sgnode.constants.clear()
        sgnode.constants.update({f"{nodes[0].name}/{t.name}": t for t in wanted if id(t) not in inputs})
        return True

    def generate_code_name(self, sgnode: SubgraphNode, nodes: list[Any]) -> str:
        return str(self.work.object())

    def generate_kernel(self, sgnode: SubgraphNode, nodes: list[Any]) -> str:
        return self.work.name

    def generate_params(self, sgnode: SubgraphNode, nodes: list[Any]) -> BuilderParams:
        params = BuilderParams()
        for value in self.work.args:
            params.append(struct.unpack("<I", struct.pack("<f", value))[0] if isinstance(value, float) else value)
        return params


class LayerLibrary:
    """Takes layers of a graph; kernels that are not known yet are compiled in `folder`, on all processors."""

    def __init__(self, folder: Path, target: str, fuse: bool = True) -> None:
        load_kernels()
        self._target = target
        self._objects = KernelCache(folder, target)
        self._fuse = fuse
        self.on_aiff: list[OnAiff] = []

    @property
    def types(self) -> tuple[str, ...]:
        """The layer types that are known."""
        return tuple(all_types())

    def take(self, graph: Nodes, nodes: list[Node]) -> tuple[Groups, dict[int, str]]:
        """Groups of layers with the plugin of their kernel; and, by id of a node, why it was not taken."""
        free = {id(n): n for n in nodes}
        users: dict[int, list[Node]] = {}
        for node in graph.nodes:
            for tensor in node.inputs:
                users.setdefault(id(owner(tensor)), []).append(node)
        ends = {id(owner(t)) for t in graph.outputs}
        found: list[tuple[KernelCall, list[Node]]] = []
        refused: dict[int, str] = {}
        for node in nodes:
            if id(node) not in free:
                continue
            try:
                with planned_for(self._target):
                    group, work = self._group(node, free, users, ends)
            except LayerError as reason:
                refused[id(node)] = str(reason)
                continue
            for member in group:
                del free[id(member)]
            found.append((work, group))
        if not refused:
            self._compile(graph, found)
        return [(Plugin(GroupPlugin(work), Path(__file__)), group) for work, group in found], refused

    def _group(
        self, first: Node, free: dict[int, Node], users: dict[int, list[Node]], ends: set[int]
    ) -> tuple[list[Node], KernelCall]:
        """A layer with the element-wise layers behind it that join its kernel: as many as go."""
        nodes = [first]
        if self._fuse and takes_tail(first.type.name):
            while len(nodes) < LONGEST and (following := _following(nodes[-1], free, users, ends)) is not None:
                nodes.append(following)
        while True:
            try:
                return nodes, self._work(nodes)
            except LayerError:
                if len(nodes) == 1:
                    raise
            nodes.pop()

    def _work(self, nodes: Sequence[Node]) -> KernelCall:
        """The kernel of layers, and its arguments."""
        kernel = kernel_of([n.layer for n in nodes])
        tensors = {t.name: t for n in nodes for t in (*n.inputs, *n.outputs)}
        args: list[Any] = []
        for i, value in enumerate(kernel.arguments):
            if isinstance(value, Tensor):
                args.append(tensors[value.name])
            elif isinstance(value, np.ndarray):
                args.append(constant(f"constant{i}", value))
            else:
                args.append(value)
        return KernelCall(
            kernel.name, args, partial(self._objects.object_of, kernel), partial(self._objects.function_of, kernel)
        )

    def _compile(self, graph: Nodes, found: Sequence[tuple[KernelCall, list[Node]]]) -> None:
        """Has every kernel's object made once; clang runs beside clang."""

        def compiled(work: KernelCall, layer: Layer) -> None:
            try:
                work.object()
            except CompassError as error:
                if error.span is None or not error.span.file.endswith(".py"):
                    raise  # not about the text
                types = ", ".join(f"'{t.name}' {t.dtype}" for t in (*layer.inputs, *layer.outputs))
                raise graph.graph.error(
                    layer,
                    f"the layer '{layer.name}' of type {layer.type} has no kernel for {types}: {error.message}",
                    "a Cast, Quantize or DeQuantize makes tensors of one kind of types",
                    "no-plugin",
                ) from error

        distinct = {work.name: (work, nodes[0].layer) for work, nodes in found}.values()
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(lambda item: compiled(*item), distinct))


def _following(node: Node, free: dict[int, Node], users: dict[int, list[Node]], ends: set[int]) -> Node | None:
    """The element-wise layer that alone uses what a layer makes; users of a view of it are users too."""
    if len(node.outputs) != 1 or id(owner(node.outputs[0])) in ends:
        return None
    made = node.outputs[0]
    by = users.get(id(owner(made)), [])
    if len(by) != 1 or all(t is not made for t in by[0].inputs):
        return None
    if id(by[0]) not in free or by[0].type.name not in STEPS or len(by[0].outputs) != 1:
        return None
    return by[0]
