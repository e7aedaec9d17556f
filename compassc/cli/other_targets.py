"""`compassc lower`, `codegen` and `build` of a function that gives a schedule, for targets that are no NPU: `-t llvm`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from compass_core import files
from compass_core.errors import UsageError
from compassc import dsl, targets
from compassc.cli import options
from compassc.cli.console import Console
from compassc.cli.outputs import STDIO, hand_over, is_apart
from compassc.driver import Request
from compassc.ir import print_module
from compassc.pass_manager import standing
from compassc.targets import Target, kinds, nvrtc

if TYPE_CHECKING:
    from compassc.te import TEKernel  # loading it takes NumPy, which a build for NPUs does without

_SOURCES = {"c": ".c", "cuda": ".cu"}
"""The suffix of a module's text, by its format."""


def other_target(name: str) -> Target | None:
    """The target of that name where it is no NPU."""
    words = name.split()
    if not words or words[0] == "compass" or words[0] not in kinds():
        return None
    return Target(name)


def run_elsewhere(
    console: Console,
    stage: str,
    source: Path,
    output: Path | None,
    entry: str | None,
    target: Target,
    request: Request,
) -> None:
    """From a Python file to what a stage (`lower`, `codegen` or the last one) makes for a target; the files of the others
    go to STEM.compass. `request` has the options of passes. UsageError for kernels of the NPU's language, for other stages, and
    where passes are to be replaced."""

    console.inputs.append(source)
    found = dsl.load_kernels(source, options.module()).entry(options.entry(entry))
    if not found.for_all_targets:
        raise UsageError(
            f"'{found.__name__}' is a kernel of the NPU's language: there is no {target.kind.name} form of it",
            code="other-target",
            help="functions decorated with @te.kernel are for all targets",
        )
    if stage not in ("lower", "codegen", "gbuild"):
        raise UsageError(
            f"there is no stage '{stage}' for {target.kind.name}", code="unknown-stage", help="lower, codegen, or none"
        )
    if request.pipelines:
        raise UsageError(
            f"the passes for {target.kind.name} are not replaced",
            code="usage",
            help="--disable-pass leaves out single ones, -t NPU takes --passes",
        )
    folder = console.folder = (output.parent if output and not is_apart(output) else Path()) / f"{source.stem}.compass"
    folder.mkdir(parents=True, exist_ok=True)
    kernel, name = cast("TEKernel", found), found.__name__
    asked = request.pass_options("lower")
    module, traces = kernel.lower(str(target), asked)
    with standing(asked):
        built = targets.build(module, target=target) if stage != "lower" else None
    made = files.write(folder / f"{name}.ir.txt", print_module(module))
    for suffix, text in traces.items():
        files.write(folder / f"{name}{suffix}", text)
    if built is not None:
        made = files.write(folder / f"{name}{_SOURCES.get(built.format, '.txt')}", built.get_source())
        if target.kind.name == "cuda" and nvrtc.library() is not None:
            files.write(folder / f"{name}.ptx", built.get_source("ptx"))
        if stage == "gbuild":
            made = output if output is not None and not is_apart(output) else folder / f"{name}.so"
            built.export_library(made)
    console.clear_progress()
    if output is not None and (is_apart(output) or stage != "gbuild"):
        if output != STDIO and not is_apart(output):
            made = files.write(output, made.read_bytes())
        hand_over(console, made, output)
    else:
        hand_over(console, made, None)
