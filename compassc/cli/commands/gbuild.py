"""`compassc gbuild`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from compassc.cli import options
from compassc.cli.arrow import run_arrow
from compassc.cli.talk import Talk

EXAMPLE = """\
compassc gbuild kernel.compass/vadd.o
compassc gbuild vadd.o --set n=1024 --shape c=4x1024 -o out/aipu.bin"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="NAME.o")
@click.option(
    "--params", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="NAME.params.json of another place."
)
@options.output_option
@options.parameter_options
@options.talk_options
@click.pass_obj
def command(talk: Talk, source: Path, params: Path | None, output: Path | None, **given: dict[str, Any]) -> None:
    """Object and parameters to aipu.bin.

    The parameters are read from NAME.params.json beside the object. Compass IR (compass_ir.txt, compass_ir.bin) and
    the plugin (aipubt_gb_NAME.py) are written there too.
    """
    from compassc.driver import Request

    consts = options.load_consts(given["consts"])
    request = Request(shapes=given["shapes"], values=given["values"], consts=consts)
    run_arrow(talk, "gbuild", source, output, request, params)
