"""The intermediate representation: types, immutable nodes, visitors, equality, and a text form that reads back."""

from __future__ import annotations

from . import exprs, stmts
from .dtypes import DataType, PointerType, dtype, make_dtype, native, pointer_type
from .equal import structural_equal
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
    "all_exprs",
    "assigned_vars",
    "dtype",
    "exprs",
    "make_dtype",
    "native",
    "parse_module",
    "pointer_type",
    "print_expr",
    "print_module",
    "rename_vars",
    "stmts",
    "structural_equal",
    "substitute",
    "substitute_body",
    "walk_exprs",
    "walk_stmts",
]
