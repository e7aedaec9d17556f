"""The graph builder: files in, aipu.bin out."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import files
from compass_core.aipubin import AipuBin, KernelInfo, pieces_of, tensor_memory
from compass_core.aipubin.device import device_word
from compass_core.aipubin.kernelinfo import MAX_BYTES
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Note
from compass_core.errors.suggest import help_for
from compass_core.files import claims
from compass_core.namedtuple import NamedTuple
from compass_core.reading.limits import TEXT_BYTES
from compassc import services
from compassc.gbuilder.dsl_files import DescriptorWord, constant_bytes, kernel_graph, write_files
from compassc.gbuilder.emit import assemble
from compassc.gbuilder.kernel_plugin import kernel_plugin
from compassc.gbuilder.launches import launches, steps_of
from compassc.gbuilder.memory import Plan, check_capacity, plan
from compassc.gbuilder.nodes import Nodes, nodes_of
from compassc.gbuilder.plugin_host import Library, Match, OnAiff, Plugin, choose, plugin_files, plugins, search_path
from compassc.graph import Graph, read
from compassc.graph.files import weights_of
from compassc.graph.launches import Launch, Launches

if TYPE_CHECKING:
    import numpy as np

    from compassc.pass_manager import PassOptions


@dataclass(frozen=True)
class GraphOptions:
    """Options of a build of a graph.

    `plugin_dirs`: looked in for plugins before those of AIPUPLUGIN_PATH. `library_dirs`: looked in for object files.
    `work_dir`: where built-in kernels are compiled; without it only the plugins that are found take layers.
    `plugins`: plugins at hand; when there are some, none are looked for.
    `flags`: see `emit.assemble`. `fuse`: element-wise layers join the kernel of the layer before them. `aiff`: 1x1
    convolutions are built for the AIFF where that is proven to be the same, or is so by the assumptions of
    COMPASS_AIFF_ASSUME. `passes`: how layers are grouped to launches. `launches`: the groups, or the text of them, where they
    are known already.
    """

    plugin_dirs: Sequence[Path] = ()
    library_dirs: Sequence[Path] = ()
    work_dir: Path | None = None
    plugins: Sequence[Plugin] = ()
    flags: int = 0
    fuse: bool = True
    aiff: bool = False
    passes: PassOptions | None = None
    launches: Launches | Path | None = None


class GraphBuild(NamedTuple):
    """A built graph: the file, its launches, and how its memory was planned. `on_aiff`: which layers are built for the
    AIFF, and why others are not, where that was asked for."""

    path: Path
    grouping: Launches
    plan: Plan
    content: AipuBin
    on_aiff: tuple[OnAiff, ...] = ()

    @property
    def launches(self) -> int:
        """How many launches it makes."""
        return len(self.grouping.launches)

    @property
    def graph_json(self) -> bytes:
        """The note `graphjson`."""
        return self.content.graph_json

    def summary(self) -> str:
        """One line on launches and memory."""
        peak, unshared = self.plan.peak, self.plan.unshared
        saved = 100 * (unshared - peak) // unshared if unshared else 0
        runs = "1 launch" if self.launches == 1 else f"{self.launches} launches"
        return (
            f"{runs}; intermediates: peak {peak} bytes of {unshared} ({saved}% saved by reuse, "
            f"largest live set {self.plan.floor})"
        )


def build_graph(
    ir_txt: Path,
    weights: Path | None,
    out: Path,
    target: str,
    plugin_dirs: Sequence[Path] = (),
    library_dirs: Sequence[Path] = (),
) -> Path:
    """Builds a Compass IR graph into the aipu.bin `out` with the plugins that are found, and gives `out`."""
    return build_model(ir_txt, weights, out, target, GraphOptions(plugin_dirs, library_dirs)).path


def build_model(ir_txt: Path, weights: Path | None, out: Path, target: str, options: GraphOptions) -> GraphBuild:
    """Builds the Compass IR graph of a text, with any number of layers (`build_in_memory`). `weights`: its constants, by
    default those of the file of its name with the suffix .bin."""
    device_word(target)
    weights = weights_of(ir_txt) if weights is None else weights
    if weights is not None:
        claims.reads(weights)
    constants = bytes if weights is None else files.begin_view(weights)
    text = files.read(ir_txt, TEXT_BYTES).decode("utf-8", "replace")
    if options.work_dir is not None:
        services.layer_library.function()  # its modules are imported while constants are read
    graph = read(text, constants(), str(ir_txt))
    return build_in_memory(graph, ir_txt.parent, out, target, options)


def build_in_memory(graph: Graph, folder: Path, out: Path, target: str, options: GraphOptions) -> GraphBuild:
    """Builds a graph of any number of layers.

    Object files are looked for in `folder`, in the library folders and beside the plugins. CompassError when the
    graph, a plugin or an object is not in order, or when no plugin takes a layer.
    """
    device_word(target)
    library = _library(options, target)
    if library is not None:
        library.prepare()
    with _matched(graph, folder, target, options, library) as (nodes, matches):
        if library is not None:
            library.compile(nodes, matches)
        runs = launches(matches, [folder, *options.library_dirs, *search_path(options.plugin_dirs)])
        planned = plan(nodes, steps_of(runs))
        content = assemble(nodes, runs, target, planned, options.flags)
    check_capacity(nodes, planned, sum(section.size for bss in content.features.bss for section in bss.statics))
    tensor_memory.remember(content)
    files.write(out, pieces_of(content))
    return GraphBuild(
        out, _grouping(nodes, matches, target), planned, content, tuple(library.on_aiff) if library else ()
    )


def group_in_memory(graph: Graph, folder: Path, target: str, options: GraphOptions) -> Launches:
    """Which layers of a graph run in one launch, where it is built with built-in layers and these options. Nothing is
    compiled. CompassError as of `build_in_memory`."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="compassc-") as name:
        options = replace(options, work_dir=options.work_dir or Path(name))
        with _matched(graph, folder, target, options, _library(options, target)) as (nodes, matches):
            return _grouping(nodes, matches, target)


