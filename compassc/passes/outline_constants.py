"""Constant tables become file-scope byte arrays named after their function.

Before: `AllocConst` defines the typed pointer of a table. After: it defines a byte array `<function>_u8_<name>`, and a
definition of the typed pointer follows.
"""

from __future__ import annotations

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import dtype, pointer_type
from ..ir.visit import Rewritten, StatementRewriter, rewrites
from ._vectors import int32

NAME = "OutlineConstants"
_BYTE = dtype("uint8")


class _Outline(StatementRewriter):
    def __init__(self, function: str) -> None:
        super().__init__()
        self.prefix = f"{function}_u8_"

    @rewrites(S.AllocConst)
    def rewrite_alloc_const(self, s: S.AllocConst) -> Rewritten:
        pointer = s.buffer.data
        if pointer.name.startswith(self.prefix):
            return s
        table = E.Var(self.prefix + pointer.name, pointer_type(_BYTE, "constant"))
        alloc = S.AllocConst(E.Buffer(table, _BYTE, (int32(len(s.data)),)), s.data, span=s.span)
        return [alloc, S.Let(pointer, E.Pointer(pointer.pointer_type.elem, table, int32(0)), span=s.span)]


def run(module: S.IRModule) -> S.IRModule:
    return module.map_functions(lambda f: _Outline(f.name).function(f))
