"""PyTorch programs as graphs: `import_file`, `import_program`.

A program of `torch.export` is made an ONNX model by PyTorch's own exporter, and that is imported: operators, their
decompositions and what is said of refused ones are those of `compassc.importers.onnx`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from inspect import signature
from io import StringIO
from pathlib import Path
from traceback import extract_tb
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
    return import_program(_loaded(path), shapes, str(path), outputs)


def _loaded(path: Path) -> object:
    """The program in a file."""
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
    return program


def exported(module: Any, example_inputs: Sequence[Any]) -> Any:
    """The `torch.export.ExportedProgram` of a `torch.nn.Module` as it infers, for inputs like these: tensors, arrays or
    numbers, the arguments of a call. The module is called with them once, and stays as it is. UsageError for what is no module
    and for inputs that it does not take, CompassError where it cannot be exported."""
    _packages()
    import torch

    if not isinstance(module, torch.nn.Module):
        is_class = isinstance(module, type) and issubclass(module, torch.nn.Module)
        raise UsageError(
            f"{'the class ' + module.__name__ if is_class else type(module).__name__} is no torch.nn.Module, which alone "
            "takes example_inputs",
            code="usage",
            help=f"make one: {module.__name__}(...)" if is_class else "leave example_inputs out",
        )
    if isinstance(module, torch.jit.ScriptModule):
        raise UsageError(
            "this is a module of TorchScript, which torch.export does not take", code="usage",
            help="give the torch.nn.Module that it was made of",
        )  # fmt: skip
    given = _tensors(example_inputs)
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with _quiet(), torch.no_grad():
            _call(module, given)
            return torch.export.export(module, given)
    except UsageError:
        raise
    except Exception as error:
        raise CompassError(
            f"torch.export cannot export {type(module).__name__}: {_first_line(error)}{_place(module, error)}",
            code="torch-program",
            help="branches and sizes must not depend on the values of tensors (torch.where, torch.cond); "
            "torch.export.export(module, example_inputs) tells more",
        ) from error
    finally:
        for part in training:
            part.training = True


def _tensors(example_inputs: object) -> tuple[object, ...]:
    """The arguments of a call as tensors; UsageError where they are none."""
    import torch

    if not isinstance(example_inputs, (tuple, list)):
        raise UsageError(
            f"example_inputs is a {type(example_inputs).__name__}, expected a tuple of the arguments of a call", code="usage",
            help="in the order of the module's forward: example_inputs=(x,) for one",
        )  # fmt: skip
    made = []
    for i, one in enumerate(example_inputs):
        try:
            made.append(torch.as_tensor(one))
        except (TypeError, ValueError, RuntimeError):
            raise UsageError(
                f"example_inputs[{i}] is a {type(one).__name__}, expected a tensor, an array or a number", code="usage",
                help="a module that takes anything else needs one around it that takes tensors alone",
            ) from None  # fmt: skip
    return tuple(made)


def _call(module: Any, given: tuple[Any, ...]) -> None:
    """Calls a module, whose buffers stay as they are; UsageError where it does not take these inputs. The exporter itself
    passes some of those, and says of others what they broke inside."""
    kept = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        module(*given)
    except Exception as error:
        said = ", ".join(
            f"{str(t.dtype).removeprefix('torch.')} {'x'.join(map(str, t.shape)) or 'scalar'}" for t in given
        )
        raise UsageError(
            f"{type(module).__name__} does not take the example_inputs ({said}): {_first_line(error)}{_place(module, error)}",
            code="usage",
            help=f"forward takes {signature(module.forward)}",
        ) from error
    finally:
        for buffer, value in kept:
            buffer.copy_(value)


def _place(module: Any, error: BaseException) -> str:
    """Where in the files of the module's own code, not PyTorch's, an error came from, to be put behind its message."""
    code = [getattr(getattr(type(part), "forward", None), "__code__", None) for part in module.modules()]
    own = {one.co_filename for one in code if one is not None}
    lines = [
        f" ({frame.filename}:{frame.lineno})"
        for frame in extract_tb(error.__traceback__)
        if frame.filename in own and "torch" not in Path(frame.filename).parts
    ]
    return lines[-1] if lines else ""


def import_program(
    program: object, shapes: Shapes | None = None, path: str = "program", outputs: Sequence[str] = ()
) -> Graph:
    """The graph of a `torch.export.ExportedProgram`."""
    return import_model(as_onnx(program, path), shapes, path=path, outputs=outputs)


def as_onnx(program: object, path: str = "program") -> Any:
    """The ONNX model of a `torch.export.ExportedProgram`, or of the file of one. CompassError where it cannot be expressed."""
    _packages()
    import torch

    if isinstance(program, (str, Path)):
        program, path = _loaded(Path(program)), str(program)
    try:
        with _quiet():
            made: Any = torch.onnx.export(program, dynamo=True, verbose=False)
            return made.model_proto
    except Exception as error:  # noqa: BLE001 - the exporter hands on what its steps raise
        raise CompassError(
            f"'{path}': PyTorch cannot express the program in ONNX: {_first_line(error)}", code="torch-program"
        ) from None


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
    """Without what PyTorch tells of itself: packages that it would know more with, names that it is to give up, and what it
    logs of errors that it raises, too."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _first_line(error: Exception) -> str:
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said}"[:300]
