"""The graph builder: files in, aipu.bin out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core.aipubin import KernelInfo, write
from compass_core.aipubin.device import device_word
from compass_core.errors import CompassError
from compassc.gbuilder.dsl_files import constant_bytes, write_files
from compassc.gbuilder.emit import assemble, launches
from compassc.gbuilder.graph import graph_of
from compassc.gbuilder.ir_text import parse
from compassc.gbuilder.plugin_host import choose, plugins, search_path

if TYPE_CHECKING:
    import numpy as np


def build_graph(
    ir_txt: Path,
    weights: Path | None,
    out: Path,
    target: str,
    plugin_dirs: Sequence[Path] = (),
    library_dirs: Sequence[Path] = (),
) -> Path:
    """Builds a Compass IR graph into the aipu.bin `out`, and gives `out`.

    Plugins are looked for in `plugin_dirs`, then in those of AIPUPLUGIN_PATH; object files beside the graph, in
    `library_dirs` and beside the plugins. CompassError when the graph, a plugin or an object is not in order.
    """
    device_word(target)
    ir = parse(_read(ir_txt).decode("utf-8", "replace"), str(ir_txt))
    graph = graph_of(ir, _read(weights) if weights is not None else b"")
    folders = search_path(plugin_dirs)
    with plugins(folders, target) as loaded:
        matches = choose(graph, loaded)
        if not matches:
            raise ir.error(ir.header, "the graph has no layer that computes anything")
        runs = launches(matches, [ir_txt.parent, *library_dirs, *folders])
        content = assemble(graph, runs, target)
    _write(out, write(content))
    return out


def build_from_params(
    params: Mapping[str, Any],
    object_path: Path,
    out_dir: Path,
    out: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, int | float] | None = None,
    consts: Mapping[str, np.ndarray | bytes] | None = None,
) -> Path:
    """Builds one DSL kernel: `params` is the content of NAME.params.json, `object_path` its compiled object.

    `shapes` and `values` fix tensors and scalars that the kernel leaves open; what stays open is given when the
    kernel runs. Writes compass_ir.txt, compass_ir.bin and the plugin into `out_dir`, and builds `out` from them.
    """
    info = fix(KernelInfo.from_json(dict(params), f"parameters of {object_path.name}"), shapes or {}, values or {})
    code_name = Path(os.path.relpath(object_path, out_dir)).as_posix()
    ir_txt, weights = write_files(info, constant_bytes(info, consts or {}), code_name, out_dir)
    return build_graph(ir_txt, weights, out, info.target, [out_dir])


def fix(info: KernelInfo, shapes: Mapping[str, Sequence[int]], values: Mapping[str, int | float]) -> KernelInfo:
    """The parameters with shapes and scalar values filled in; CompassError for a name that has no such parameter."""
    from compass_core.suggest import help_for

    for given, names, what in (
        (shapes, [p.name for p in info.params if p.is_tensor], "tensors"),
        (values, [p.name for p in info.params if p.role == "attr"], "scalars"),
    ):
        for name in given:
            if name not in names:
                raise CompassError(f"the kernel '{info.kernel}' has no parameter '{name}' among its {what}",
                                   code="no-parameter", help=help_for(name, names, what))  # fmt: skip
    filled = tuple(
        replace(p, shape=tuple(shapes[p.name])) if p.name in shapes
        else replace(p, value=values[p.name]) if p.name in values
        else p
        for p in info.params
    )  # fmt: skip
    return replace(info, params=filled)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CompassError(f"cannot read '{path}': {error.strerror}", code="file") from None


def _write(path: Path, data: bytes) -> None:
    """Writes a file under a temporary name first, so that it is there in full or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CompassError(f"cannot write '{path}': {error.strerror}", code="file") from None
