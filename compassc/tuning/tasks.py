"""Which tasks a file has: a table by the class of what it defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from compass_core import targets
from compass_core.errors import CompassError, Span
from compassc.dsl import load_kernels
from compassc.tuning.task import Task

KINDS: dict[str, str] = {
    "compassc.tuning.kernels:Autotuned": "compassc.tuning.kernel_task:tasks_of_kernel",
    "compassc.tuning.templates:Template": "compassc.tuning.templates:tasks_of_template",
    "compassc.te.kernels:TEKernel": "compassc.tuning.sketches.space:tasks_of_expressions",
}
"""A class, and the function `(object, target, sizes) -> tasks` for its objects. Classes whose module was not imported have
no objects."""


def tasks_of_file(path: Path, name: str | None, target: str, sizes: Mapping[str, object]) -> list[Task]:
    """The tasks of a kernel file, of the object called `name` or of all. `sizes`: parameters with their values and shapes.

    CompassError when there is nothing to be tuned in the file, or sizes are missing.
    """
    found = vars(load_kernels(path).module)
    if name is not None and name not in found:
        raise CompassError(f"{path} has no '{name}'", Span(str(path), 1), code="tuning-task", help=_HELP)
    objects = found.values() if name is None else [found[name]]
    known = targets.load(target).name
    tasks = [task for one in _distinct(objects) for task in tasks_of(one, known, sizes) or ()]
    if not tasks:
        what = f"'{name}' of {path}" if name is not None else f"{path}"
        raise CompassError(
            f"there is nothing to be tuned in {what}", Span(str(path), 1), code="tuning-task", help=_HELP
        )
    return tasks


_HELP = "@S.autotune of kernels, templates, and @te.kernel functions that give no schedule can be"


def tasks_of(one: object, target: str, sizes: Mapping[str, object]) -> Sequence[Task] | None:
    """The tasks of an object; None where it is of no kind that has any."""
    import sys

    for cls, function in KINDS.items():
        module, _, class_name = cls.partition(":")
        if module in sys.modules and isinstance(one, getattr(sys.modules[module], class_name)):
            module, _, function_name = function.partition(":")
            made: Sequence[Task] = getattr(import_module(module), function_name)(one, target, sizes)
            return made
    return None


def _distinct(objects: Any) -> list[object]:
    return list({id(one): one for one in objects}.values())
