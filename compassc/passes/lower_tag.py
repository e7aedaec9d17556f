"""Apply or drop the hints of `S.tag`.

`no_zip` on a full-part conversion from a 16-bit float to float32 selects the even/odd form on X2. Anywhere else the
hint is dropped with a warning.
"""

from __future__ import annotations

import warnings
from typing import TypeGuard

from compass_core import targets

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.printer import print_expr
from ..ir.visit import Rewriter, rewrites
from ._vectors import cast

NAME = "LowerTag"


class _Lower(Rewriter):
    interest = E.flags_of_calls("tag")

    def __init__(self, has_no_zip: bool) -> None:
        super().__init__()
        self.has_no_zip = has_no_zip

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        if e.op != "tag":
            return e
        inner = e.args[0]
        if self.has_no_zip and _is_widening_float(inner):
            return cast(inner.args, inner.data_type, "all_with_no_zip", inner.attr("saturate"))
        text = print_expr(inner)
        warnings.warn(f"the tag no_zip has no effect on {text}", stacklevel=2)
        return inner


def _is_widening_float(e: E.Expr) -> TypeGuard[E.Call]:
    if type(e) is not E.Call or e.op != "cast" or e.attr("part") != "all":
        return False
    source = e.args[0].dtype
    return source.is_floating and source.bits == 16 and e.dtype.is_float and e.dtype.bits == 32


def run(module: S.IRModule) -> S.IRModule:
    has_no_zip = targets.load(module.target).version == "X2"
    return module.map_functions(lambda f: _Lower(has_no_zip).function(f))
