"""The layers of this toolchain where some of them are built for the AIFF."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.arrays import Array, base_of
from compassc.dsl import script as S
from compassc.gbuilder import plugin_api
from compassc.gbuilder.kernel_plugin import address_behind
from compassc.gbuilder.nodes import Node, Nodes
from compassc.gbuilder.plugin_api import BuilderParams, SubgraphNode
from compassc.gbuilder.plugin_host import Groups, OnAiff, Plugin
from compassc.graph import LayerError
from compassc.layers.accelerated.convolution import TYPE, Work, work_of
from compassc.layers.declare import consistent, type_of
from compassc.layers.kernel import Kernel
from compassc.layers.layer_checks import check
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.library import GroupPlugin, KernelCall, LayerLibrary, constant


@cache
def start() -> Kernel:
    """The kernel that starts the unit on chains of control words, parameters and activations."""
    k = LayerKernel()
    with k.active(), k.when(S.get_local_id() == 0):
        S.aiff(*(k.pointer(np.zeros(0, np.uint32)) for _ in range(3)))
    return k.kernel()


class AiffPlugin(GroupPlugin):
    """Makes the descriptors of a layer, and the launch of the kernel that starts the unit on them."""

    def __init__(self, call: KernelCall, work: Work, places: dict[int, plugin_api.Tensor]) -> None:
        """`places`: by id of an array of the descriptors, its tensor."""
        super().__init__(call)
        self._chains = work.descriptors
        self._places = places

    def generate_descriptor(self, sgnode: SubgraphNode, nodes: Sequence[object]) -> BuilderParams:
        words = BuilderParams()
        for word in (word for chain in self._chains for word in chain):
            words.append(self._address(word) if isinstance(word, np.ndarray) else word)
        return words

    def _address(self, word: Array) -> plugin_api.Tensor:
        array = base_of(word)
        start, at = (a.__array_interface__["data"][0] for a in (array, word))
        return address_behind(self._places[id(array)], at - start)

    def generate_params(self, sgnode: SubgraphNode, nodes: list[object]) -> BuilderParams:
        params, at = BuilderParams(), 0
        for chain in self._chains:
            params.append(address_behind(sgnode.attrs.descriptorbase, at))
            at += 4 * len(chain)
        return params


class AcceleratedLibrary(LayerLibrary):
    """Gives layers to the AIFF, where their results are proven to be the same, or are so by `allowed` assumptions; all others
    to kernels for TECs. `on_aiff` says of each convolution where it went, and why."""

    def __init__(self, *args: Any, allowed: frozenset[str], **given: Any) -> None:
        super().__init__(*args, **given)
        self._allowed = allowed

    def take(self, graph: Nodes, nodes: list[Node]) -> tuple[Groups, dict[int, str]]:
        taken: Groups = []
        for node in nodes:
            if node.type.name != TYPE:
                continue
            try:
                plugin = self._plugin(node)
            except LayerError as reason:
                self.on_aiff.append(OnAiff(node.layer, str(reason)))
            else:
                taken.append((Plugin(plugin, Path(__file__)), [node]))
        mine = {id(group[0]) for _, group in taken}
        rest, refused = super().take(graph, [node for node in nodes if id(node) not in mine])
        return taken + rest, refused

    def _plugin(self, node: Node) -> AiffPlugin:
        declared = type_of(TYPE)
        with consistent(node.layer):
            check(declared, node.layer)
        work = work_of(node.layer, self._target, self._allowed)
        kernel = start()
        constants = [constant(f"constant{i}", array) for i, array in enumerate(work.constants)]
        call = KernelCall(
            kernel.name,
            list(constants),
            partial(self._objects.object_of, kernel),
            partial(self._objects.function_of, kernel),
        )
        arrays = (work.input, work.output, *work.constants)
        tensors = (node.inputs[0], node.outputs[0], *constants)
        places = {id(base_of(array)): tensor for array, tensor in zip(arrays, tensors, strict=True)}
        self.on_aiff.append(OnAiff(node.layer, "", work.nodes, tuple(sorted(work.scaling.assumed))))
        return AiffPlugin(call, work, places)
