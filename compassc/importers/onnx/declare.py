"""The operators of ONNX, as `compassc.importers.declare` explains it; `since` is the opset."""

from __future__ import annotations

from compassc.importers.declare import Constant, Operator, Table
from compassc.importers.onnx.maker import COMMON
from compassc.importers.onnx.reading import GROUPS

__all__ = [
    "CONSTANT_ONLY",
    "IGNORED",
    "REFUSED",
    "Constant",
    "Operator",
    "constant_only",
    "operator",
    "operators",
    "refuse",
    "select",
]

IGNORED = frozenset({"consumed_inputs"})
"""Attributes that never meant anything to results."""
TABLE = Table("compassc.importers.onnx.operators", COMMON, GROUPS)
REFUSED = TABLE.refused
CONSTANT_ONLY: set[tuple[str, str]] = set()
"""Operators all of whose inputs must be known, by (domain, name)."""
operator, refuse, operators, select = TABLE.operator, TABLE.refuse, TABLE.operators, TABLE.select


def constant_only(*names: str, domain: str = "") -> None:
    """Declares operators that are computed at import, and never become layers."""
    CONSTANT_ONLY.update((domain, name) for name in names)
