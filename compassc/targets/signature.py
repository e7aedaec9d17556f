"""What a kernel's module says of its parameters: enough to check the arguments of a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import PointerType
from compassc.ir.exprs import Binary, IntImm, Var
from compassc.ir.names import NamePool, identifier
from compassc.ir.visit import all_exprs, walk_exprs, walk_stmts
from compassc.targets.ctext import NoForm
from compassc.te.lowering import IMPLIED_SIZES

if TYPE_CHECKING:
    from compass_runtime.arguments import Written as Size


def of(function: S.PrimFunc) -> dict[str, Any]:
    """`{"name", "params": [{"name", "dtype", "shape", "output"}, {"name", "dtype"} for numbers]}`, and `"implied"` for
    numbers that are dimensions of tensors, which callers do not give.

    A shape is a list of sizes. NoForm for others than those of numbers and parameters.
    """
    shapes = _shapes(function)
    stored = {s.buffer.data for s in walk_stmts(function.body) if isinstance(s, S.BufferStore)}
    stored |= {e.base for e in _passed(function) if isinstance(e.base, Var)}
    names = names_of(function)
    implied = function.params[len(function.params) - function.attr(IMPLIED_SIZES, 0) :]
    dimensions = {x for shape in shapes.values() for e in shape for x in walk_exprs(e)}
    for p in implied:
        if p not in dimensions:
            raise NoForm(
                f"'{p.name}' is no dimension of a tensor", "of what an array has, kernels are told its dimensions"
            )
    params: list[dict[str, object]] = []
    for p in function.params:
        if isinstance(p.dtype, PointerType):
            shape = [_size(p, e, names) for e in shapes.get(p, ())]
            params.append({"name": names[p], "dtype": str(p.dtype.elem), "shape": shape, "output": p in stored})
        else:
            mark = {"implied": True} if p in implied else {}
            params.append({"name": names[p], "dtype": str(p.dtype), **mark})
    return {"name": function.name, "params": params}


def _passed(function: S.PrimFunc) -> Iterator[E.Pointer]:
    """The addresses that functions are given, who may write there."""
    for call in all_exprs(function.body, E.F_FUNC):
        if isinstance(call, E.FuncCall):
            yield from (x for a in call.args for x in walk_exprs(a) if isinstance(x, E.Pointer))


def names_of(function: S.PrimFunc) -> dict[Var, str]:
    """A name for each parameter, that no other one has."""
    names = NamePool()
    return {p: names.take(identifier(p.name)) for p in function.params}


def is_declared(function: S.PrimFunc) -> bool:
    """Whether all tensors among the parameters have shapes of numbers and of parameters."""
    shapes = _shapes(function)
    tensors = [p for p in function.params if isinstance(p.dtype, PointerType)]
    return all(p in shapes and all(_is_known(e, function) for e in shapes[p]) for p in tensors)


def _shapes(function: S.PrimFunc) -> dict[Var, tuple[E.Expr, ...]]:
    declared = [s.buffer for s in function.body if isinstance(s, S.DeclBuffer)]
    return {
        b.data: b.shape for b in reversed(declared)
    }  # the first declaration is that of the parameter, others are views


def _is_known(e: E.Expr, function: S.PrimFunc) -> bool:
    return all(isinstance(x, (IntImm, Binary)) or (isinstance(x, Var) and x in function.params) for x in walk_exprs(e))


def _size(tensor: Var, e: E.Expr, names: dict[Var, str]) -> Size:
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Var) and e in names:
        return names[e]
    if isinstance(e, Binary):
        return [e.op, _size(tensor, e.a, names), _size(tensor, e.b, names)]
    raise NoForm(
        f"the size {e} of '{tensor.name}' is neither a number nor a parameter",
        "give each open size a variable of its own, among the arguments of the build",
    )
