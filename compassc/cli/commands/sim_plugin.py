"""`compassc sim-plugin`."""

from __future__ import annotations

from pathlib import Path

import click

from compass_core import targets
from compass_runtime import sim_plugin
from compassc.cli import options
from compassc.cli.console import Console, shown


@click.command(epilog=options.example("compassc sim-plugin simulators\nLD_LIBRARY_PATH=simulators ./driver_sample"))
@click.argument("folder", type=options.FOLDER, metavar="DIR")
@options.target_option
@options.talk_options
@click.pass_obj
def command(console: Console, folder: Path, target: str) -> None:
    """Write the simulators that the vendor's driver and front end look for.

    They are the libraries libaipu_simulator_x2.so, _x3p.so and _x3s.so, the programs aipu_simulator_x2, _x3p and _x3s,
    with a target those of its family alone, and the program that they all start. Together they can be moved anywhere;
    the driver finds the libraries by the dynamic loader's rules, its front end the programs on PATH.
    """
    families = (targets.load(target).version,) if target else sim_plugin.FAMILIES
    for path in sim_plugin.write(folder, families):
        console.made(path)
    where = shown(folder.resolve())
    console.say(f"the driver finds them with LD_LIBRARY_PATH={where}, its front end with {where} on PATH")
