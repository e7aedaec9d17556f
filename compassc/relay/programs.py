"""Programs in files: text of Relay, and models of other frameworks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compass_core import files
from compass_core.errors import UsageError
from compass_runtime.param_dict import load_param_dict
from compassc.relay.frontend import Program, Shapes, from_onnx, from_pytorch, from_tflite
from compassc.relay.parser import parse
from compassc.relay.passes import fake_quantization_to_integer, infer_type

TEXTS = (".relay", ".rly", ".txt")


def read_program(
    path: Path, shapes: Shapes | None = None, params: Path | None = None, integers: bool = False
) -> Program:
    """The module of a file, and parameters of its `main` by name. `shapes`: of inputs of models, by name. `params`: a file of more
    parameters. `integers`: what lies between dequantisation and quantisation is computed in whole numbers. CompassError with the
    place of what cannot be read."""
    module, known = _read(path, shapes, params)
    return (fake_quantization_to_integer.run(infer_type.run(module)) if integers else module), known


def _read(path: Path, shapes: Shapes | None, params: Path | None) -> Program:
    known = dict(load_param_dict(files.read(params))) if params is not None else {}
    if path.suffix.lower() in TEXTS:
        if shapes:
            raise UsageError(
                "a program of Relay says the shapes of its inputs", code="usage", help="write them into the file"
            )
        return parse(files.read_text(path), str(path)), known
    if (read := MODELS.get(path.suffix.lower())) is None:
        names = ", ".join((*TEXTS, *MODELS))
        raise UsageError(f"'{path}' is no program", code="usage", help=f"texts of Relay and models are called {names}")
    module, given = read(path, shapes or {})
    return module, {**given, **known}


MODELS: dict[str, Callable[[Path, Shapes], Program]] = {
    ".onnx": from_onnx,
    ".tflite": from_tflite,
    ".pt2": lambda path, shapes: from_pytorch(path, list(shapes.items())),
}
"""What reads models of other frameworks, by the ends of their files' names."""
