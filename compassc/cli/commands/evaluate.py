"""`compassc evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compassc.cli import options, quantizing, remote
from compassc.cli.console import Console
from compassc.cli.option_types import Given

if TYPE_CHECKING:
    from typing_extensions import Unpack

EXAMPLE = """\
compassc evaluate model.onnx --data test.npz -t X2_1204
compassc evaluate model.compass --data images/ --html report.html
compassc evaluate model.compass --data test.npz --metric score.py:mean_iou"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.PLACE, metavar="MODEL.onnx|GRAPH.txt|MODEL.compass")
@click.option(
    "--data",
    type=options.SOURCE,
    required=True,
    metavar="DATA",
    help="Samples with labels: .npz, images/, FILE.py:DATASET.",
)
@click.option("--labels", type=options.INPUT, metavar="FILE.npy", help="The labels, when they are not in the data.")
@click.option(
    "--metric",
    type=options.SOURCE,
    metavar="NAME|FILE.py:NAME",
    help="Instead of top-1 and top-5: map or map-centred (boxes), or a function of outputs and labels.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Take the first N samples only.")
@click.option("--top", type=click.IntRange(0), default=20, metavar="N", help="Layers to list (default: 20).")
@click.option("--no-reference", is_flag=True, help="Leave out the model's own framework.")
@click.option(
    "--reference-samples",
    type=click.IntRange(1),
    metavar="N",
    help="Compute only the first N samples by the references (float and quantised graph, layers).",
)
@click.option(
    "--html", type=options.OutputPath(), metavar="FILE", help="Write a page with the network, layer by layer."
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="N", help="Processes (the package distributed).")
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler whose workers do it, e.g. tcp://host:8786.")
@remote.run_options
@options.target_option
@quantizing.quantize_option
@quantizing.calibration_options
@options.model_shape_option
@options.state_option
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path, **given: Unpack[Given]) -> None:
    """How good a built model is: accuracy on a data set, and each layer's distance from the float graph.

    Compares the model's framework (ONNX Runtime), the float graph, the quantised graph by its exact references, and the
    simulator. SOURCE is the folder of a build, or a model or graph, which is built into MODEL.compass first.
    """
    from compassc.cli.evaluating import run

    run(console, source, given)
