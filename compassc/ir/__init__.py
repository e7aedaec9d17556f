"""The intermediate representation: types, immutable nodes, visitors, equality, and a text form that reads back."""

from __future__ import annotations

from .dtypes import DataType, PointerType, dtype, make_dtype, native, pointer_type
from .equal import structural_equal
from .exprs import *  # noqa: F403
from .printer import print_expr, print_module
from .stmts import *  # noqa: F403
from .text import parse_module
from .visit import Rewriter, all_exprs, assigned_vars, rename_vars, substitute, substitute_body, walk_exprs, walk_stmts

__all__ = [name for name in dir() if not name.startswith("_")]
