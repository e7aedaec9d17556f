"""`compassc build` of a kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from compass_core.errors import UsageError
from compassc.cli import options
from compassc.cli.console import Console, artifact
from compassc.cli.option_types import Given
from compassc.cli.other_targets import other_target, run_elsewhere
from compassc.cli.outputs import STDIO, hand_over, is_apart, place
from compassc.cli.pipeline import PASS_STAGES, make_pass_options, pass_stages, pipeline_text, read_pipelines
from compassc.driver import STAGES, Build, Request, run_build, stage_named
from compassc.driver.record import write_depfile


def run_whole(console: Console, source: Path | None, given: Given) -> None:
    """Build `source`, or print the pipelines when that was asked for."""
    if given["print_pipeline"]:
        artifact(pipeline_text(pass_stages(*PASS_STAGES)) + "\n")
        return
    if source is None or source == STDIO:
        help = "`compassc build --help` shows an example"
        raise UsageError("build needs the kernel's Python file", code="usage", help=help)
    if given["target"]:
        elsewhere = other_target(given["target"])
        if elsewhere is not None:
            request = Request(passes=make_pass_options(given), pipelines=_pipelines(given))
            run_elsewhere(console, given["stop_after"], source, given["output"], given["entry"], elsewhere, request)
            return
    with place(given["output"]) as output:
        request = _request(source, output, given)
        console.inputs.append(source)
        console.folder = request.stage_folder()
        build = run_build(request, console.stage, console.waiting)
        if given["depfile"] is not None:
            write_depfile(given["depfile"], given["output"] or output, source, build.dependencies)
        _deliver(console, build, given["output"])


def run_until(console: Console, name: str, source: Path, output: Path | None, request: Request) -> None:
    """From a kernel's Python file to what the stage `name` makes; `request` says the rest."""
    with place(output) as where:
        request = replace(
            request, kernel=source, entry=options.entry(), module=options.module(), output=where, stop_after=name
        )
        if output is not None and not is_apart(output):
            request.final, request.output = output, output.parent / "aipu.bin"
        console.inputs.append(source)
        console.folder = request.stage_folder()
        build = run_build(request, console.stage, console.waiting)
        _deliver(console, build, output)


def _pipelines(given: Given) -> dict[str, tuple[str, ...]]:
    return read_pipelines(given["passes"], *PASS_STAGES)


def _request(source: Path, output: Path, given: Given) -> Request:
    last = stage_named(given["stop_after"])
    request = Request(
        target=given["target"],
        kernel=source,
        entry=options.entry(given["entry"]),
        module=options.module(),
        output=output,
        folder=given["save_temps_dir"],
        stop_after=last.name,
        passes=make_pass_options(given),
        pipelines=_pipelines(given),
        shapes=given["shapes"],
        values=given["values"],
        consts=options.load_consts(given["consts"]),
        clang=given["clang"],
        cc_flags=given["cc_options"],
        use_cache=False if given["no_cache"] else None,
        dry_run=given["dry_run"],
        toolchain=given["toolchain"] or "compass",
        dependencies=given["depfile"] is not None,
    )
    if last is not STAGES[-1] and given["output"] is not None and not is_apart(given["output"]):
        request.final = output
    return request


def _deliver(console: Console, build: Build, output: Path | None) -> None:
    """Write the requested result: the artifact, its name, or the commands of a dry run."""
    console.clear_progress()
    console.detail(build.warnings.rstrip())
    for note in build.notes:
        console.say(f"note: {note}")
    if build.commands:
        artifact("".join(f"{line}\n" for line in build.commands))
    else:
        hand_over(console, build.result, output)
