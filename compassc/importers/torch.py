"""PyTorch programs as graphs: `import_file`, `import_program`.

A program of `torch.export` is made an ONNX model by PyTorch's own exporter, and that is imported: operators, their
decompositions and what is said of refused ones are those of `compassc.importers.onnx`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compass_core import files
from compass_core.errors import CompassError, UsageError
from compassc.graph.graph import Graph
from compassc.importers.onnx import import_model
from compassc.importers.placeholders import placeholder

Shapes = Mapping[str, Sequence[int]]
PACKAGES = ("torch", "onnx", "onnxscript")
SAVING = "torch.export.save(torch.export.export(model.eval(), (example,)), 'model.pt2')"


def import_file(path: Path, shapes: Shapes | None = None, outputs: Sequence[str] = ()) -> Graph:
    """The graph of the program in a file of `torch.export.save`. `shapes`: of inputs with dynamic dimensions; `outputs`:
    tensors, as PyTorch's exporter names them in ONNX, instead of the program's own.

    CompassError when packages are missing, the file is none of these, or the program cannot be expressed in ONNX; and
    as ONNX models are refused. PyTorch's loader reads the file: it must be one that you trust.
    """
    _packages()
    import torch

    if found := placeholder(files.read(path)):
        raise CompassError(
            f"'{path}' is no program of torch.export: it holds {found.what}", code="torch-program", help=found.help
        )
    try:
        with _quiet():
            program = torch.export.load(str(path))
    except Exception as error:  # noqa: BLE001 - a loader of archives and pickles raises anything
        raise CompassError(
            f"'{path}' is no program of torch.export: {_first_line(error)}",
            code="torch-program",
            help=f"save one with {SAVING}",
        ) from None
    return import_program(program, shapes, str(path), outputs)


def exported(module: Any, example_inputs: Sequence[Any]) -> Any:
    """The `torch.export.ExportedProgram` of a `torch.nn.Module` as it infers, for inputs like these: tensors, or arrays. The
    module stays as it is. UsageError for what is no module, CompassError where it cannot be exported."""
    _packages()
    import torch

    if not isinstance(module, torch.nn.Module):
        raise UsageError(
            f"{type(module).__name__} is no torch.nn.Module, which alone takes example_inputs", code="usage",
            help="leave example_inputs out",
        )  # fmt: skip
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with _quiet(), torch.no_grad():
            return torch.export.export(module, tuple(torch.as_tensor(given) for given in example_inputs))
    except Exception as error:
        raise CompassError(
            f"torch.export cannot export {type(module).__name__}: {_first_line(error)}", code="torch-program"
        ) from error
    finally:
        for part in training:
            part.training = True


def import_program(
    program: Any, shapes: Shapes | None = None, path: str = "program", outputs: Sequence[str] = ()
) -> Graph:
    """The graph of a `torch.export.ExportedProgram`."""
    _packages()
    import torch

    try:
        with _quiet():
            model = torch.onnx.export(program, dynamo=True, verbose=False).model_proto
    except Exception as error:  # noqa: BLE001 - the exporter hands on what its steps raise
        raise CompassError(
            f"'{path}': PyTorch cannot express the program in ONNX: {_first_line(error)}", code="torch-program"
        ) from None
    return import_model(model, shapes, path=path, outputs=outputs)


def _packages() -> None:
    """CompassError that says how to install what is missing."""
    from importlib.util import find_spec

    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise CompassError(
            f"importing PyTorch programs needs {' and '.join(missing)}",
            code="missing-package",
            help=f'pip install "compassc[torch]", or: pip install {" ".join(missing)}',
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what PyTorch tells of itself: packages that it would know more with, and names that it is to give up."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _first_line(error: Exception) -> str:
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said}"[:300]
