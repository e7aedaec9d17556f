"""The layers of this toolchain for the graph builder: the calls of their kernels, and the kernels' objects.

Which layers make one kernel is up to the passes on launches (`compassc.layers.launches`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core import files, switches
from compass_core.arrays import Array, content_of
from compass_core.errors import CompassError
from compass_core.files import claims
from compass_core.files.pieces import Pieces
from compass_core.lazy import LazyModule
from compass_core.namedtuple import NamedTuple
from compass_core.progress import told
from compassc.gbuilder import plugin_api
from compassc.gbuilder.build import GraphOptions
from compassc.gbuilder.memory import owner
from compassc.gbuilder.nodes import Node, Nodes
from compassc.gbuilder.plugin_api import BuilderOpPlugin, BuilderParams, SubgraphNode
from compassc.gbuilder.plugin_host import Groups, Match, OnAiff, Plugin
from compassc.graph import Layer, Tensor
from compassc.graph.launches import Launch, Launches, read_launches
from compassc.layers.arranged import Arranged
from compassc.layers.families import FAMILY_OF
from compassc.layers.kernel import CachedKernel, Kernel
from compassc.layers.kernel_cache import KernelCache
from compassc.layers.plan_cache import PlanCache
from compassc.layers.views import make_views

if TYPE_CHECKING:
    from compassc import pass_manager
    from compassc.layers import launches
    from compassc.layers.launches import _requested as requested
else:  # a build by a plan needs none of them
    launches, pass_manager = LazyModule("compassc.layers.launches"), LazyModule("compassc.pass_manager")
    requested = LazyModule("compassc.layers.launches._requested")

STACK = 0x10000
"""Bytes of stack of a task: all LSRAM arrays of a kernel and its frames."""


def constant(name: str, array: Array | Arranged) -> plugin_api.Tensor:
    """Constant data of a kernel as a tensor of the graph."""
    tensor = plugin_api.Tensor()
    tensor.name, tensor.dtype = name, array.dtype.name
    if isinstance(array, Arranged):
        parts = array.parts
        tensor.shape = [array.size]
        tensor.content = Pieces(lambda: map(content_of, parts()), array.size * array.dtype.itemsize)
    else:
        tensor.shape, tensor.content = list(array.shape), content_of(array)
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

    def __init__(self, work: KernelCall, launch: Launch | None = None) -> None:
        """`launch`: what it makes the kernel of, where it is a launch like others."""
        self.work, self.launch = work, launch

    def setup(self, sgnode: SubgraphNode, nodes: list[Any]) -> bool:
        """The constants that the kernel wants replace the layers' own."""
        wanted = [a for a in self.work.args if isinstance(a, plugin_api.Tensor) and a.is_constant]
        inputs = {id(t) for t in sgnode.inputs}
        sgnode.constants.clear()
        sgnode.constants.update({f"{nodes[0].name}/{t.name}": t for t in wanted if id(t) not in inputs})
        return True

    def generate_code_name(self, sgnode: SubgraphNode, nodes: list[object]) -> str:
        return str(self.work.object())

    def generate_kernel(self, sgnode: SubgraphNode, nodes: list[Node]) -> str:
        return self.work.name

    def generate_params(self, sgnode: SubgraphNode, nodes: list[object]) -> BuilderParams:
        params = BuilderParams()
        for value in self.work.args:
            params.append(struct.unpack("<I", struct.pack("<f", value))[0] if isinstance(value, float) else value)
        return params


