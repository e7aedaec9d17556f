"""`compassc import`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from compass_core import files
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.cli import options
from compassc.cli.console import Console, artifact
from compassc.cli.outputs import graph_place
from compassc.cli.tables import table_text
from compassc.importers import FRAMEWORKS, import_model

EXAMPLE = """\
compassc import model.onnx -o model.txt
compassc import model.onnx --shape image=1x3x224x224
compassc import model.tflite --output-tensor boxes --output-tensor scores
compassc import --operators Conv"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="MODEL", required=False)
@options.output_option
@options.model_shape_option
@options.output_tensor_option
@click.option(
    "--operators", metavar="NAME", is_flag=False, flag_value="", help="List a framework's operators and their status."
)
@click.option(
    "--framework", type=click.Choice(tuple(FRAMEWORKS)), default="onnx", show_default=True, help="Of which framework."
)
@click.option("--write-docs", metavar="FILE", type=options.OUTPUT, help="Write that list as a page.")
@options.talk_options
@click.pass_obj
def command(
    console: Console,
    source: Path | None,
    output: Path | None,
    shapes: dict[str, tuple[int, ...]],
    outputs: tuple[str, ...],
    operators: str | None,
    framework: str,
    write_docs: Path | None,
) -> None:
    """A model (ONNX, TFLite, PyTorch) to a graph (GRAPH.txt, GRAPH.bin).

    Operators become layers, constants are computed, images get their channels last. What is not supported is named at
    once, with the reason. Without -o the graph lies beside the model.
    """
    if operators is not None or write_docs is not None:
        _operators(framework, operators or "", write_docs)
        return
    from compassc.cli.quantizing import telling
    from compassc.graph.files import save

    if source is None:
        help = "`compassc import --help` shows an example"
        raise UsageError("import needs the model's file", code="usage", help=help)
    path = graph_place(output, source.with_suffix(".txt"))
    console.inputs.append(source)
    with telling(console):
        graph = import_model(source, shapes, outputs)
    save(graph, path)
    console.clear_progress()
    console.say(f"{len(graph.layers)} layers")
    console.made(path)


def _operators(framework: str, name: str, page: Path | None) -> None:
    """Prints or writes the table of operators."""
    docs = import_module(f"compassc.importers.{framework}.docs")

    if page is not None:
        files.write(page, docs.page())
        return
    rows = [row for row in docs.rows() if name.lower() in row.operator.lower()]
    if not rows:
        names = [row.operator for row in docs.rows()]
        raise UsageError(
            f"no operator of {FRAMEWORKS[framework]} is called '{name}'",
            code="unknown-op",
            help=help_for(name, names, "operators"),
        )
    artifact(table_text(("", docs.COLUMNS, rows)))
