"""The intermediate representation: types, immutable nodes, visitors, equality, and a text form that reads back."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from . import exprs, stmts
from .dtypes import DataType, PointerType, dtype, make_dtype, native, pointer_type
from .equal import (
    StructuralMismatch,
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)
from .stmts import IRModule, PrimFunc
from .visit import Rewriter, all_exprs, assigned_vars, rename_vars, substitute, substitute_body, walk_exprs, walk_stmts

if TYPE_CHECKING:  # for editors and type checkers; at run time each is loaded at its first use
    from .printer import print_expr, print_module
    from .text import parse_module

_LAZY = {"parse_module": ".text", "print_expr": ".printer", "print_module": ".printer"}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name], __name__), name)
    return value


__all__ = [
    "DataType",
    "IRModule",
    "PointerType",
    "PrimFunc",
    "Rewriter",
    "StructuralMismatch",
    "all_exprs",
    "assert_structural_equal",
    "assigned_vars",
    "dtype",
    "exprs",
    "get_first_structural_mismatch",
    "make_dtype",
    "native",
    "parse_module",
    "pointer_type",
    "print_expr",
    "print_module",
    "rename_vars",
    "stmts",
    "structural_equal",
    "structural_hash",
    "substitute",
    "substitute_body",
    "walk_exprs",
    "walk_stmts",
]
