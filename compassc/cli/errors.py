"""How the commands run inside of the boundary (`compass_core.errors.boundary`): errors go through their console."""

from __future__ import annotations

import click

from compass_core import switches
from compass_core.errors import CompassError, UsageError, boundary
from compass_core.errors.rendering import FORMATS
from compassc.cli.console import Console


def run(command: click.Command, args: list[str], name: str = "compassc") -> int:
    """Run a command and return its exit status."""
    console = Console(error_format=_asked_format(args))

    def program() -> object:
        switches.check()
        _check_text(args)
        return command.main(args, prog_name=name, standalone_mode=False, obj=console)

    return boundary.run(
        program, [name, *args], lambda error: _report(error, console), lambda: (console.inputs, console.folder)
    )


def _check_text(args: list[str]) -> None:
    """UsageError for words that are no text: names of files go into stage files, and those are UTF-8."""
    for word in args:
        if not word.isascii() and any("\ud800" <= one <= "\udfff" for one in word):
            raise UsageError(f"the argument {word!r} is not UTF-8", code="usage", help="give the file another name")


def _report(error: CompassError, console: Console) -> int:
    _show_traceback(error, console)
    console.diagnose(error)
    return error.exit_code


def _asked_format(args: list[str]) -> str | None:
    """The value of `--error-format`, which must also hold for the errors found before options are read."""
    name = "--error-format"
    for arg, following in zip(args, [*args[1:], ""]):
        value = following if arg == name else arg.removeprefix(f"{name}=") if arg.startswith(f"{name}=") else ""
        if value in FORMATS:
            return value
    return None


def _show_traceback(error: BaseException, console: Console) -> None:
    if console.use_traceback():
        import traceback

        console.say("".join(traceback.format_exception(error)).rstrip())
