"""Legalised IR to Compass OpenCL C, its line map, and the description of the kernel's parameters."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypedDict

from compass_core import PARAMS_FORMAT
from compass_core.dataclass import dataclass
from compass_core.errors.excerpts import portable_name

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import KernelFields

    from ..analysis.interface import Interface
    from ..ir.stmts import IRModule
    from ..pass_manager import PassOptions
    from .c_unit import Unit


Place = list[int | list[list[int]]]
"""Where a line of C comes from: file, line, and its parts, if it has such of other places."""


class LineMap(TypedDict):
    """The content of `NAME.cl.map`, see `line_map`."""

    files: list[str]
    lines: list[Place | None]
    arrays: list[dict[str, object]]


@dataclass(frozen=True)
class CodegenResult:
    """The C text, the content of its `.cl.map`, and the content of `.params.json`."""

    text: str
    line_map: LineMap
    params: KernelFields


def generate(lowered: IRModule, options: PassOptions | None = None) -> CodegenResult:
    """The C of a lowered module: legalisation and `emit`. CompassError where the module has no C form."""
    from .. import passes
    from ..analysis.interface import interface_of

    return emit(passes.legalize(lowered, options), interface_of(lowered))


def emit(legalised: IRModule, interface: Interface) -> CodegenResult:
    """The C of a legalised module. CompassError where something in it has no C form."""
    from .c_unit import print_unit

    unit = print_unit(legalised)
    text = "\n".join([line.text for line in unit.lines]) + "\n"
    return CodegenResult(text, line_map(unit), parameters(legalised, interface, unit))


def line_map(unit: Unit) -> LineMap:
    """`{"files": [...], "lines": [null or [file, line] or [file, line, parts], ...], "arrays": [...]}`: an item per line and array.

    `parts` are `[offset, file, line, column]`: from there on the line comes from another line of the kernel.
    """
    files: dict[str, int] = {}

    @cache
    def number(file: str) -> int:
        return files.setdefault(portable_name(file), len(files))

    places: list[Place | None] = []
    for line in unit.lines:
        if line.span is None:
            places.append(None)
            continue
        place: Place = [number(line.span.file), line.span.line]
        if line.parts:
            place.append([[at, number(span.file), span.line, span.col] for at, span in line.parts])
        places.append(place)
    return {"files": list(files), "lines": places, "arrays": [array._asdict() for array in unit.arrays]}


def parameters(legalised: IRModule, interface: Interface, unit: Unit) -> KernelFields:
    """The description of the kernel for the stages after codegen (docs/internals/files.md, NAME.params.json)."""
    made: KernelFields = {
        "format": PARAMS_FORMAT,
        "kernel": legalised.entry,
        "target": legalised.target,
        "uses_printf": unit.uses_printf,
        "stack_size": unit.stack_size,
        "params": interface.params,
        "extents": interface.extents,
    }
    if interface.groups > 1:
        made["groups"] = interface.groups
    return made
