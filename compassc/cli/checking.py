"""`compassc check`: the parser and the static checks for every kernel of a file."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from compass_core import switches, targets
from compass_core.errors import CompassError, UsageError, flat, together
from compass_core.errors.rendering import counted
from compass_core.errors.suggest import help_for
from compassc import dsl
from compassc.cli import options
from compassc.cli.console import Console
from compassc.language.source import definition, file_of

if TYPE_CHECKING:
    from compassc.language.functions import PyPrimFunc
    from compassc.language.kernel_files import KernelFile

T = TypeVar("T")
Shape = tuple[int, ...]


def check_file(
    console: Console,
    source: Path,
    target: str,
    entry: str | None,
    values: Mapping[str, float],
    shapes: Mapping[str, Shape],
    strict: bool,
) -> int:
    """Writes the findings; returns the exit status: 1 for errors, with `strict` also for warnings."""
    name = targets.load(switches.TARGET.get(target or None)).name
    kernels = entries(dsl.load_kernels(source, options.module()), entry, name, {**values, **shapes})
    _known_names(kernels, {**values, **shapes})
    found: dict[object, CompassError] = {}
    for kernel in kernels:
        for error in check_kernel(kernel, name, values, shapes):
            found.setdefault((error.span, error.message), error)
    errors = list(found.values())
    if errors:
        console.diagnose(together(errors))
    console.detail(f"{len(kernels)} kernels checked for {name}: {counted(errors) or 'nothing found'}")
    return int(strict and bool(errors)) or max((e.exit_code for e in errors if e.severity == "error"), default=0)


def entries(
    loaded: KernelFile, name: str | None, target: str = "", sizes: Mapping[str, object] | None = None
) -> list[PyPrimFunc]:
    """The named kernel, or all that no other kernel calls. UsageError for a function that gives a schedule."""
    from compassc.language.functions import PyPrimFunc, chosen
    from compassc.language.kernel_files import called_names

    kernels = {
        n: chosen(k, target or switches.TARGET.get(), sizes) for n, k in loaded.kernels.items() if name in (None, n)
    }
    written = {n: k for n, k in kernels.items() if isinstance(k, PyPrimFunc)}
    if not written:
        found = loaded.entry(name)
        raise UsageError(
            f"'{found.__name__}' gives a schedule: there is no source of a kernel to check",
            code="usage",
            help="what is built of it can be checked: `compass-run --check all`",
        )
    called = set().union(*map(called_names, loaded.written.values()))
    return [k for n, k in written.items() if n == name or n not in called] or list(written.values())


def check_kernel(
    kernel: PyPrimFunc, target: str, values: Mapping[str, float], shapes: Mapping[str, Shape]
) -> list[CompassError]:
    """The findings for one kernel and the functions that it calls."""
    from compassc.analysis.roles import parameters
    from compassc.check import Subject, findings
    from compassc.ir.dtypes import PointerType
    from compassc.language.functions import chosen

    kernel = chosen(kernel, target, {**values, **shapes})
    try:
        module = dsl.parse(kernel, target)
        parameters(module)
    except CompassError as error:
        return list(flat(error))
    both = [(p.name, v) for p, v in zip(kernel.params, module.entry_func.params)]

    def by_position(given: Mapping[str, T], tensors: bool) -> dict[int, T]:
        """Given shapes or values by parameter position. Parameters may be named as in the file or by their buffers."""
        found = {}
        for i, (name, variable) in enumerate(both):
            if named := [one for one in (variable.name, name) if one in given]:
                if isinstance(variable.dtype, PointerType) != tensors:
                    raise _of_other_kind(kernel.__name__, named[0], "tensors" if tensors else "scalars")
                found[i] = given[named[0]]
        return found

    scalars = {i: value for i, value in by_position(values, False).items() if isinstance(value, int)}
    known = by_position(shapes, True)
    return findings(Subject(module, scalars, known, sources(kernel, {f.name for f in module.functions})))


def _of_other_kind(kernel: str, name: str, kinds: str) -> UsageError:
    return UsageError(
        f"the kernel '{kernel}' has no parameter '{name}' among its {kinds}",
        code="no-parameter",
        help="--shape is for tensors, --set for scalars",
    )


def sources(kernel: PyPrimFunc, names: set[str]) -> tuple[tuple[ast.FunctionDef, str], ...]:
    """The definitions of a kernel and of the functions it calls that are visible in its file."""
    from compassc.language.functions import PyPrimFunc

    others = [v for v in kernel.py_func.__globals__.values() if isinstance(v, PyPrimFunc) and v.__name__ in names]
    functions = {id(k): k for k in (kernel, *others)}
    return tuple((definition(k.py_func), file_of(k.py_func)) for k in functions.values())


def _known_names(kernels: list[PyPrimFunc], given: Mapping[str, object]) -> None:
    """UsageError for a --set or --shape of a parameter that no kernel has."""
    from compassc.language.kernel_files import called_names

    known = {p.name for k in kernels for p in k.params}
    buffers = {name for k in kernels for name in called_names(k)}
    for name in given:
        if name not in known | buffers:
            raise UsageError(
                f"no kernel has a parameter '{name}'",
                code="no-parameter",
                help=help_for(name, sorted(known), "parameters"),
            )
