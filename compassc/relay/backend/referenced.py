"""Operators without a tensor expression on hosts: kernels call their references, by NumPy, as packed functions."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compass_runtime.ndarray import NDArray
from compass_runtime.packed import register_func
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.relay.attributes import Attrs
from compassc.relay.operators import Op
from compassc.relay.types import TensorType, TupleType, Type
from compassc.te.tensor import Tensor


def tensors_of(t: Type) -> list[TensorType]:
    """The tensors that a value of a type consists of, in order."""
    if isinstance(t, TensorType):
        return [t]
    if not isinstance(t, TupleType):
        raise ExpressionError(f"a value of type {t} has no memory in a graph", "use the virtual machine")
    return [one for f in t.fields for one in tensors_of(f)]


Function = Callable[[Sequence[Array]], Sequence[Array]]
"""What computes results of arrays."""


def by_function(
    name: str, function: Function, tensors: Sequence[Tensor], results: Sequence[tuple[Sequence[object], str]]
) -> list[Tensor]:
    """Tensors (shape, type of elements) that kernels of hosts have a function of Python compute. `name`: what it is registered
    by, the same for the same function in every process: the one that runs the kernel has to know it."""

    def called(*arrays: NDArray) -> None:
        given = [a.numpy() for a in arrays[: len(tensors)]]
        made = function(
            [a if t.ndim else a.reshape(()) for t, a in zip(tensors, given)]
        )  # a number comes as a row of one
        for out, value in zip(arrays[len(tensors) :], made, strict=True):
            out.copyfrom(np.ascontiguousarray(value).reshape(out.shape))

    register_func(name, called, override=True)
    return list(
        te.extern(
            [list(shape) for shape, _ in results],
            list(tensors),
            lambda ins, outs: te.call_packed(name, *ins, *outs),
            name=f"T_{name.split('.')[-2]}",
            dtype=[kind for _, kind in results],
        )
    )


def referenced(
    op: Op, attrs: Attrs | None, arguments: Sequence[Type], result: Type, tensors: Sequence[Tensor]
) -> list[Tensor]:
    """The results of an operator by its reference."""

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        given = iter(arrays)
        values = [tuple(next(given) for _ in t.fields) if isinstance(t, TupleType) else next(given) for t in arguments]
        assert op.reference is not None, "operators that are called have one"
        made = op.reference(attrs, values, result)
        return made if isinstance(made, tuple) else (made,)

    told = f"{op.name} {attrs} {arguments} {result}"
    name = f"relay.reference.{op.name.rpartition('.')[2]}.{zlib.crc32(told.encode()):x}"
    return by_function(name, function, tensors, [(t.concrete_shape, t.dtype) for t in tensors_of(result)])
