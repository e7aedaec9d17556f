"""The pass options of the command line, checked and turned into PassOptions.

A pipeline is text: `A,B,C` for one stage; for several `lower:A,B,C/legalize:D,E`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core.errors import UsageError
from compassc import pass_manager
from compassc.cli.console import Console, artifact
from compassc.cli.option_types import Passes
from compassc.cli.single_stage import run_arrow
from compassc.cli.tables import Table
from compassc.driver import Request

if TYPE_CHECKING:
    from compassc.pass_manager import Folder, PassOptions

PASS_STAGES = {"lower": (*pass_manager.SCHEDULE_STAGES, "lower"), "legalize": ("legalize",)}
"""The stages of passes that a stage of the build runs."""


def make_pass_options(given: Passes, folder: Folder[Any] | None = None) -> PassOptions:
    """PassOptions from the values of `options.pass_options`; UsageError with the nearest name of an unknown pass.

    `folder`: where the passes lie; by default the kernels'.
    """
    for name in (*given["print_before"], *given["print_after"]):
        if name != pass_manager.EVERY_PASS:
            pass_manager.pass_name(name, folder or pass_manager.KERNELS)
    return pass_manager.PassOptions(
        disabled=frozenset(given["disabled"]),
        print_before=given["print_before"],
        print_after=given["print_after"],
        print_changed=given["print_changed"],
        functions=given["functions"],
        dump_dir=given["dump_dir"],
        time_passes=given["time_passes"],
        limit=given["limit"],
        verify=given["verify"],
    )


def pipeline_text(stages: tuple[str, ...]) -> str:
    """The standard pipeline of one stage, or of several, as `--passes` takes it."""
    texts = {stage: pass_manager.pipeline_text(pass_manager.pipeline_names(stage)) for stage in stages}
    return texts[stages[0]] if len(stages) == 1 else "/".join(f"{stage}:{text}" for stage, text in texts.items())


def pass_stages(*stages: str) -> tuple[str, ...]:
    """The stages of passes that stages of the build run."""
    return tuple(name for stage in stages for name in PASS_STAGES[stage])


def graph_pipeline_text(stage: str = "optimize") -> str:
    """The standard pipeline of a stage of graphs."""
    from compassc.graph.passes import GRAPHS

    return pass_manager.pipeline_text(pass_manager.pipeline_names(stage, GRAPHS))


def launch_pipeline_text() -> str:
    """The standard pipeline of launches."""
    from compassc.layers.launches import LAUNCHES

    return pass_manager.pipeline_text(pass_manager.pipeline_names("group", LAUNCHES))


def launch_pass_options(given: Passes) -> PassOptions:
    """PassOptions for passes on launches, with the pipeline of `--passes`."""
    from compassc.layers.launches import LAUNCHES

    chosen = make_pass_options(given, LAUNCHES)
    chosen.passes = pass_manager.parse_pipeline(given["passes"], LAUNCHES) if given["passes"] else None
    return chosen


def graph_pass_options(given: Passes) -> PassOptions:
    """PassOptions for passes of graphs, with the pipeline of `--passes`."""
    from compassc.graph.passes import GRAPHS

    chosen = make_pass_options(given, GRAPHS)
    chosen.passes = pass_manager.parse_pipeline(given["passes"], GRAPHS) if given["passes"] else None
    return chosen


def read_pipelines(text: str | None, *stages: str) -> dict[str, tuple[str, ...]]:
    """The pipelines given by `--passes`, by stage of passes. `stages`: those of the build; of one alone a pipeline needs no
    name. What is not named keeps its standard pipeline; where `lower` alone is, no schedule is lowered."""
    if text is None:
        return {}
    if len(stages) == 1 and ":" not in text:
        return {stages[0]: pass_manager.parse_pipeline(text)}
    pipelines, known = {}, pass_stages(*stages)
    for part in text.split("/"):
        stage, colon, names = part.partition(":")
        if not colon or stage not in known:
            raise UsageError(
                f"--passes: expected STAGE:A,B,... for a stage, got '{part}'",
                code="usage",
                help=f"stages are joined by '/', for instance {'/'.join(f'{s}:Simplify' for s in known)}",
            )
        pipelines[stage] = pass_manager.parse_pipeline(names)
    return pipelines


def pass_tables() -> list[Table]:
    """The passes with a line each, and the standard pipelines."""
    from compassc.graph.passes import GRAPHS
    from compassc.graph.passes.pipelines import STAGES as GRAPH_STAGES
    from compassc.layers.launches import LAUNCHES
    from compassc.passes.pipelines import STAGES as KERNEL_STAGES

    columns = ("name", "stages", "what it does", "vendor's name")
    rows, of_graphs, of_launches = (
        [(p.name, ", ".join(p.stages), p.summary, ", ".join(p.aliases)) for p in pass_manager.describe(folder)]
        for folder in (pass_manager.KERNELS, GRAPHS, LAUNCHES)
    )
    pipelines = [(stage, pipeline_text((stage,))) for stage in KERNEL_STAGES]
    pipelines += [(stage, graph_pipeline_text(stage)) for stage in GRAPH_STAGES]
    pipelines.append(("group", launch_pipeline_text()))
    return [
        ("passes", columns, rows),
        ("pipelines", ("stage", "passes"), pipelines),
        ("passes of graphs", columns[:3], [row[:3] for row in of_graphs]),
        ("passes of launches", columns[:3], [row[:3] for row in of_launches]),
    ]


def run_file(console: Console, name: str, source: Path, output: Path | None, request: Request) -> None:
    """Run a stage on the file of the one before, or all stages up to it on a kernel's Python file."""
    if source.suffix == ".py":
        from compassc.cli.other_targets import other_target, run_elsewhere
        from compassc.cli.whole_build import run_until

        elsewhere = other_target(request.target) if request.target else None
        if elsewhere is not None:
            run_elsewhere(console, name, source, output, None, elsewhere, request)
            return
        run_until(console, name, source, output, request)
    else:
        run_arrow(console, name, source, output, request)


def run_pass_stage(
    console: Console, name: str, source: Path | None, output: Path | None, given: Passes, target: str = ""
) -> None:
    """Run `lower` or `legalize` on a file, or only print its pipeline."""
    if given["print_pipeline"]:
        artifact(pipeline_text(pass_stages(name)) + "\n")
    elif source is None:
        raise UsageError(f"{name} needs the file to read", code="usage", help=f"`compassc {name} --help` shows how")
    else:
        pipelines = read_pipelines(given["passes"], name)
        request = Request(passes=make_pass_options(given), pipelines=pipelines, target=target)
        run_file(console, name, source, output, request)
