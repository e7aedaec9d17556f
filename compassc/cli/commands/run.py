"""`compassc run`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from compassc.cli import options, quantizing
from compassc.cli.console import Console
from compassc.cli.models import built_model
from compassc.cli.option_types import Given

EXAMPLE = """\
compassc run model.onnx --inputs image.npy
compassc run model.onnx --calibrate data.npz --inputs x.npy -o y.npy
compassc run model.compass --inputs image.npy --profile"""
OF_RUNS = (
    "inputs",
    "outputs",
    "outputs_dir",
    "expect",
    "rtol",
    "atol",
    "repeat",
    "timeout",
    "profile",
    "profile_html",
    "trace",
    "dump_layers",
    "compared",
    "json",
    "reset_every",
    "state_file",
)
"""Parameters of `compass-run` that are taken here, too."""


class RunCommand(click.Command):
    """A command with the options of `compass-run` that it hands on, behind its own."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from compass_runtime.cli import command as compass_run

        own = super().get_params(ctx)
        return [*own[:-1], *(param for param in compass_run.params if param.name in OF_RUNS), *own[-1:]]


@click.command(cls=RunCommand, epilog=options.example(EXAMPLE))
@click.argument("source", type=options.PLACE, metavar="MODEL.onnx|GRAPH.txt|MODEL.compass")
@options.target_option
@quantizing.quantize_option
@quantizing.calibration_options
@options.model_shape_option
@options.batch_option
@options.state_option
@options.talk_options
@click.pass_context
def command(ctx: click.Context, /, source: Path, **given: object) -> None:
    """Build a model, and run it on the simulator: real numbers in files go in and come out.

    SOURCE is a model or a graph, which is built into MODEL.compass first, or the folder of a build. Inputs may have any
    number of samples along a first axis, which run one after the other.
    """
    from compass_runtime.cli import command as compass_run

    console: Console = ctx.obj
    asked = {name: given.pop(name) for name in OF_RUNS}
    console.inputs.append(source)
    model = built_model(console, source, cast(Given, given))
    ctx.exit(ctx.invoke(compass_run, program=model.path, real=True, **asked))
