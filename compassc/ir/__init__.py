"""The intermediate representation: types, immutable nodes, visitors, equality, and a text form that reads back."""

from __future__ import annotations

from . import exprs, stmts
from .dtypes import DataType, PointerType, dtype, make_dtype, native, pointer_type
from .equal import (
    StructuralMismatch,
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)
from .printer import print_expr, print_module
from .stmts import IRModule, PrimFunc
from .text import parse_module
from .visit import Rewriter, all_exprs, assigned_vars, rename_vars, substitute, substitute_body, walk_exprs, walk_stmts

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
