"""Operations of the host that call packed functions of the runtime: `tvm.contrib.cblas` and `tvm.contrib.random`."""

from __future__ import annotations

from typing import Any

from .. import te
from ..ir.exprs import Expr
from ..te.tensor import Tensor

_NAME = "tvm.contrib.cblas."


def _shape(lhs: Tensor, rhs: Tensor, transa: bool, transb: bool) -> tuple[Expr, Expr]:
    return lhs.shape[-1 if transa else -2], rhs.shape[-2 if transb else -1]


def _product(
    function: str, shape: object, lhs: Tensor, rhs: Tensor, transa: bool, transb: bool, options: dict[str, Any]
) -> Tensor:
    made: Tensor = te.extern(
        shape,
        [lhs, rhs],
        lambda ins, outs: te.call_packed(_NAME + function, ins[0], ins[1], outs[0], bool(transa), bool(transb)),
        name=options.pop("name", "C"),
        **options,
    )
    return made


def matmul(lhs: Tensor, rhs: Tensor, transa: bool = False, transb: bool = False, **options: object) -> Tensor:
    """The product of two matrices, each transposed where it is said. `options`: those of `te.extern`."""
    return _product("matmul", _shape(lhs, rhs, transa, transb), lhs, rhs, transa, transb, options)


def batch_matmul(
    lhs: Tensor, rhs: Tensor, transa: bool = False, transb: bool = False, iterative: bool = False, **options: object
) -> Tensor:
    """The products of two stacks of matrices. `iterative` changes nothing."""
    shape = (lhs.shape[0], *_shape(lhs, rhs, transa, transb))
    return _product("batch_matmul", shape, lhs, rhs, transa, transb, options)


def _random(function: str, low: object, high: object, size: object, dtype: str) -> Tensor:
    name = f"tvm.contrib.random.{function}"
    made: Tensor = te.extern(
        size, [], lambda ins, outs: te.call_packed(name, low, high, outs[0]), name=function, dtype=dtype
    )
    return made


def randint(low: int, high: int, size: object, dtype: str = "int32") -> Tensor:
    """A tensor of random whole numbers from `low` up to `high`, which is none of them."""
    return _random("randint", int(low), int(high), size, dtype)


def uniform(low: float, high: float, size: object) -> Tensor:
    """A tensor of random numbers between two."""
    return _random("uniform", float(low), float(high), size, "float32")


def normal(loc: float, scale: float, size: object) -> Tensor:
    """A tensor of random numbers around a mean."""
    return _random("normal", float(loc), float(scale), size, "float32")
