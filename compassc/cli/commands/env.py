"""`compassc env`."""

from __future__ import annotations

import click

from compass_core import switches
from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import table_text


@click.command(epilog=options.example("compassc env\nCOMPASS_TARGET=X3P_1304 compassc env"))
@options.talk_options
def command() -> None:
    """Show every switch with its value and origin.

    A switch is taken from the command line, else the environment, else the config file, else it has its default.
    """
    rows = [(switch.variable, setting.text, setting.origin, switch.help) for switch, setting in switches.settings()]
    rows.append(("COMPASS_CONFIG", str(switches.config_path()), "", "the config file: lines `name = value`"))
    artifact(table_text(("", ("switch", "value", "origin", "meaning"), rows)))
