"""`compassc build`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compassc.cli import options, quantizing
from compassc.cli.console import Console
from compassc.cli.models import build_file
from compassc.cli.option_types import Given
from compassc.graph.files import is_graph
from compassc.importers import is_model, refuse_other_files

if TYPE_CHECKING:
    from typing_extensions import Unpack

EXAMPLE = """\
compassc build kernel.py -t X2_1204
compassc build kernel.py -k scale --set n=1024 --shape c=4x1024 -o scale.bin
compassc build kernel.py --stop-after codegen -o -
compassc build model.onnx -t X2_1204
compassc build model.onnx -t X2_1204 --calibrate samples.npz
compassc build model.onnx --output-tensor boxes --output-tensor scores
compassc build stream.onnx --state hn=h0"""


@click.command(epilog=options.example(EXAMPLE))
@options.kernel_argument("KERNEL.py[:NAME]|MODEL.onnx|GRAPH.txt", needed=False)
@options.target_option
@click.option("-k", "--kernel", "entry", metavar="NAME", help="The entry function, when the file has several.")
@options.output_option
@options.parameter_options
@options.tuned_option
@click.option(
    "--stop-after",
    metavar="STAGE",
    default="gbuild",
    help="parse, lower, codegen, cc or gbuild; of a model import, optimize, quantize, batch or gbuild.",
)
@click.option("--save-temps-dir", type=options.FOLDER, metavar="DIR", help="Folder of the stage files.")
@click.option("--depfile", type=options.OutputPath(), metavar="FILE.d", help="Write make rules.")
@options.output_tensor_option
@options.batch_option
@options.state_option
@quantizing.quantize_option
@quantizing.calibration_options
@options.aiff_option
@options.compiler_options
@click.option(
    "--toolchain",
    type=click.Choice(["compass", "vendor"]),
    help="vendor: the vendor's own aipuocc and aipugb make the object and the aipu.bin, for a board.",
)
@options.dry_run_option
@options.pass_options
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path | None, **given: Unpack[Given]) -> None:
    """Build kernel.py or a model to aipu.bin, all stages.

    Writes ./aipu.bin, and every stage's file to kernel.compass/ beside it; build.yaml there says how each was made.
    A model leaves its graphs in MODEL.compass/: float.txt as imported, opt.txt after the passes, and quant.txt when
    --calibrate or --quantize is given. A graph starts there.
    """
    if source is not None and (is_model(source) or is_graph(source)):
        build_file(console, source, given)
        return
    if source is not None:
        refuse_other_files(source)
    quantizing.refuse(given)
    from compassc.cli.whole_build import run_whole

    run_whole(console, source, given)
