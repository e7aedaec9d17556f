"""The destination of a result: a file with its stage files beside it, or one without (stdout, a device, a pipe)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compass_core import files
from compass_core.errors import UsageError
from compass_core.files import claims
from compassc.cli.console import Console, artifact

STDIO = Path("-")


def is_apart(output: Path | None) -> bool:
    """Whether an output is a place with nothing beside it."""
    return output is not None and (output == STDIO or files.is_special(output))


def graph_place(output: Path | None, default: Path) -> Path:
    """The path of the graph's text that a command writes, its constants beside it: as asked, else `default`.

    UsageError for a place without room for two files, and where files lie that are no graph and were not named.
    """
    if is_apart(output):
        raise UsageError("a graph is two files, which need a name", code="usage", help=f"-o {default.name}")
    path = output or default
    constants = path.with_suffix(".bin")
    for one in (path,) * (output is None) + (constants,):
        if one.exists() and not _is_graph(path):
            message = f"'{one}' is there, and is no part of a graph that could be replaced"
            raise UsageError(message, code=claims.CODE, help="-o GRAPH.txt names another place, or remove it")
    claims.writes(path, "-o")
    claims.writes(constants, f"the file of constants of {path.name}")
    return path


def _is_graph(path: Path) -> bool:
    """Whether a file has the head of a graph's text."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b"layer_number" in file.read(4096)


@contextmanager
def place(output: Path | None) -> Iterator[Path]:
    """The path of the aipu.bin to build; in a temporary folder if the output is stdout or a device."""
    if not is_apart(output):
        claims.writes(output or Path("aipu.bin"), "-o")
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
