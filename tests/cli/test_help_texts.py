"""What --help says: within 80 columns, and all that there is to choose from."""

from collections.abc import Iterator

import click
import pytest

from compass_runtime import cli as runner
from compass_runtime.checks.modes import Modes
from compassc.cli.main import cli


def helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The help text of a command and of all below it, on a terminal of 80 columns."""
    with click.Context(command, info_name=name, parent=parent, terminal_width=80) as context:
        context.max_content_width = command.context_settings.get("max_content_width")
        yield context.command_path, command.get_help(context)
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                found = command.get_command(context, below)
                assert found is not None
                yield from helps(found, below, context)


@pytest.mark.parametrize("command", [cli, runner.command], ids=["compassc", "compass-run"])
def test_helps_fit_80_columns(command):
    found = dict(helps(command, "it"))
    assert [(path, line) for path, text in found.items() for line in text.splitlines() if len(line) > 80] == []


def test_all_checks_are_named():
    (option,) = (p for p in runner.command.params if p.name == "check")
    assert isinstance(option, click.Option) and option.help is not None
    assert all(f" {mode}" in option.help for mode in Modes.ALL.names())
