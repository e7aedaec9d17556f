"""The passes on kernels, one file each here or in `loops`, and what they are put together to; `compassc.pass_manager` runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compass_core.errors import CompassError
from compassc.analysis.statements import is_lowered
from compassc.analysis.wellformed import verify_stage
from compassc.ir import IRModule
from compassc.ir.stmts import SCALAR_LOOPS
from compassc.pass_manager import KERNELS, PassOptions, pipeline_names, run_pipeline, standing, verify_program


def lower(
    module: IRModule, options: PassOptions | None = None, check: Callable[[IRModule], object] | None = None
) -> IRModule:
    """The module after the lowering pipelines, or those of `options`: where `lower` alone is replaced, schedules stay what
    they are. `check`: what looks at the module when schedules are lowered, so that memory has its size and its place."""
    options = options or PassOptions()
    if options.passes is None or options.pipelines:
        module = lower_schedules(module, options)
    if check is not None:
        check(lower_schedules(module))
    return _run_stage("lower", "lowered", module, options, pipeline_names("legalize"))


def lower_schedules(module: IRModule, options: PassOptions | None = None) -> IRModule:
    """The module after the stages of what it has: `blocks` and `threads` for functions of blocks, `loops` where the entry is
    what a schedule became (`SCALAR_LOOPS`)."""
    entry = module.entry_func
    try:
        with standing(options or PassOptions()):
            if not all(map(is_lowered, module.functions)):
                module = run_pipeline((*pipeline_names("blocks"), *pipeline_names("threads")), module)
            if module.entry_func.attr(SCALAR_LOOPS) is not None:
                module = run_pipeline(pipeline_names("loops"), module)
    except CompassError as error:
        if error.code == "te-lower":  # which is about no statement, and knows only who called the compiler
            error.span = entry.span or error.span
        raise
    return module


def legalize(lowered: IRModule, options: PassOptions | None = None) -> IRModule:
    """The lowered module after the legalisation pipeline, or the one of `options`: what the C printer takes."""
    return _run_stage("legalize", "legalised", lowered, options or PassOptions(), ())


def _run_stage(stage: str, guaranteed: str, module: IRModule, options: PassOptions, later: tuple[str, ...]) -> IRModule:
    """The module after a stage. Where modules are verified, it has what the stage guarantees when all passes ran."""
    names = pipeline_names(stage) if options.passes is None else options.passes
    after = run_pipeline(names, module, options, later)
    if options.verify and not options.disabled and options.limit is None and options.passes is None:
        folder = replace(KERNELS, verify=lambda module: verify_stage(module, guaranteed))
        verify_program(f"(the pipeline {stage})", module, after, folder)
    return after
