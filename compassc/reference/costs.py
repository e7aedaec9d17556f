"""The classes of the C functions that operations become, for profiles: `configurations/cost/operations.yaml`.

The runtime reads them there, for it runs without the compiler.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from compass_core import files, targets

from ..ops import Op, core

PATH = Path(targets.folder()) / "cost" / "operations.yaml"
HEAD = """\
# Written by `make docs` from the declarations of the operations: the class of each C function that they become, and the
# functions whose mask is data. classes.yaml says what the classes are.
"""
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_SCALAR = "scalar"


def called(template: str) -> set[str]:
    """The functions that a C template calls."""
    return set(_CALLED.findall(template))


def functions(op: Op) -> dict[str, str]:
    """The C functions of an operation, with the class of each; without those that other operations declare."""
    if op.cost is None:
        return {}
    found = dict(op.cost.functions)
    for condition, template in op.c:
        kind = op.cost.scalar if condition == _SCALAR else op.cost.kind
        found.update((name, kind) for name in called(template) if name not in op.cost.borrows)
    return found


def classes() -> dict[str, dict[str, set[str]]]:
    """Class -> `builtins` and `unmasked`, each a set of functions. ValueError where two operations disagree."""
    kinds: dict[str, tuple[str, str]] = {}
    out: dict[str, dict[str, set[str]]] = {}
    for op in core.load().values():
        for name, kind in functions(op).items():
            other, owner = kinds.setdefault(name, (kind, op.name))
            if other != kind:
                raise ValueError(f"{name} is of class {kind} in {op.name}, of class {other} in {owner}")
            lists = out.setdefault(kind, {"builtins": set(), "unmasked": set()})
            lists["builtins"].add(name)
            if op.cost is not None and op.cost.mask_is_data:
                lists["unmasked"].add(name)
    return out


def text() -> str:
    """The file."""
    return HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for kind, lists in sorted(classes().items()):
        yield f"{kind}:"
        for key, names in lists.items():
            if names:
                listed = ", ".join(f'"{name}"' if "*" in name else name for name in sorted(names))
                yield from textwrap.wrap(
                    f"{key}: [{listed}]", 118, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
                )


def write() -> Path:
    """Write the file."""
    files.write(PATH, text())
    return PATH


if __name__ == "__main__":
    write()
