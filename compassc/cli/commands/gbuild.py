"""`compassc gbuild`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compass_core import files, switches, targets
from compass_core.aipubin.graphnote import read_note
from compass_core.errors import CompassError
from compass_core.reading import jsontext
from compassc.cli import options
from compassc.cli.build_report import tell
from compassc.cli.console import Console
from compassc.cli.option_types import Graphs
from compassc.cli.outputs import hand_over, place
from compassc.graph.files import is_graph
from compassc.importers import refuse_models

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from compassc.gbuilder.build import GraphBuild

EXAMPLE = """\
compassc gbuild kernel.compass/vadd.o
compassc gbuild vadd.o --set n=1024 --shape c=4x1024 -o out/aipu.bin
compassc gbuild model.compass/quant.txt -t X2_1204
compassc gbuild graph.txt -w weight.bin -t X2_1204"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="NAME.o|GRAPH.txt")
@click.option("--params", type=options.FILE, help="NAME.params.json of another place.")
@click.option(
    "-w", "--weights", type=options.INPUT, metavar="FILE", help="Graph: its constants (default: GRAPH.bin beside it)."
)
@options.target_option
@click.option("-L", "--lib", "libraries", multiple=True, type=options.FOLDER, help="Graph: look for objects in DIR.")
@click.option(
    "--plugins", multiple=True, type=options.PLACE, metavar="DIR|FILE", help="Graph: load plugins of DIR, or FILE."
)
@options.aiff_option
@click.option("--no-fuse", is_flag=True, help="Graph: a kernel for each layer, nothing joined.")
@click.option(
    "--launches", type=options.INPUT, metavar="FILE", help="Graph: the launches as `compassc group` wrote them to FILE."
)
@click.option(
    "--html",
    type=options.OutputPath(),
    metavar="FILE",
    help="Graph: a picture of launches, tensors and memory as a page.",
)
@click.option(
    "--profile",
    type=options.INPUT,
    metavar="FILE",
    help="For --html: cycles, as compass-run --profile --json printed them.",
)
@click.option(
    "--save-temps", is_flag=True, help="Graph: leave each kernel as a file to read, KERNEL.py in GRAPH.compass."
)
@options.output_option
@options.parameter_options
@options.talk_options
@click.pass_obj
def command(
    console: Console, source: Path, params: Path | None, output: Path | None, target: str, **given: Unpack[Graphs]
) -> None:
    """Object and parameters, or a Compass IR graph, to aipu.bin.

    Of an object NAME.o the parameters are read from NAME.params.json beside it; Compass IR (compass_ir.txt,
    compass_ir.bin) and the plugin (aipubt_gb_NAME.py) are written there too.

    A graph's layers are taken by plugins (of --plugins and of the folders in AIPUPLUGIN_PATH; they are programs) or by
    the built-in layers, whose kernels are compiled in GRAPH.compass beside the output. Element-wise layers join the
    kernel of the layer before them, with the same results.
    """
    refuse_models(source)
    if is_graph(source):
        _graph(console, source, output, target, given)
        return

    from compassc.cli.single_stage import run_arrow
    from compassc.driver import Request

    consts = options.load_consts(given["consts"])
    request = Request(target=target, shapes=given["shapes"], values=given["values"], consts=consts)
    run_arrow(console, "gbuild", source, output, request, params)


def _graph(console: Console, source: Path, output: Path | None, target: str, given: Graphs) -> None:
    from compassc.gbuilder.build import GraphOptions, build_model

    name = targets.load(target or switches.TARGET.get()).name
    with place(output) as made:
        choice = GraphOptions(
            plugin_dirs=given["plugins"],
            library_dirs=given["libraries"],
            work_dir=made.parent / f"{source.stem}.compass",
            fuse=not given["no_fuse"],
            aiff=given["aiff"],
            launches=given["launches"],
        )
        built = build_model(source, given["weights"], made, name, choice)
        console.clear_progress()
        tell(console, built, name, given["aiff"])
        if given["html"] is not None:
            _picture(built, source.name, given["html"], given["profile"])
        if given["save_temps"]:
            _kernels(built, made.parent / f"{source.stem}.compass")
        hand_over(console, made, output)


def _kernels(built: GraphBuild, folder: Path) -> None:
    """Writes the kernels of a built graph as kernel files, with the layers that each computes behind it."""
    texts: dict[str, str] = {}
    for launch in built.grouping.launches:
        if launch.kernel is not None:
            layers = ", ".join(f"{layer.name!r} ({layer.type})" for layer in launch.layers)
            name = launch.kernel.name
            texts[name] = (texts.get(name) or f"{launch.kernel.listing}\n") + f"# computes {layers}\n"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        files.write(folder / f"{name}.py", text)


def _picture(built: GraphBuild, title: str, page: Path, profile: Path | None) -> None:
    """Writes the page of a built graph. CompassError when the file is no profile of it."""
    from compassc.gbuilder.page import graph_page

    cycles: list[float] = []
    if profile is not None:
        content = jsontext.parse(files.read_text(profile), str(profile))
        try:
            cycles = [float(run["end"]) - float(run["start"]) for run in content["profile"]["launches"]]
        except (KeyError, TypeError, ValueError):
            raise CompassError(
                f"'{profile}' is no profile of a run",
                code="other-profile",
                help="compass-run aipu.bin --profile --json > FILE writes one",
            ) from None
    note = read_note(built.graph_json)
    if note is None:
        raise CompassError(
            "the graph is one kernel of the DSL, of which there is no picture",
            code="no-picture",
            help="compass-run --profile-html shows what a kernel does",
        )
    files.write(page, graph_page(built.content, note, title, cycles).encode())
