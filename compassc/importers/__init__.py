"""Importers: a model of another framework becomes a graph. One package per framework, chosen by the file's suffix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core.aipubin.reader import ELF_MAGIC
from compass_core.errors import UsageError

if TYPE_CHECKING:
    from compassc.graph.graph import Graph

IMPORTERS = {
    ".onnx": "compassc.importers.onnx",
    ".tflite": "compassc.importers.tflite",
    ".pt2": "compassc.importers.torch",
}
"""Module that imports files of a suffix, by its function `import_file`."""
OTHERS = {
    (".pt", ".pth", ".bin", ".safetensors"): "these are weights without their network; save the program: "
    "torch.export.save(torch.export.export(model.eval(), (example,)), 'model.pt2')",
    (".npz", ".npy", ".ckpt", ".pkl", ".pickle"): "these are arrays or objects without a network; give the model's own "
    "file, and arrays as samples: --calibrate FILE.npz",
    (".pb", ".h5", ".keras"): "convert it to TFLite (tf.lite.TFLiteConverter) or to ONNX (tf2onnx)",
    (".caffemodel", ".prototxt", ".pdmodel", ".mlmodel"): "convert it to ONNX",
}
"""What to do with files of other kinds, by their suffixes."""
FRAMEWORKS = {"onnx": "ONNX", "tflite": "TFLite"}
"""Modules here that have a table of operators (`docs.rows`, `docs.page`), with the name that the framework goes by."""


def is_model(path: Path) -> bool:
    """Whether a file is a model of a framework, by its name."""
    return path.suffix.lower() in IMPORTERS


def refuse_models(path: Path) -> None:
    """UsageError for a file that is a model where a graph is wanted."""
    if is_model(path):
        raise UsageError(
            f"'{path}' is a model, not a graph",
            code="usage",
            help=f"`compassc import {path}` makes a graph of it, `compassc build {path}` all up to aipu.bin",
        )


def refuse_other_files(path: Path) -> None:
    """UsageError for a file that holds a model, or parts of one, in a form that has to be converted first."""
    if any(path.suffix.lower() in suffixes for suffixes in OTHERS):
        raise _unknown(path)


def _starts_as_elf(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(ELF_MAGIC)) == ELF_MAGIC


def _unknown(path: Path) -> UsageError:
    help = next((text for suffixes, text in OTHERS.items() if path.suffix.lower() in suffixes), "")
    if path.suffix.lower() == ".py":
        help = f"a kernel is built before it runs: `compassc build {path} -t TARGET`, then `compass-run aipu.bin`"
    if _starts_as_elf(path):
        help = f"it is built: `compass-run {path}` runs it, `compassc inspect {path}` shows what is in it"
    message = f"'{path}' is no model that can be imported: known are {', '.join(IMPORTERS)}"
    return UsageError(message, code="unknown-model", help=help)


def import_model(
    path: Path | str, shapes: Mapping[str, Sequence[int]] | None = None, outputs: Sequence[str] = ()
) -> Graph:
    """The graph of the model in a file. `shapes`: of inputs by name, where the model leaves them open; `outputs`: tensors
    of the model that are to be the graph's outputs, instead of the model's own.

    CompassError when no importer knows the file, and for everything that is wrong with it, at once.
    """
    path = Path(path)
    if not is_model(path):
        raise _unknown(path)
    graph: Graph = import_module(IMPORTERS[path.suffix.lower()]).import_file(path, shapes, outputs)
    return graph


def import_object(model: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> Graph:
    """The graph of a model in memory: an `onnx.ModelProto`, or a `torch.export.ExportedProgram`.

    UsageError for any other object.
    """
    kind = type(model)
    graph: Graph
    if kind.__name__ == "ModelProto":
        graph = import_module(IMPORTERS[".onnx"]).import_model(model, shapes, path=model.graph.name or "model")
    elif kind.__name__ == "ExportedProgram":
        graph = import_module(IMPORTERS[".pt2"]).import_program(model, shapes)
    else:
        is_module = any(f"{c.__module__}.{c.__name__}" == "torch.nn.modules.module.Module" for c in kind.__mro__)
        raise UsageError(
            f"{kind.__module__}.{kind.__qualname__} is no model that can be imported",
            code="unknown-model",
            help="give inputs of it, too: compassc.compile(module, example_inputs=(x,))"
            if is_module
            else "an onnx.ModelProto, a torch.export.ExportedProgram, or the path of a file",
        )
    return graph
