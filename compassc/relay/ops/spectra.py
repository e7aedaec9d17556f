"""Sums of products by an equation, transforms to frequencies, and sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.expr_op import ExprOp
from compassc.ir.exprs import Expr as Element
from compassc.operators.declare import sample
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, const
from compassc.relay.ops.declare import INJECTIVE, OPAQUE, declare, record
from compassc.relay.ops.indexing import whole
from compassc.relay.ops.relations import differ, fail, of, one_dtype, require, shaped, stretched, tensors
from compassc.relay.ops.shapes import extents, several
from compassc.relay.types import Dim, TensorType, TupleType, Type
from compassc.te.tensor import Tensor


def _letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; those of `...` are upper-case ones from Z down."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    operands = left.split(",")
    require(
        len(operands) == len(ranks),
        lambda: f"the equation '{equation}' has {len(operands)} operands, {len(ranks)} are given",
    )
    free = "ZYXWVUTS"
    most = max((rank - len(o.replace("...", "")) for o, rank in zip(operands, ranks) if "..." in o), default=0)
    made = []
    for o, rank in zip(operands, ranks):
        dots = rank - len(o.replace("...", ""))
        if dots < 0 or dots and "..." not in o:
            raise fail(f"'{o}' of '{equation}' does not go with {rank} dimensions")
        made.append(o.replace("...", free[most - dots : most]))
    if arrow:
        return made, right.replace("...", free[:most])
    seen = "".join(made)
    return made, free[:most] + "".join(sorted(c for c in set(seen) if seen.count(c) == 1 and c not in free[:most]))


def _einsum_rule(a: Attrs, given: TupleType) -> Type:
    fields = tensors(given, "einsum")
    require(len(fields) > 0, "the tuple is empty")
    one_dtype("einsum", *fields)
    operands, result = _letters(a.equation, [len(f.shape) for f in fields])
    known: dict[str, Dim] = {}
    for letters, f in zip(operands, fields):
        for letter, extent in zip(letters, f.shape):
            old = known.get(letter, 1)
            (known[letter],) = stretched([old], [extent], lambda: f"extents {old} and {extent} of '{letter}' in '{a.equation}' differ")  # noqa: B023  # fmt: skip
    if any(letter not in known for letter in result):
        raise fail(f"the result of '{a.equation}' has letters that no operand has")
    return shaped(fields[0], [known[letter] for letter in result])


def _einsum_value(a: Attrs, t: TensorType, x: Sequence[Tensor]) -> Tensor:
    operands, result = _letters(a.equation, [v.ndim for v in x])
    known: dict[str, int] = {}
    for letters, v in zip(operands, x):
        for letter, extent in zip(letters, extents(v)):
            known[letter] = max(known.get(letter, 1), extent)
    over = {c: te.reduce_axis((0, known[c]), name=f"k_{c.lower()}{n}") for n, c in enumerate(known) if c not in result}

    def element(*i: Element) -> Element:
        at: dict[str, ExprOp] = {**dict(zip(result, i)), **over}
        total: Element | None = None
        for letters, v in zip(operands, x):
            own = v[tuple(0 if extent == 1 else at[c] for c, extent in zip(letters, extents(v)))]
            total = own if total is None else total * own
        made = te.sum(total, axis=list(over.values())) if over else total
        assert isinstance(made, Element)
        return made

    made: Tensor = te.compute(
        list(t.concrete_shape), element, name="T_einsum", tag="comm_reduce" if over else "injective"
    )
    return made


declare(
    "einsum", "data, equation", _einsum_rule, INJECTIVE, sample([(2, 3), (3, 4)], equation="ij,jk->ik"), sample([(2, 3, 4)], equation="...ij->...ji"),
    record=record("EinsumAttrs", equation=...), tuples="data", level=1, compute=_einsum_value,
    reference=lambda a, t, x: np.einsum(a.equation, *[v.astype("float64") if v.dtype.kind == "f" else v for v in x]),
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- frequencies


def _transformed(a: object, re: TensorType, im: TensorType) -> Type:
    same = len(re.shape) == len(im.shape) and not any(map(differ, re.shape, im.shape)) and re.dtype == im.dtype
    require(same and len(re.shape) > 0, lambda: f"the real part {re} and the imaginary part {im} must be of one type")
    return TupleType([re, im])


def _transform(a: Attrs, t: TupleType, re: Array, im: Array) -> Sequence[Array]:
    value = re.astype("float64") + 1j * im.astype("float64")
    found = np.fft.ifft(value) if a.inverse else np.fft.fft(value)
    return found.real, found.imag


declare("dft", "re_data, im_data, inverse=False", _transformed, OPAQUE, sample((2, 8), (2, 8)), sample((6,), (6,), inverse=True), results=2,
        record=record("DFTAttrs", inverse=False), reference=_transform)  # fmt: skip


def _framed(a: Attrs, x: TensorType, window: TensorType) -> Type:
    require(len(x.shape) in (1, 2), lambda: f"the data has one or two dimensions, not {x}")
    require(len(window.shape) == 1 and not differ(window.shape[0], a.win_length), lambda: f"the window must have {a.win_length} numbers, it is {window}")  # fmt: skip
    require(a.n_fft > 0 and a.hop_length > 0 and 0 < a.win_length <= a.n_fft, lambda: f"n_fft {a.n_fft}, hop_length {a.hop_length} and win_length {a.win_length} do not go together")  # fmt: skip
    frames = of(lambda n: (n - a.n_fft) // a.hop_length + 1, x.shape[-1])
    return shaped(x, [*x.shape[:-1], a.n_fft // 2 + 1 if a.onesided else a.n_fft, frames, 2])


def _stft(a: Attrs, t: TensorType, x: Array, window: Array) -> Array:
    left = (a.n_fft - a.win_length) // 2
    wide = np.pad(window.astype("float64"), (left, a.n_fft - a.win_length - left))
    frames = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), a.n_fft, -1)[..., :: a.hop_length, :]
    found = (np.fft.rfft if a.onesided else np.fft.fft)(frames * wide)
    found = found / math.sqrt(a.n_fft) if a.normalized else found
    return np.stack([found.real, found.imag], -1).swapaxes(-3, -2)


_STFT: dict[str, object] = {"n_fft": -1, "hop_length": -1, "win_length": -1, "normalized": False, "onesided": True}
declare(
    "stft", "data, window, " + ", ".join(_STFT), _framed, OPAQUE, sample((2, 20), (8,), n_fft=8, hop_length=3, win_length=8),
    record=record("StftAttrs", **_STFT), build=False, reference=_stft,
)  # fmt: skip


@builder("stft")
def stft(
    data: Expr, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Expr | None = None, normalized: bool = False,
    onesided: bool = True,
) -> Expr:  # fmt: skip
    """The frequencies in windows of a signal."""
    hop, length = hop_length or n_fft // 4, win_length or n_fft
    shape = window if window is not None else const(np.ones(length, "float32"))
    return call(
        "stft", data, shape, n_fft=n_fft, hop_length=hop, win_length=length, normalized=normalized, onesided=onesided
    )


# ------------------------------------------------------------------------------------------------------------------- sparse


def _dense_rule(a: Attrs, places: TensorType, values: TensorType, default: TensorType) -> Type:
    whole(places, "sparse_indices")
    require(len(places.shape) < 3, lambda: f"sparse_indices have two dimensions at most, not {places}")
    require(
        values.dtype == default.dtype,
        lambda: f"the values are {values}, the default {default}: their data types must be one",
    )
    rank = places.shape[1] if len(places.shape) == 2 else 1
    require(
        not differ(rank, len(a.output_shape)),
        lambda: f"sparse_indices {places} do not match output_shape {a.output_shape}",
    )
    return shaped(values, a.output_shape)


def _dense(a: Attrs, t: TensorType, places: Array, values: Array, default: Array) -> Array:
    return scattered(places, values, default, a.output_shape)


def scattered(places: Array, values: Array, default: Array, shape: Sequence[int]) -> Array:
    """A tensor of a shape with values at places, and another one elsewhere."""
    made = np.full(shape, np.asarray(default).reshape(()), values.dtype)
    rows = places.reshape(-1, len(shape)) if places.ndim < 2 else places
    made[tuple(rows.T)] = values
    return made


declare(
    "sparse_to_dense", "sparse_indices, sparse_values, default_value, output_shape", _dense_rule, OPAQUE,
    sample(np.array([[0, 1], [2, 0]], "int32"), (2,), (), output_shape=[3, 3]), record=record("SparseToDenseAttrs", output_shape=...), build=False,
    reference=_dense, level=3,
)  # fmt: skip


@builder("sparse_to_dense")
def sparse_to_dense(sparse_indices: Expr, output_shape: object, sparse_values: Expr, default_value: object = 0) -> Expr:
    """A tensor of a shape with values at places, and another one elsewhere."""
    default = default_value if isinstance(default_value, Expr) else const(default_value)
    shape = several(output_shape)
    if isinstance(shape, Expr):
        return call("dyn.sparse_to_dense", sparse_indices, sparse_values, default, shape, output_shape=None)
    return call("sparse_to_dense", sparse_indices, sparse_values, default, output_shape=shape)


def _renumbered(a: object, places: TensorType, old: TensorType, new: TensorType) -> Type:
    for t in (places, old, new):
        whole(t)
    require(len(places.shape) == 2 and len(old.shape) == len(new.shape) == 1, lambda: f"sparse_indices {places} do not go with shapes {old} and {new}")  # fmt: skip
    return TupleType([shaped(places, [places.shape[0], new.shape[0]]), shaped(new, new.shape)])


def _renumber(a: Attrs, t: TupleType, places: Array, old: Array, new: Array) -> Sequence[Array]:
    shape = new.copy()
    if (shape == -1).any():
        shape[shape == -1] = np.prod(old) // -np.prod(shape)
    flat = np.ravel_multi_index(tuple(places.T), tuple(old))
    return np.stack(np.unravel_index(flat, tuple(shape)), -1), shape


declare(
    "sparse_reshape", "sparse_indices, prev_shape, new_shape", _renumbered, INJECTIVE,
    sample(np.array([[0, 1], [2, 3]], "int32"), np.array([3, 4], "int32"), np.array([2, -1], "int32")), results=2, reference=_renumber, level=3,
)  # fmt: skip
