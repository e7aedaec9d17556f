"""The destination of a result: a file with its stage files beside it, or one without (stdout, a device, a pipe)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compass_core import files
from compassc.cli.console import Console, artifact

STDIO = Path("-")


def is_apart(output: Path | None) -> bool:
    """Whether an output is a place with nothing beside it."""
    return output is not None and (output == STDIO or files.is_special(output))


@contextmanager
def place(output: Path | None) -> Iterator[Path]:
    """The path of the aipu.bin to build; in a temporary folder if the output is stdout or a device."""
    if not is_apart(output):
        yield output or Path("aipu.bin")
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="compassc-") as folder:
        yield Path(folder, "aipu.bin")


def hand_over(console: Console, made: Path, output: Path | None) -> None:
    """Copy the built file to an output such as stdout or a device; for other outputs print its name."""
    if output == STDIO:
        artifact(made.read_bytes())
    elif output is not None and is_apart(output):
        files.write(output, made.read_bytes())
    else:
        console.made(made)
