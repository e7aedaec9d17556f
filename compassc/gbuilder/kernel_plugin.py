"""The plugin of one DSL kernel as an object.

It does what the file aipubt_gb_NAME.py does that is written beside the graph for other graph builders. This one builds
with it, so that no program is run that was made of names and numbers from a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core.aipubin.kernelinfo import KernelInfo, Param
from compassc.gbuilder.dsl_files import LAYER, DescriptorWord, descriptor_words, op_type, plugin_name, scalar_word
from compassc.gbuilder.plugin_api import BuilderOpPlugin, BuilderParams, OpType, SubgraphNode, Tensor, register_optype
from compassc.gbuilder.plugin_host import Plugin

if TYPE_CHECKING:
    from compassc.gbuilder.nodes import Node


class KernelPlugin(BuilderOpPlugin):
    """Takes the layer of one kernel, whose object is found as `code_name`."""

    def __init__(self, info: KernelInfo, code_name: str, descriptors: Mapping[str, Sequence[DescriptorWord]]) -> None:
        self._info = info
        self._type = register_optype(op_type(info.kernel))
        self._code_name = code_name
        self._starts, self._words = descriptor_words(info, descriptors)
        self.compassc_kernel = json.dumps(info.to_json())

    def get_graph_pattern(self) -> tuple[list[tuple[str, OpType]], list[tuple[str, str]]]:
        return [("layer", self._type)], []

    def setup(self, sgnode: SubgraphNode, nodes: list[object]) -> bool:
        sgnode.attrs.keeping_layout = False
        return True

    def generate_code_name(self, sgnode: SubgraphNode, nodes: list[object]) -> str:
        return self._code_name

    def generate_descriptor(self, sgnode: SubgraphNode, nodes: Sequence[Node]) -> BuilderParams:
        words = BuilderParams()
        for word in self._words:
            words.append(word if isinstance(word, int) else _address(sgnode, *word))
        return words

    def generate_params(self, sgnode: SubgraphNode, nodes: list[object]) -> BuilderParams:
        params = BuilderParams()
        for param in self._info.params:
            params.append(self._value(sgnode, param))
        return params

    def _value(self, sgnode: SubgraphNode, param: Param) -> int | Tensor:
        if param.role == "descriptor":
            return _address(sgnode, "descriptor", 0, self._starts[param.name])
        if param.role == "const":
            return sgnode.constants[f"{LAYER}/{param.name}"]
        if param.role == "attr":
            return scalar_word(param)
        return (sgnode.inputs if param.role == "input" else sgnode.outputs)[param.index]


def _address(sgnode: SubgraphNode, kind: str, number: int | str, offset: int) -> Tensor:
    """The address of a word: `offset` bytes behind the start of a tensor, or of the descriptors."""
    if kind == "descriptor":
        base = sgnode.attrs.descriptorbase
    elif kind == "const":
        base = sgnode.constants[f"{LAYER}/{number}"]
    else:
        base = (sgnode.inputs if kind == "input" else sgnode.outputs)[int(number)]
    return address_behind(base, offset)


def address_behind(base: Tensor, offset: int) -> Tensor:
    """The place `offset` bytes behind the start of a tensor, as a word of parameters or descriptors."""
    tensor = Tensor(base)
    tensor.memory_offset().set_base_offset(base.memory_offset())
    tensor.memory_offset().relative_offset = offset
    return tensor


def kernel_plugin(
    info: KernelInfo, code_name: str, folder: Path, descriptors: Mapping[str, Sequence[DescriptorWord]]
) -> Plugin:
    """The plugin, under the name of the file in `folder` that does the same."""
    return Plugin(KernelPlugin(info, code_name, descriptors), folder / plugin_name(info.kernel))
