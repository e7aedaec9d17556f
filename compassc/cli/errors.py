"""The boundary that every command runs inside: an exception becomes a message on stderr and an exit status."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click

from compass_core import VERSION, switches
from compass_core.errors import CompassError, UsageError, render
from compassc.cli.talk import Talk

INTERNAL_ERROR = 70
INTERRUPTED = 130
_STYLES = {"error": "red", "warning": "magenta", "note": "cyan", "help": "green"}
_LABEL = re.compile(r"^(?P<place>.*?)(?P<label>error|warning|note|help): (?P<text>.*)$")


def run(command: click.Command, args: list[str]) -> int:
    """Run a command and return its exit status. Nothing but this function turns errors into text."""
    talk = Talk()
    try:
        switches.check()
        status = command.main(args, prog_name="compassc", standalone_mode=False, obj=talk)
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
    text = render(error)
    talk.say(colored(text) if talk.use_color() else text)
    return error.exit_code


def _show_traceback(error: BaseException, talk: Talk) -> None:
    if talk.use_traceback():
        import traceback

        talk.say("".join(traceback.format_exception(error)).rstrip())


def colored(text: str) -> str:
    """A rendered error with its labels, places and carets in colour."""
    return "\n".join(_colored_line(line) for line in text.splitlines())


def _colored_line(line: str) -> str:
    if match := _LABEL.match(line):
        label = click.style(match["label"] + ":", fg=_STYLES[match["label"]], bold=True)
        return f"{click.style(match['place'], bold=True)}{label} {match['text']}"
    return click.style(line, fg="green", bold=True) if line.strip(" \t").strip("^~") == "" else line


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
        help=f"report it with that folder; it happens again with `{again}`",
    )
    text = render(defect)
    talk.say(colored(text) if talk.use_color() else text)
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
