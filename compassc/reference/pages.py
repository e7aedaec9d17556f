"""The pages of all operations as files."""

from __future__ import annotations

from pathlib import Path

from compass_core import files

from ..ops import Op, docs
from . import examples


def page(op: Op) -> str:
    """The Markdown page of an operation, with its example."""
    return docs.page(op, examples.section(op))


def pages() -> dict[str, str]:
    """All pages by file name, the index included."""
    return {"README.md": docs.index(), **{f"{op.name}.md": page(op) for op in docs.documented()}}


def write(folder: Path) -> list[Path]:
    """Write all pages into a folder, and remove pages of operations that are no more."""
    return files.write_pages(folder, pages())
