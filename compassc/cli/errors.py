"""The boundary that every command runs inside: an exception becomes a message on stderr and an exit status."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from compass_core import VERSION, switches
from compass_core.errors import CompassError, UsageError
from compass_core.rendering import FORMATS
from compassc.cli.talk import Talk

INTERNAL_ERROR = 70
INTERRUPTED = 130


def run(command: click.Command, args: list[str], name: str = "compassc") -> int:
    """Run a command and return its exit status. Nothing but this function turns errors into text."""
    talk = Talk(error_format=_asked_format(args))
    try:
        switches.check()
        status = command.main(args, prog_name=name, standalone_mode=False, obj=talk)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return _report(_usage_error(error), talk)
    except CompassError as error:
        return _report(error, talk)
    except (click.Abort, KeyboardInterrupt):
        talk.say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our stdout went away: nothing is left to be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the boundary: whatever is unforeseen is a defect of this program
        return _report_internal(error, talk, args)


def _usage_error(error: click.ClickException) -> UsageError:
    """click's complaint about the command line, in our form."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "compassc"
    message = error.format_message().strip()
    text, _, hint = message.partition(" Did you mean ")
    help = f"did you mean {hint}" if hint else f"`{command} --help` shows how to use it"
    return UsageError(text[:1].lower() + text[1:].rstrip("."), code="usage", help=help)


def _report(error: CompassError, talk: Talk) -> int:
    _show_traceback(error, talk)
    talk.diagnose(error)
    return error.exit_code


def _asked_format(args: list[str]) -> str | None:
    """The value of `--error-format`, which must also hold for the errors found before options are read."""
    name = "--error-format"
    for arg, following in zip(args, [*args[1:], ""]):
        value = following if arg == name else arg.removeprefix(f"{name}=") if arg.startswith(f"{name}=") else ""
        if value in FORMATS:
            return value
    return None


def _show_traceback(error: BaseException, talk: Talk) -> None:
    if talk.use_traceback():
        import traceback

        talk.say("".join(traceback.format_exception(error)).rstrip())


def _report_internal(error: Exception, talk: Talk, args: list[str]) -> int:
    """Say that this is our defect, and leave a folder with all that is needed to see it again."""
    _show_traceback(error, talk)
    folder = _save_reproducer(error, talk, args)
    again = _command_line(args)
    if module := getattr(error, "before", ""):  # a pass failed: its input and its name are all it takes
        (folder / "before.ir.txt").write_text(module, encoding="utf-8")
        passes = getattr(error, "pass_name", "")
        again = _command_line(["lower", str(folder / "before.ir.txt"), "--passes", passes, "-o", "-"])
    defect = CompassError(
        str(error) if module else f"internal error: {type(error).__name__}: {error}".partition("\n")[0],
        notes=("this is a defect of compassc, not of your kernel", f"what is needed to see it again is in {folder}"),
        code="internal",
        help=f"report it with that folder; it happens again with `{again}`",
    )
    talk.diagnose(defect)
    return INTERNAL_ERROR


def _command_line(args: list[str]) -> str:
    import shlex

    return shlex.join(["compassc", *args])


def _save_reproducer(error: Exception, talk: Talk, args: list[str]) -> Path:
    """A new folder with the inputs, the stage files so far, the traceback and the versions."""
    import platform
    import shutil
    import tempfile
    import traceback

    folder = Path(tempfile.mkdtemp(prefix="compassc-report-"))
    for path in talk.inputs:
        if path.is_file():
            shutil.copy(path, folder)
    if talk.folder is not None and talk.folder.is_dir():
        shutil.copytree(talk.folder, folder / "stages", dirs_exist_ok=True)
    (folder / "traceback.txt").write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    about = {
        "command": _command_line(args),
        "working directory": str(Path.cwd()),
        "compassc": VERSION,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    lines = [f"{name}: {value}\n" for name, value in about.items()]
    (folder / "versions.txt").write_text("".join(lines), encoding="utf-8")
    return folder
