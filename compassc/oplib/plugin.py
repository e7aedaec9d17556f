"""The operator library as builder plugins: one per layer type, all alike."""

from __future__ import annotations

import importlib
import pkgutil
import struct
from pathlib import Path
from typing import Any

from compassc.gbuilder.plugin_api import BuilderOpPlugin, BuilderParams, OpType, SubgraphNode, Tensor, register_optype
from compassc.gbuilder.plugin_host import Plugin
from compassc.oplib import families
from compassc.oplib.layer import OPERATORS, Choice, Layer, Selector, Unsupported

STACK = 0x10000
"""Bytes of stack of a task: all LSRAM arrays of a kernel and its frames."""


class Workshop:
    """Compiles kernels, each variant once."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder = folder
        self.target = target
        self._objects: dict[str, Path] = {}

    def object_of(self, choice: Choice) -> Path:
        """The object file of a kernel variant."""
        if choice.name not in self._objects:
            from compassc.dsl import BuildManager

            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder.absolute() / f"{choice.name}.o"
            BuildManager(self.target).gen_op_lib(choice.kernel, choice.name, str(path))
            self._objects[choice.name] = path
        return self._objects[choice.name]


class LibraryPlugin(BuilderOpPlugin):
    """Takes single layers of one type. `refusal` says why the last layer was not taken."""

    compassc_stack = STACK

    def __init__(self, op_type: str, select: Selector, workshop: Workshop) -> None:
        self._type = register_optype(op_type)
        self._select = select
        self._workshop = workshop
        self._choice: Choice | None = None
        self.refusal = ""

    def get_graph_pattern(self) -> tuple[list[tuple[str, OpType]], list[tuple[str, str]]]:
        return [("layer", self._type)], []

    def check_params(self, nodes: list[Any]) -> bool:
        try:
            self._select(Layer(nodes[0]))
        except Unsupported as reason:
            self.refusal = str(reason)
            return False
        return True

    def setup(self, sgnode: SubgraphNode, nodes: list[Any]) -> bool:
        """Chooses the kernel; the constants it wants replace the layer's own."""
        self._choice = self._select(Layer(nodes[0]))
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


def plugins(folder: Path, target: str) -> list[Plugin]:
    """A plugin per registered layer type."""
    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")
    workshop = Workshop(folder, target)
    return [
        Plugin(LibraryPlugin(name, select, workshop), Path(select.__code__.co_filename))
        for name, select in OPERATORS.items()
    ]
