"""What a kernel's module says of its parameters: enough to check the arguments of a call."""

from __future__ import annotations

from typing import Any

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import PointerType
from compassc.ir.exprs import IntImm, Var
from compassc.ir.visit import walk_stmts
from compassc.targets.ctext import NoForm


def of(function: S.PrimFunc) -> dict[str, Any]:
    """`{"name", "params": [{"name", "dtype", "shape", "output"}, {"name", "dtype"} for numbers]}`.

    A shape is a list of whole numbers and of names of parameters. NoForm for other sizes.
    """
    shapes = {s.buffer.data: s.buffer.shape for s in function.body if isinstance(s, S.DeclBuffer)}
    stored = {s.buffer.data for s in walk_stmts(function.body) if isinstance(s, S.Store)}
    params: list[dict[str, Any]] = []
    for p in function.params:
        if isinstance(p.dtype, PointerType):
            shape = [_size(p, e, function) for e in shapes.get(p, ())]
            params.append({"name": p.name, "dtype": str(p.dtype.elem), "shape": shape, "output": p in stored})
        else:
            params.append({"name": p.name, "dtype": str(p.dtype)})
    return {"name": function.name, "params": params}


def is_declared(function: S.PrimFunc) -> bool:
    """Whether all tensors among the parameters have shapes of numbers and of parameters."""
    shapes = {s.buffer.data: s.buffer.shape for s in function.body if isinstance(s, S.DeclBuffer)}
    tensors = [p for p in function.params if isinstance(p.dtype, PointerType)]
    return all(isinstance(e, IntImm) or e in function.params for p in tensors for e in shapes.get(p, (None,)))


def _size(tensor: Var, e: E.Expr, function: S.PrimFunc) -> int | str:
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Var) and e in function.params:
        return e.name
    raise NoForm(
        f"the size {e} of '{tensor.name}' is neither a number nor a parameter",
        "give each open size a variable of its own, among the arguments of the build",
    )
