"""A graph as two files: GRAPH.txt, and its constants in GRAPH.bin beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from compass_core import files
from compass_core.errors import UsageError
from compass_core.files import claims
from compass_core.reading.limits import TEXT_BYTES
from compassc.graph import text
from compassc.graph.graph import Graph

SUFFIXES = (".txt", ".def")
"""Of files that hold a graph."""


def is_graph(path: Path) -> bool:
    """Whether a file is a graph's text, by its name."""
    return path.suffix.lower() in SUFFIXES


def load(path: Path | str, weights: Path | None = None) -> Graph:
    """The graph in a text file; its constants are those of `weights`, or of the file of its name with the suffix .bin."""
    path = Path(path)
    binary = weights_of(path) if weights is None else weights
    if binary is not None:
        claims.reads(binary)
    content = files.read(path, TEXT_BYTES).decode("utf-8", "replace")
    return text.read(content, files.view(binary) if binary is not None else b"", str(path))


def weights_of(path: Path) -> Path | None:
    """The file with the constants of a graph's text: that of its name with the suffix .bin. None where there is none."""
    beside = path.with_suffix(".bin")
    return beside if beside != path and beside.is_file() else None


def save(graph: Graph, path: Path | str, weights: Path | None = None) -> Path:
    """Writes a graph as text, its constants beside it with the suffix .bin; both or none. Gives that second path.

    UsageError when both would be the same file.
    """
    path = Path(path)
    binary = path.with_suffix(".bin") if weights is None else weights
    if binary == path:
        help = f"call the text {path.with_suffix('.txt').name}"
        raise UsageError(
            f"a graph is two files, text and constants, which cannot both be '{path}'", code="usage", help=help
        )
    named = replace(graph, attributes={**graph.attributes, "model_bin": f"./{binary.name}"})
    content, constants = text.in_pieces(named)
    files.write_all({path: content, binary: constants})
    return binary
