"""The layers as builder plugins: one per layer type, all alike. Kernels are compiled in the build's work folder."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from compass_core import files
from compassc.gbuilder.plugin_api import BuilderOpPlugin, BuilderParams, OpType, SubgraphNode, Tensor, register_optype
from compassc.gbuilder.plugin_host import Plugin
from compassc.layers.arithmetic import Array
from compassc.layers.bind import layer_of
from compassc.layers.kernels import BUILDERS, STEPS, kernel_of, load_kernels
from compassc.layers.layer import Layer as LayerView
from compassc.layers.layer import LayerError, TensorType
from compassc.layers.source import Kernel
from compassc.oplib.layer import OPERATORS, Choice, Layer, Unsupported
from compassc.oplib.plugin import Workshop, load_families

STACK = 0x10000
"""Bytes of stack of a task: all LSRAM arrays of a kernel and its frames."""


MOVES = frozenset("Reshape Squeeze Flatten Transpose Permute Split Slice StridedSlice Crop Tile Gather NoOp".split())
"""Layers of the operator library that only move elements, whatever these stand for."""


def constant(name: str, array: Array) -> Tensor:
    """Constant data of a kernel as a tensor of the graph."""
    tensor = Tensor()
    tensor.name, tensor.shape, tensor.dtype = name, list(array.shape), array.dtype.name
    tensor.data = np.ascontiguousarray(array).tobytes()
    return tensor


def function_of(kernel: Kernel, folder: Path) -> Any:
    """The kernel's function: its text is written to `folder` and read like a user's file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.absolute() / f"{kernel.name}.py"
    files.write(path, kernel.text)
    module = ModuleType(kernel.name)
    module.__file__ = str(path)
    sys.modules[kernel.name] = module
    exec(compile(kernel.text, str(path), "exec", dont_inherit=True), vars(module))  # noqa: S102 (our own text)
    return module.layer


def _moves(layer: LayerView) -> bool:
    border = layer.type == "Pad" and layer.word("mode", "CONSTANT") != "CONSTANT"
    return layer.type in MOVES or border


class LayerPlugin(BuilderOpPlugin):
    """Takes single layers of one type. `refusal` says why the last layer was not taken."""

    compassc_stack = STACK

    def __init__(self, op_type: str, workshop: Workshop) -> None:
        self._type = register_optype(op_type)
        self._workshop = workshop
        self._choice: Choice | None = None
        self.refusal = ""

    def get_graph_pattern(self) -> tuple[list[tuple[str, OpType]], list[tuple[str, str]]]:
        return [("layer", self._type)], []

    def check_params(self, nodes: list[Any]) -> bool:
        try:
            self._choice = self._choose(nodes[0])
        except (LayerError, Unsupported) as reason:
            self.refusal = str(reason)
            return False
        return True

    def _choose(self, node: Any) -> Choice:
        """The layer's kernel and arguments. Float layers without a kernel here have one in the operator library."""
        layer = layer_of(node)
        try:
            kernel = kernel_of(layer)
        except LayerError:
            if layer.type not in OPERATORS or (layer.is_quantised and not _moves(layer)):
                raise
            return OPERATORS[layer.type](Layer(node))
        tensors = {t.name: t for t in (*node.inputs, *node.outputs)}
        args: list[Any] = []
        for i, value in enumerate(kernel.arguments):
            if isinstance(value, TensorType):
                args.append(tensors[value.name])
            elif isinstance(value, np.ndarray):
                args.append(constant(f"constant{i}", value))
            else:
                args.append(value)
        return Choice(function_of(kernel, self._workshop.folder), kernel.name, args)

    def setup(self, sgnode: SubgraphNode, nodes: list[Any]) -> bool:
        """Chooses the kernel; the constants it wants replace the layer's own."""
        self._choice = self._choose(nodes[0])
        wanted = [a for a in self._choice.args if isinstance(a, Tensor) and a.data is not None]
        inputs = {id(t) for t in sgnode.inputs}
        sgnode.constants.clear()
        sgnode.constants.update({f"{nodes[0].name}/{t.name}": t for t in wanted if id(t) not in inputs})
        return True

    def generate_code_name(self, sgnode: SubgraphNode, nodes: list[Any]) -> str:
        return str(self._workshop.object_of(self._chosen))

    def generate_params(self, sgnode: SubgraphNode, nodes: list[Any]) -> BuilderParams:
        params = BuilderParams()
        for value in self._chosen.args:
            params.append(struct.unpack("<I", struct.pack("<f", value))[0] if isinstance(value, float) else value)
        return params

    @property
    def _chosen(self) -> Choice:
        assert self._choice is not None, "setup chooses"
        return self._choice


def library(folder: Path, target: str) -> list[Plugin]:
    """A plugin per layer type with a kernel; kernels that are chosen are compiled in `folder`."""
    load_kernels()
    load_families()
    workshop = Workshop(folder, target)
    names = dict.fromkeys((*STEPS, *BUILDERS, *OPERATORS))
    return [Plugin(LayerPlugin(name, workshop), Path(__file__)) for name in names]