class LayerLibrary:
    """Takes layers of a graph; kernels that are not known yet are compiled in `folder`, on all processors.

    `fuse`: layers join. `passes`: how they are grouped. `known`: the groups, where they are known already.
    """

    def __init__(
        self,
        folder: Path,
        target: str,
        fuse: bool = True,
        passes: pass_manager.PassOptions | None = None,
        known: Callable[[Launches], Launches] | None = None,
    ) -> None:
        self._target = target
        self._objects = KernelCache(folder, target)
        self._known, self._fuse, self._passes = known, fuse, passes
        cache = self._objects.cache if known is None and passes is None else None
        self._plans = None if cache is None else PlanCache(self._objects, cache, target, fuse)
        self.on_aiff: list[OnAiff] = []

    @property
    def types(self) -> tuple[str, ...]:
        """The layer types that are known."""
        return tuple(FAMILY_OF)

    def prepare(self) -> None:
        """Has what kernels are compiled with made meanwhile, where it is not there."""
        self._objects.prepare()

    def make_views(self, graph: Nodes) -> None:
        """Removes layers that need not run: their outputs lie in the memory of their input."""
        make_views(graph)

    def take(self, graph: Nodes, nodes: list[Node]) -> tuple[Groups, dict[int, str]]:
        """Groups of layers with the plugin of their kernel; and, by id of a node, why it was not taken."""
        free = {id(n) for n in nodes}
        single = tuple(Launch((n.layer,), plugin="" if id(n) in free else "another") for n in graph.nodes)
        tensors = [t for n in graph.nodes for t in (*n.inputs, *n.outputs)]
        owners = {t.name: owner(t).name for t in tensors}
        program = Launches(graph.graph, single, owners, self._target)
        made = self._grouped(program)
        by_name = {n.name: n for n in graph.nodes}
        groups: Groups = []
        refused: dict[int, str] = {}
        for launch in made.launches:
            members = [by_name[layer.name] for layer in launch.layers]
            if launch.refused:
                refused |= {id(n): launch.refused for n in members}
            elif isinstance(launch.kernel, (Kernel, CachedKernel)):
                plugin = GroupPlugin(self._work(launch.kernel, members), launch)
                groups.append((Plugin(plugin, Path(__file__)), members))
        return groups, refused

    def _grouped(self, program: Launches) -> Launches:
        """The launches of a program of single layers: those of a known plan, or made."""
        return self._made(program) if self._plans is None else self._plans.grouped(program, self._made)

    def _made(self, program: Launches) -> Launches:
        passes = self._passes or pass_manager.PassOptions()
        if self._known is not None:
            program = self._known(program)
        if self._known is not None or not self._fuse:
            passes = replace(passes, disabled=frozenset((*passes.disabled, launches.JOIN)))
        return launches.group(program, passes)

    def _work(self, kernel: Kernel | CachedKernel, nodes: Sequence[Node]) -> KernelCall:
        """The call of a kernel of layers."""
        tensors = {t.name: t for n in nodes for t in (*n.inputs, *n.outputs)}
        args: list[object] = []
        for i, value in enumerate(kernel.arguments):
            if isinstance(value, Tensor):
                args.append(tensors[value.name])
            elif isinstance(value, (np.ndarray, Arranged)):
                args.append(constant(f"constant{i}", value))
            else:
                args.append(value)
        return KernelCall(
            kernel.name, args, partial(self._objects.object_of, kernel), partial(self._objects.function_of, kernel)
        )

    def compile(self, graph: Nodes, matches: Sequence[Match]) -> None:
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

        found = [(m.plugin.instance.work, m.nodes) for m in matches if isinstance(m.plugin.instance, GroupPlugin)]
        distinct = {work.name: (work, nodes[0].layer) for work, nodes in found}.values()
        # one more than processors: while all of them run clang, the text of the next kernel is made
        with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
            list(told("kernels", pool.map(lambda item: compiled(*item), distinct), len(distinct)))


def library_of(options: GraphOptions, target: str) -> LayerLibrary:
    """The layers of this toolchain for a build; its `work_dir` is where kernels are compiled."""
    assert options.work_dir is not None
    if options.aiff:
        from compassc.layers.accelerated.library import AcceleratedLibrary

        allowed = switches.AIFF_ASSUME.get()
        return AcceleratedLibrary(
            options.work_dir, target, options.fuse, options.passes, _known(options), allowed=allowed
        )
    return LayerLibrary(options.work_dir, target, options.fuse, options.passes, _known(options))


def _known(options: GraphOptions) -> Callable[[Launches], Launches] | None:
    """How layers are grouped, where that is known already."""
    given = options.launches
    if given is None:
        return None
    if isinstance(given, Launches):
        groups, path = [[layer.name for layer in x.layers] for x in given.launches if not x.plugin], given.graph.name
    else:
        claims.reads(given)
        groups, path = read_launches(files.read_text(given), str(given)), str(given)
    return lambda program: requested.as_told(program, groups, path)
