"""The sources of our packages, parsed once for all tests that look at them."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

from compass_core.reading import pyast

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "compassc": ROOT,
    "compass_core": ROOT / "core",
    "compass_runtime": ROOT / "runtime",
    "compass_sim": ROOT / "sim",
}
"""Where each package lies."""


@cache
def paths() -> list[Path]:
    """The Python files of all packages."""
    return [path for top, folder in FOLDERS.items() for path in sorted((folder / top).rglob("*.py"))]


@cache
def _trees() -> dict[Path, ast.Module]:
    """All of them at once: looking for garbage among millions of nodes, then or later, takes longer than reading them."""
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths()}
    finally:
        gc.freeze()
        gc.enable()


def parsed(path: Path) -> ast.Module:
    return _trees()[path]


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file but contexts (`pyast.walk`)."""
    return tuple(pyast.walk([parsed(path)]))