def _library(options: GraphOptions, target: str) -> Library | None:
    """The layers of this toolchain, where there is a folder for their kernels."""
    return None if options.work_dir is None else services.layer_library(options, target)


@contextmanager
def _matched(
    graph: Graph, folder: Path, target: str, options: GraphOptions, library: Library | None
) -> Iterator[tuple[Nodes, list[Match]]]:
    """The nodes of a graph and who takes them, while plugins can be asked."""
    nodes = nodes_of(graph)
    if library is not None:
        library.make_views(nodes)
    at_hand = nullcontext(list(options.plugins))
    with at_hand if options.plugins else plugins(search_path(options.plugin_dirs), target) as loaded:
        matches = _choose(nodes, loaded, library, folder)
        if not matches:
            raise graph.error(None, "the graph has no layer that computes anything")
        yield nodes, matches


def _grouping(nodes: Nodes, matches: Sequence[Match], target: str) -> Launches:
    """The launches that matches are."""
    made = []
    for match in matches:
        own = getattr(match.plugin.instance, "launch", None)
        layers = tuple(node.layer for node in match.nodes)
        made.append(own if isinstance(own, Launch) else Launch(layers, plugin=match.plugin.name))
    return Launches(nodes.graph, tuple(made), target=target)


def _choose(graph: Nodes, loaded: list[Plugin], library: Library | None, folder: Path) -> list[Match]:
    """Which plugin takes which layers. The error for a layer that nobody takes names plugins beside the graph, and where
    other builders look: they are programs, which run when the user says so."""
    try:
        return choose(graph, loaded, library)
    except CompassError as error:
        if error.code == "no-plugin":
            known = {p.path.resolve() for p in loaded}
            for place in (folder, Path("plugin"), Path()):
                if found := [path.name for path in plugin_files([place]) if path.resolve() not in known]:
                    note = f"in the folder '{place}' there is {', '.join(found)}, which was not loaded"
                    error.notes = (*error.notes, Note(note))
                    error.help = f"if you trust it, name its folder: --plugins {place}"
                    break
        raise


def build_from_params(
    params: Mapping[str, object],
    object_path: Path,
    out_dir: Path,
    out: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, int | float] | None = None,
    consts: Mapping[str, np.ndarray | bytes] | None = None,
    descriptors: Mapping[str, Sequence[DescriptorWord]] | None = None,
) -> Path:
    """Builds one DSL kernel from `kernel_files` into `out`; `build_graph` builds the same from the files."""
    info, graph, code_name = kernel_files(params, object_path, out_dir, shapes, values, consts, descriptors)
    plugin = kernel_plugin(info, code_name, out_dir, descriptors or {})
    return build_in_memory(graph, out_dir, out, info.target, GraphOptions(plugins=(plugin,))).path


def kernel_files(
    params: Mapping[str, object],
    object_path: Path,
    out_dir: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, int | float] | None = None,
    consts: Mapping[str, np.ndarray | bytes] | None = None,
    descriptors: Mapping[str, Sequence[DescriptorWord]] | None = None,
) -> tuple[KernelInfo, Graph, str]:
    """Writes compass_ir.txt, compass_ir.bin and the plugin of one DSL kernel into `out_dir`; gives the parameters, the graph
    and the object's name in the plugin.

    `params` is the content of NAME.params.json, `object_path` the compiled object. `shapes` and `values` fix tensors and
    scalars that the kernel leaves open; what stays open is given when the kernel runs.
    """
    info = fix(KernelInfo.from_json(dict(params), f"parameters of {object_path.name}"), shapes or {}, values or {})
    code_name = Path(os.path.relpath(object_path, out_dir)).as_posix()
    graph = kernel_graph(info, constant_bytes(info, consts or {}))
    write_files(graph, info, code_name, out_dir, descriptors)
    return info, graph, code_name


def fix(info: KernelInfo, shapes: Mapping[str, Sequence[int]], values: Mapping[str, int | float]) -> KernelInfo:
    """The parameters with shapes and scalar values filled in; CompassError for a name that has no such parameter."""
    for given, names, what in (
        (shapes, [p.name for p in info.params if p.is_tensor], "tensors"),
        (values, [p.name for p in info.params if p.role == "attr"], "scalars"),
    ):
        for name in given:
            if name not in names:
                raise CompassError(
                    f"the kernel '{info.kernel}' has no parameter '{name}' among its {what}",
                    code="no-parameter",
                    help=help_for(name, names, what),
                )
    for p in info.params:
        if p.element.size * math.prod(shapes.get(p.name, ())) > MAX_BYTES:
            dims = "x".join(map(str, shapes[p.name]))
            raise CompassError(
                f"'{p.name}' of shape {dims} is larger than the device's memory",
                code="tensor-shape",
                help=f"correct --shape {p.name}=...",
            )
    filled = tuple(
        replace(p, shape=tuple(shapes[p.name]))
        if p.name in shapes
        else replace(p, value=values[p.name])
        if p.name in values
        else p
        for p in info.params
    )
    return replace(info, params=filled)
