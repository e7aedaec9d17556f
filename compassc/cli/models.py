"""What `compassc build` does with a model, or with a graph."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from compass_core.errors import UsageError
from compass_core.progress import shown as shown_progress
from compassc.cli.build_report import costs, tell
from compassc.cli.console import Console, artifact, shown
from compassc.cli.option_types import Given
from compassc.cli.outputs import hand_over, is_apart, place
from compassc.cli.pipeline import graph_pass_options, graph_pipeline_text
from compassc.cli.quantizing import request_of, summary, telling
from compassc.driver.build import STAGE_FOLDER_SUFFIX
from compassc.models.build import ModelRequest, has_other_build, run_model_build, stage_named

if TYPE_CHECKING:
    from compassc.models.model import Model

NOT_OF_MODELS = {
    "entry": "--kernel",
    "values": "--set",
    "consts": "--const",
    "depfile": "--depfile",
    "dry_run": "--dry-run",
    "clang": "--clang",
    "cc_options": "--cc-option",
    "no_cache": "--no-cache",
    "toolchain": "--toolchain",
}
"""Options of `compassc build` that are about kernels, by what they are called in its parameters."""


def build_file(console: Console, source: Path, given: Given) -> None:
    """Builds the model, or the graph, in a file: all its stages."""
    from compassc.models.model import Model

    for name, option in NOT_OF_MODELS.items():
        if given.get(name):
            raise UsageError(f"{option} is about kernels, not about models", code="usage")
    if given["print_pipeline"]:
        artifact(graph_pipeline_text() + "\n")
        return
    last = stage_named(given["stop_after"])
    output = given["output"]
    if last.name != "gbuild" and is_apart(output):
        raise UsageError("a graph is two files, which need a name", code="usage", help="-o opt.txt")
    console.inputs.append(source)
    with place(output) as made:
        request = ModelRequest(
            source=source,
            target=given["target"],
            shapes=given["shapes"],
            outputs=given["outputs"],
            passes=graph_pass_options(given),
            quantize=request_of(given),
            output=made,
            folder=given["save_temps_dir"],
            final=output if last.name != "gbuild" else None,
            stop_after=last.name,
            aiff=given["aiff"],
            batch=given["batch"],
            states=given["states"],
        )
        console.folder = request.stage_folder()
        with telling(console), shown_progress(console.verbose):
            build = run_model_build(request, console.stage, console.waiting)
        console.clear_progress()
        for line in summary(build.quantised) if build.quantised else ():
            console.say(line)
        if build.built is None:
            console.made(build.result)
            return
        tell(console, build.built, build.target.name, request.aiff)
        for line in costs(console, Model.of(build)):
            console.say(line)
        hand_over(console, made, output)


def built_model(console: Console, source: Path, given: Given) -> Model:
    """The model in the folder of a build. A model's file, or a graph, is built first, with everything in the folder of its
    stages; in a temporary one where that has a build of another form, which stays as it is."""
    from compassc.models.model import Model

    if source.is_dir():
        return Model.load(source)
    keep = None
    folder = Path(source.stem + STAGE_FOLDER_SUFFIX)
    request = ModelRequest(
        source=source,
        target=given["target"],
        shapes=given["shapes"],
        quantize=request_of(given),
        folder=folder,
        output=folder / "aipu.bin",
        batch=given.get("batch", 1),
        states=given.get("states") or {},
    )
    if has_other_build(request):
        console.say(f"note: {shown(folder)} has another build, which is left alone: this one is not kept")
        keep = TemporaryDirectory(prefix="compassc-")
        request.folder = Path(keep.name)
        request.output = request.folder / "aipu.bin"
    console.folder = request.folder
    with telling(console), shown_progress(console.verbose):
        build = run_model_build(request, console.stage, console.waiting)
    console.clear_progress()
    for line in summary(build.quantised) if build.quantised else ():
        console.say(line)
    return Model.of(build, keep)
