"""The sources of our packages, parsed once for all tests that look at them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

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
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file."""
    return tuple(ast.walk(parsed(path)))
