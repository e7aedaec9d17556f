"""`compassc sim-plugin`."""

from __future__ import annotations

from pathlib import Path

import click

from compassc.cli import options
from compassc.cli.talk import Talk


@click.command(epilog=options.example("compassc sim-plugin simulators\nLD_LIBRARY_PATH=simulators ./driver_sample"))
@click.argument("folder", type=options.FOLDER, metavar="DIR")
@options.target_option
@options.talk_options
@click.pass_obj
def command(talk: Talk, folder: Path, target: str) -> None:
    """Write the simulator libraries that the vendor's driver loads.

    They are libaipu_simulator_x2.so, _x3p.so and _x3s.so, with a target that of its family alone, and the program that
    they start. Together they can be moved anywhere; the driver finds them by the dynamic loader's rules.
    """
    from compass_core import targets
    from compass_runtime import sim_plugin
    from compassc.cli.talk import shown

    families = (targets.load(target).version,) if target else sim_plugin.FAMILIES
    for path in sim_plugin.write(folder, families):
        talk.made(path)
    talk.say(f"the driver finds them with LD_LIBRARY_PATH={shown(folder.resolve())}")
