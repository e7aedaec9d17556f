"""The interface of a kernel: its parameters with their roles, and how many elements of each it accesses.

This is found in the lowered module, where accesses are still in terms of the kernel's own arrays, and kept with the
legalised module for the stages after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.stmts import IRModule


@dataclass(frozen=True)
class Interface:
    """`params` and `extents` of `NAME.params.json` (docs/architecture.md)."""

    params: list[dict[str, Any]]
    extents: dict[str, Any] | None


def interface_of(lowered: IRModule) -> Interface:
    """The interface of a lowered module's entry."""
    from . import extents, roles

    return Interface(roles.parameters(lowered), extents.program(lowered))
