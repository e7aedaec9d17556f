"""The graph builder: files in, aipu.bin out."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from compass_core import files
from compass_core.aipubin import AipuBin, KernelInfo, parts_of, tensor_memory
from compass_core.aipubin.device import device_word
from compass_core.aipubin.kernelinfo import MAX_BYTES
from compass_core.errors import CompassError, Note
from compass_core.files import claims
from compass_core.reading.limits import TEXT_BYTES
from compassc.gbuilder.dsl_files import DescriptorWord, constant_bytes, kernel_graph, write_files
from compassc.gbuilder.emit import assemble
from compassc.gbuilder.kernel_plugin import kernel_plugin
from compassc.gbuilder.launches import launches, steps_of
from compassc.gbuilder.memory import Plan, check_capacity, plan
from compassc.gbuilder.nodes import Nodes, nodes_of
from compassc.gbuilder.plugin_host import Library, Match, OnAiff, Plugin, choose, plugin_files, plugins, search_path
from compassc.gbuilder.views import make_views
from compassc.graph import Graph, read

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class GraphOptions:
    """Options of a build of a graph.

    `plugin_dirs`: looked in for plugins before those of AIPUPLUGIN_PATH. `library_dirs`: looked in for object files.
    `work_dir`: where built-in kernels are compiled; without it only the plugins that are found take layers.
    `plugins`: plugins at hand; when there are some, none are looked for.
    `flags`: see `emit.assemble`. `fuse`: element-wise layers join the kernel of the layer before them. `aiff`: 1x1
    convolutions are built for the AIFF where that is proven to be the same, or is so by the assumptions of
    COMPASS_AIFF_ASSUME.
    """

    plugin_dirs: Sequence[Path] = ()
    library_dirs: Sequence[Path] = ()
    work_dir: Path | None = None
    plugins: Sequence[Plugin] = ()
    flags: int = 0
    fuse: bool = True
    aiff: bool = False


class GraphBuild(NamedTuple):
    """A built graph: the file, how many launches it makes, and how its memory was planned. `on_aiff`: which layers are
    built for the AIFF, and why others are not, where that was asked for."""

    path: Path
    launches: int
    plan: Plan
    content: AipuBin
    on_aiff: tuple[OnAiff, ...] = ()

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
    from compassc.graph.files import weights_of

    device_word(target)
    weights = weights_of(ir_txt) if weights is None else weights
    if weights is not None:
        claims.reads(weights)
    text = files.read(ir_txt, TEXT_BYTES).decode("utf-8", "replace")
    graph = read(text, files.view(weights) if weights is not None else b"", str(ir_txt))
    return build_in_memory(graph, ir_txt.parent, out, target, options)


def build_in_memory(graph: Graph, folder: Path, out: Path, target: str, options: GraphOptions) -> GraphBuild:
    """Builds a graph of any number of layers.

    Object files are looked for in `folder`, in the library folders and beside the plugins. CompassError when the
    graph, a plugin or an object is not in order, or when no plugin takes a layer.
    """
    device_word(target)
    nodes = nodes_of(graph)
    folders = search_path(options.plugin_dirs)
    if options.work_dir is not None:
        make_views(nodes)
    at_hand = nullcontext(list(options.plugins))
    with at_hand if options.plugins else plugins(folders, target) as loaded:
        library = _library(options, target)
        matches = _choose(nodes, loaded, library, folder)
        if not matches:
            raise graph.error(None, "the graph has no layer that computes anything")
        runs = launches(matches, [folder, *options.library_dirs, *folders])
        planned = plan(nodes, steps_of(runs))
        content = assemble(nodes, runs, target, planned, options.flags)
    check_capacity(nodes, planned, sum(section.size for bss in content.features.bss for section in bss.statics))
    tensor_memory.remember(content)
    files.write(out, list(parts_of(content)))
    return GraphBuild(out, len(runs), planned, content, tuple(library.on_aiff) if library else ())


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


def _library(options: GraphOptions, target: str) -> Library | None:
    """The layers of this toolchain."""
    if options.work_dir is None:
        return None
    if options.aiff:
        from compass_core import switches
        from compassc.layers.accelerated.library import AcceleratedLibrary

        return AcceleratedLibrary(options.work_dir, target, options.fuse, switches.AIFF_ASSUME.get())
    from compassc.layers.library import LayerLibrary

    return LayerLibrary(options.work_dir, target, options.fuse)


def build_from_params(
    params: Mapping[str, Any],
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
    params: Mapping[str, Any],
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
    from compass_core.errors.suggest import help_for

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
