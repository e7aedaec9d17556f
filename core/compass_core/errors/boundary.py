"""The boundary that every program runs inside: whatever happens becomes a message on stderr and an exit status.

Streams may be closed, full or without a reader: what stdout does not take is an error, what stderr does not take is lost.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from compass_core.errors import CompassError, UsageError

INTERRUPTED = 130
Report = Callable[[CompassError], int]
"""Tells the user an error; gives its exit status."""
RARELY = (500_000, 12, 50)
"""Thresholds of Python's garbage collector: with its own, looking for cycles takes a third of a build's time, and finds few.
The first is more than the objects of a build of 50 layers."""

REST = "20"
"""After so many cycles, as a power of two, without work the threads of NumPy's library of products sleep (OPENBLAS_THREAD_TIMEOUT).
They begin without work, and would have a processor to themselves for 64 times as long, which is a tenth of a build."""


def run(
    program: Callable[[], object],
    words: Sequence[str],
    report: Report,
    saved: Callable[[], tuple[Sequence[Path], Path | None]],
) -> int:
    """Runs a program of click's; gives its exit status. `words`: its command line, with its name; `saved`: the files that
    the report of a defect takes, and the folder of stage files."""
    import click

    from compass_core.files import claims

    open_streams()
    keep_interrupts()
    collect_rarely()
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", REST)
    try:
        with claims.command():
            status = program()
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return report(_usage_error(error, words[0]))
    except CompassError as error:
        return report(error)
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our stdout went away: nothing is left to be said
        return 1
    except Exception as error:  # noqa: BLE001 - whatever is unforeseen is a defect of this program
        from compass_core.errors.defects import defect

        return report(defect(error, words, *saved()))
    finally:
        _end_stdout()


def collect_rarely() -> None:
    """Lets the program look for cycles of garbage now and then, and not once more at its end, when all memory is given back."""
    gc.set_threshold(*RARELY)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def keep_interrupts() -> None:
    """Lets Ctrl-C interrupt the program also where it comes while an object is finalised: there Python drops what is raised,
    so it is raised again a little later."""
    before = sys.unraisablehook

    def hook(found: Any) -> None:
        if not issubclass(found.exc_type, KeyboardInterrupt):
            before(found)
            return
        import signal
        import threading

        # a signal of the system, for one of Python's alone would wait for the end of a call
        again = threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        again.daemon = True
        try:
            again.start()
        except KeyboardInterrupt:  # on a busy machine it came before this was left
            hook(found)

    sys.unraisablehook = hook


def complain(text: str, end: str = "\n") -> None:
    """Writes a line on stderr. Where that takes nothing there is nobody to be told so."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        _replace(2)


def open_streams() -> None:
    """Gives a process that was started without stdin, stdout or stderr such: nothing to read, a stdout that refuses what is
    written, a stderr that forgets it. So no file that is opened gets their numbers."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_RDWR)):
        try:
            os.fstat(number)
        except OSError:
            made = os.open(os.devnull, flags)
            if made != number:
                os.dup2(made, number)
                os.close(made)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def _end_stdout() -> None:
    """Writes what is left; Python would do so at its end, and say that it cannot."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _replace(1)


def _replace(number: int) -> None:
    """Lets a descriptor take what is still to be written to it."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)
    except OSError:
        return


def _usage_error(error: object, name: str) -> UsageError:
    """click's complaint about the command line, in our form."""
    import click

    assert isinstance(error, click.ClickException)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else name
    text, _, hint = error.format_message().strip().partition(" Did you mean ")
    help = f"did you mean {hint}" if hint else f"`{command} --help` shows how to use it"
    return UsageError(text[:1].lower() + text[1:].rstrip("."), code="usage", help=help)
