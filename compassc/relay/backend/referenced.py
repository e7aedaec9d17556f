"""Operators without a tensor expression on hosts: kernels call their references, by NumPy, as packed functions."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_runtime.ndarray import NDArray
from compass_runtime.packed import register_func
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.relay.attributes import Attrs
from compassc.relay.expr import Call, Function, Var
from compassc.relay.operators import Op
from compassc.relay.parser import parse_expr
from compassc.relay.types import TensorType, TupleType, Type
from compassc.te.tensor import Tensor


def tensors_of(t: Type) -> list[TensorType]:
    """The tensors that a value of a type consists of, in order."""
    if isinstance(t, TensorType):
        return [t]
    if not isinstance(t, TupleType):
        raise ExpressionError(f"a value of type {t} has no memory in a graph", "use the virtual machine")
    return [one for f in t.fields for one in tensors_of(f)]


ArrayFunction = Callable[[Sequence[Array]], Sequence[Array]]
"""What computes results of arrays."""
_PREFIX = "relay.reference"
"""Of the names of references, by which `compass_runtime` finds out that `recall` makes them (pyproject.toml)."""
_MOST_TEXT = 1 << 20
"""Characters of a call in a name."""


def by_function(
    name: str, function: ArrayFunction, tensors: Sequence[Tensor], results: Sequence[tuple[Sequence[object], str]]
) -> list[Tensor]:
    """Tensors (shape, type of elements) that kernels of hosts have a function of Python compute. `name`: what it is registered
    by, the same for the same function in every process: the one that runs the kernel has to know it."""
    register_func(name, _on_arrays(function, [t.ndim for t in tensors]), override=True)
    return list(
        te.extern(
            [list(shape) for shape, _ in results],
            list(tensors),
            lambda ins, outs: te.call_packed(name, *ins, *outs),
            name=f"T_{name.split('.')[-2]}",
            dtype=[kind for _, kind in results],
        )
    )


def _on_arrays(function: ArrayFunction, ranks: Sequence[int]) -> Callable[..., None]:
    """The packed function of a function: inputs first, then results, which it fills."""

    def called(*arrays: NDArray) -> None:
        given = [a.numpy() for a in arrays[: len(ranks)]]
        # a number comes as a row of one
        made = function([a if rank else a.reshape(()) for rank, a in zip(ranks, given)])
        for out, value in zip(arrays[len(ranks) :], made, strict=True):
            out.copyfrom(np.ascontiguousarray(value).reshape(out.shape))

    return called


def referenced(
    op: Op, attrs: Attrs | None, arguments: Sequence[Type], result: Type, tensors: Sequence[Tensor]
) -> list[Tensor]:
    """The results of an operator by its reference. The function's name says the whole call, so that a process that loads the
    kernel makes the function anew (`recall`)."""
    params = [Var(f"a{i}", t) for i, t in enumerate(arguments)]
    text = Function(params, Call(op, params, attrs), result).astext()
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode()
    name = f"{_PREFIX}.{op.name.rpartition('.')[2]}.{packed}"
    function = _reference(op, attrs, arguments, result)
    return by_function(name, function, tensors, [(t.concrete_shape, t.dtype) for t in tensors_of(result)])


def recall(name: str) -> None:
    """Registers the function that `referenced` named so; nothing where the name is none of these."""
    try:
        unpacked = zlib.decompressobj().decompress(base64.urlsafe_b64decode(name.rpartition(".")[2]), _MOST_TEXT)
        f = parse_expr(unpacked.decode(), "the name of a function")
    except (binascii.Error, zlib.error, UnicodeDecodeError, CompassError):
        return
    if not (
        isinstance(f, Function) and isinstance(f.body, Call) and isinstance(f.body.op, Op) and f.ret_type is not None
    ):
        return
    arguments = [p.type_annotation for p in f.params if p.type_annotation is not None]
    if f.body.op.reference is None or len(arguments) != len(f.params):
        return
    ranks = [len(t.shape) for a in arguments for t in tensors_of(a)]
    register_func(name, _on_arrays(_reference(f.body.op, f.body.attrs, arguments, f.ret_type), ranks), override=True)


def _reference(op: Op, attrs: Attrs | None, arguments: Sequence[Type], result: Type) -> ArrayFunction:
    """An operator's reference as a function of the tensors that its arguments consist of."""

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        given = iter(arrays)
        values = [tuple(next(given) for _ in t.fields) if isinstance(t, TupleType) else next(given) for t in arguments]
        assert op.reference is not None, "operators that are called have one"
        made = op.reference(attrs, values, result)
        return made if isinstance(made, tuple) else (made,)

    return function
