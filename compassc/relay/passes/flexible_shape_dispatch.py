"""Have a program with known shapes compute others, too: each by a copy of it for them.

Before: a typed module whose `main` is of tensors.
After: the extent of the inputs on an axis is open. `main` calls a copy of itself for the extent that it is given, of those of
`buckets`; with `auto_pad`, the first one that is not smaller, whose inputs are padded and whose results are cut. Another
extent is computed by a copy with an open extent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.errors import CompassError
from compassc.ir.errors import ExpressionError
from compassc.relay.builders import build, call
from compassc.relay.expr import Expr, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var, const
from compassc.relay.module import MAIN, BaseFunc, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.types import Dim, Open, TensorType, TupleType, Type
from compassc.relay.visit import post_order, rewrite

NAME = "FlexibleShapeDispatch"
LEVEL = 0
REQUIRED = ("InferType",)


def run(
    module: IRModule,
    buckets: Sequence[int],
    axis: int = 0,
    auto_pad: bool = False,
    pad_value: float = 0,
    input_indices: Sequence[int] | None = None,
    affects_output: bool = True,
) -> IRModule:
    main = module[MAIN]
    assert isinstance(main, Function), "main is a function of the graph language"
    chosen = list(range(len(main.params)) if input_indices is None else input_indices)
    if not buckets or not chosen:
        raise ExpressionError("FlexibleShapeDispatch is to choose among nothing", "give buckets=[1, 4]")
    wrong = [p.name_hint for p in (main.params[i] for i in chosen) if not _has_axis(p.checked_type, axis)]
    if wrong:
        raise ExpressionError(f"{', '.join(wrong)} of main has no axis {axis}", "give input_indices=[0]")
    dispatch = _Dispatch(module, main, chosen, axis, affects_output)
    sizes = sorted(set(buckets))
    copies = {n: dispatch.copy(n) for n in sizes}
    general = dispatch.copy(None)
    return dispatch.module_of(dispatch.entry(copies, general, pad_value if auto_pad else None))


def _has_axis(t: Type, axis: int) -> bool:
    return isinstance(t, TensorType) and axis < len(t.shape)


class _Dispatch:
    """The copies of a function for extents of some parameters on an axis."""

    def __init__(self, module: IRModule, main: Function, chosen: Sequence[int], axis: int, cut: bool) -> None:
        self.module, self.main, self.chosen, self.axis, self.cut = module, main, chosen, axis, cut
        self.functions: dict[GlobalVar, BaseFunc] = {v: f for v, f in module.functions.items() if v.name_hint != MAIN}

    def _type(self, i: int, extent: Dim) -> Type:
        t = self.main.params[i].checked_type
        if i not in self.chosen or not isinstance(t, TensorType):
            return t
        return TensorType([extent if n == self.axis else d for n, d in enumerate(t.shape)], t.dtype)

    def _params(self, extent: Dim | None) -> list[Var]:
        named = enumerate(self.main.params)
        return [Var(p.name_hint, self._type(i, Open() if extent is None else extent)) for i, p in named]

    def copy(self, extent: int | None) -> GlobalVar:
        """The name of a copy for an extent; None: an open one."""
        params = self._params(extent)
        given = {id(p): new for p, new in zip(self.main.params, params)}
        bound = {id(e.var): Var(e.var.name_hint) for e in post_order(self.main.body) if isinstance(e, Let)}
        body = rewrite(self.main.body, lambda before, after: given.get(id(before)) or bound.get(id(before)) or after)
        v = GlobalVar(f"{MAIN}_{'any' if extent is None else extent}")
        self.functions[v] = Function(params, body)
        return v

    def module_of(self, entry: Function) -> IRModule:
        """The typed module with `main`."""
        try:
            return infer_type.run(changed(self.module, {GlobalVar(MAIN): entry, **self.functions}))
        except CompassError as error:
            raise ExpressionError(
                f"main cannot be computed with other extents on axis {self.axis}: {error.message}",
                "say which parameters have them: input_indices=[0], and whether results do: affects_output",
            ) from error

    def entry(self, copies: dict[int, GlobalVar], general: GlobalVar, pad_value: float | None) -> Function:
        """The function that calls them. `pad_value`: what smaller inputs are padded with; None: they are not."""
        params = self._params(None)
        size = Var("extent")
        extent = call("take", call("shape_of", params[self.chosen[0]], dtype="int32"), const(self.axis), axis=0)
        made: Expr = general(*params)
        for n, copy in reversed(copies.items()):
            fits = call("equal" if pad_value is None else "less_equal", size, const(n))
            made = If(fits, self._by(copy, n, params, size, pad_value), made)
        return Function(params, Let(size, extent, made), self._result())

    def _result(self) -> Type:
        """The type of the result, whose extent on the axis is open."""
        t = self.main.body.checked_type
        return _opened(t, self.axis) if self.cut else t

    def _by(self, copy: GlobalVar, n: int, params: Sequence[Var], size: Var, pad_value: float | None) -> Expr:
        if pad_value is None:
            return copy(*params)
        given = [self._padded(p, i, n, size, pad_value) if i in self.chosen else p for i, p in enumerate(params)]
        whole = copy(*given)
        return _cut(whole, self.main.body.checked_type, self.axis, size) if self.cut else whole

    def _padded(self, p: Var, i: int, n: int, size: Var, pad_value: float) -> Expr:
        t = self._type(i, n)
        assert isinstance(t, TensorType), "only tensors are padded"
        rank = len(t.shape)
        behind = np.zeros((rank, 2), "int32")
        behind[self.axis, 1] = 1
        widths = call("multiply", const(behind), call("subtract", const(n), size))
        padded: Expr = build("nn.pad", p, widths, const(pad_value, t.dtype))
        return (
            call("reshape", padded, newshape=t.concrete_shape) if all(isinstance(d, int) for d in t.shape) else padded
        )


def _opened(t: Type, axis: int) -> Type:
    if isinstance(t, TupleType):
        return TupleType([_opened(f, axis) for f in t.fields])
    if isinstance(t, TensorType) and axis < len(t.shape):
        return TensorType([Open() if n == axis else d for n, d in enumerate(t.shape)], t.dtype)
    return t


def _cut(e: Expr, t: Type, axis: int, size: Var) -> Expr:
    """A value whose tensors have so many elements on an axis, from the first."""
    if isinstance(t, TupleType):
        v = Var("whole")
        return Let(v, e, Tuple([_cut(TupleGetItem(v, i), f, axis, size) for i, f in enumerate(t.fields)]))
    kept: Expr = call("take", e, build("arange", size, dtype="int32"), axis=axis)
    return kept
