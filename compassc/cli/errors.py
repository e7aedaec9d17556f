"""The boundary that every command runs inside: an exception becomes a message on stderr and an exit status."""

from __future__ import annotations

import os
import sys

import click

from compass_core import switches
from compass_core.errors import CompassError, UsageError
from compass_core.errors.rendering import FORMATS
from compassc.cli.console import Console

INTERRUPTED = 130


def run(command: click.Command, args: list[str], name: str = "compassc") -> int:
    """Run a command and return its exit status. Nothing but this function turns errors into text."""
    console = Console(error_format=_asked_format(args))
    try:
        switches.check()
        _check_text(args)
        status = command.main(args, prog_name=name, standalone_mode=False, obj=console)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return _report(_usage_error(error), console)
    except CompassError as error:
        return _report(error, console)
    except (click.Abort, KeyboardInterrupt):
        console.say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our stdout went away: nothing is left to be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the boundary: whatever is unforeseen is a defect of this program
        from compass_core.errors.defects import defect

        return _report(defect(error, [name, *args], console.inputs, console.folder), console)


def _check_text(args: list[str]) -> None:
    """UsageError for words that are no text: names of files go into stage files, and those are UTF-8."""
    for word in args:
        if not word.isascii() and any("\ud800" <= one <= "\udfff" for one in word):
            raise UsageError(f"the argument {word!r} is not UTF-8", code="usage", help="give the file another name")


def _usage_error(error: click.ClickException) -> UsageError:
    """click's complaint about the command line, in our form."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "compassc"
    message = error.format_message().strip()
    text, _, hint = message.partition(" Did you mean ")
    help = f"did you mean {hint}" if hint else f"`{command} --help` shows how to use it"
    return UsageError(text[:1].lower() + text[1:].rstrip("."), code="usage", help=help)


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
