"""`compassc tune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compassc.cli import options, quantizing
from compassc.cli.console import Console
from compassc.cli.option_types import Given

if TYPE_CHECKING:
    from typing_extensions import Unpack

EXAMPLE = """\
compassc tune kernel.py:vadd --set n=4096 --jobs 4 -o records.jsonl
compassc build kernel.py -k vadd --tuned records.jsonl
compassc tune model.onnx --calibrate samples.npz --trials 1000 --jobs 4
compassc build model.onnx --calibrate samples.npz --tuned records.jsonl"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.KERNEL, metavar="KERNEL.py[:NAME]|MODEL.onnx|GRAPH.txt")
@options.target_option
@click.option("-k", "--kernel", "entry", metavar="NAME", help="What to tune, when the file has several.")
@options.size_options
@click.option(
    "-o", "--output", type=options.OutputPath(), metavar="FILE.jsonl",
    help="Where records go; by default into the folder COMPASS_TUNING, else records.jsonl.",
)  # fmt: skip
@click.option("--trials", type=click.IntRange(1), default=500, metavar="N", help="Candidates to try (default: 500).")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="S", help="Time after which it ends.")
@click.option("--patience", type=click.IntRange(1), metavar="N", help="End after N trials that bring nothing better.")
@click.option(
    "--strategy", default="", metavar="NAME", help="How to search: random, grid, ...",
    shell_complete=options.names_of("strategies"),
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="The same seed gives the same search.")
@click.option("--cold", is_flag=True, help="Do not begin with what is best on record, for these sizes and others.")
@click.option(
    "--metric", type=click.Choice(["cycles", "seconds"]), default="cycles",
    help="What is to be least: estimated cycles, or the simulator's time here.",
)  # fmt: skip
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=10.0, metavar="S", help="Limit of a run.")
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="N", help="Processes that measure.")
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler whose workers measure, e.g. tcp://host:8786.")
@click.option(
    "--tracker", metavar="HOST:PORT", help="Run candidates on servers that this tracker gives, one for each job."
)
@click.option("--key", default="", metavar="KEY", help="Kind of these servers.")
@click.option("--html", type=options.OutputPath(), metavar="FILE", help="Write a page about the search.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@quantizing.quantize_option
@quantizing.calibration_options
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path, **given: Unpack[Given]) -> None:
    """Search the best constants of kernels, the best schedules, and the best choices for the layers of a model.

    Every candidate is built, run and checked; results are appended to the records as they come. An interrupted search goes
    on where it was when the command is given again.
    """
    from compassc.cli.tuning import run

    run(console, source, given)
