"""Products of whole numbers with their requantisation as layers of the NPU, equal to the bit to what the host computes, or refused.

Layers multiply sums by `multiplier / 2^shift` and round to the nearest; programs of Relay by fixed-point arithmetic of 31 bits that
rounds halves up. Both are steps: a result changes at certain sums. A multiplier of 24 bits is looked for that puts all steps
that sums can reach at the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray as Array

from compass_core.dataclass import dataclass
from compassc.importers.onnx.operators.quantised import Levels, Quantised, plain_levels
from compassc.importers.onnx.operators.quantised_forms import convolution, int32_biases, product
from compassc.importers.values import Refused, Value
from compassc.relay.backend.layer_forms import Layers, ordered, window
from compassc.relay.backend.regions import COMPILER
from compassc.relay.contrib import Table
from compassc.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard
from compassc.relay.expr import Call, Constant, Expr
from compassc.relay.operators import op_name
from compassc.relay.ops.fixed_point import Requantization, ratio, requantization, scaled
from compassc.relay.types import TensorType

Numbers = Array[Any]
BITS = 24
"""Bits of a multiplier that kernels compute with exactly."""
LARGEST = 1 << BITS
"""Sums up to here are exact, too."""
BYTES = ("int8", "uint8")
SUMS = ("qnn.conv2d", "qnn.dense")
COMPOSITE = f"{COMPILER}.qnn_sums"


def table() -> Table:
    """The pattern of products with a bias and their requantisation, all of whose parameters are known."""
    known = [is_constant() for _ in range(5)]
    sums: DFPattern = is_op(SUMS[0])(wildcard(), *known) | is_op(SUMS[1])(wildcard(), *known)
    biased = is_op("add")(sums, is_constant()) | is_op("nn.bias_add")(sums, is_constant()) | sums
    return [(COMPOSITE, is_op("qnn.requantize")(biased, *[is_constant() for _ in range(4)]), lambda e: not why_not(e))]


def why_not(e: Expr) -> str:
    """Why a call of an operator of quantised numbers is not (the last one of) a layer; "" for one that is."""
    if op_name(e) in SUMS:
        return "a layer takes it with the qnn.requantize that uses it"
    if op_name(e) != "qnn.requantize":
        return "there is no layer for it that computes the same numbers"
    try:
        _multiplier(_taken(e))
    except Refused as refused:
        return str(refused)
    return ""


@dataclass(frozen=True)
class Sums:
    """A call of a product, its requantisation, and what is known of them: weights as [O, ...], numbers per output or one."""

    call: Call
    requantise: Call
    weights: Numbers
    zero: int
    weights_zero: Numbers
    bias: Numbers
    scale: Numbers
    out_scale: Numbers
    out_zero: int

    @property
    def out_dtype(self) -> str:
        return str(self.requantise.attrs["out_dtype"])  # type: ignore[index]  # it has a record


def _array(e: Expr, what: str) -> Numbers:
    if not isinstance(e, Constant):
        raise Refused(f"{what} is not known")
    return np.asarray(e.array)


def _one(e: Expr, what: str) -> Numbers:
    array = _array(e, what)
    if array.size != 1:
        raise Refused(f"{what} is not one number")
    return array.reshape(())


def _type(e: Expr) -> TensorType:
    t = e.checked_type
    assert isinstance(t, TensorType)
    return t


def _layouts(c: Call) -> tuple[str, str, str]:
    """The layouts of data, weights and result."""
    a = c.attrs
    assert a is not None
    if op_name(c) == "qnn.dense":
        return "NC", "OI", "NC"
    return a.data_layout, a.kernel_layout, a.out_layout or a.data_layout


def _taken(e: Expr) -> Sums:
    """What a requantisation takes. Refused where that is no product of known parameters."""
    assert isinstance(e, Call)
    inner, bias = e.args[0], None
    if op_name(inner) in ("add", "nn.bias_add") and isinstance(inner, Call):
        inner, bias = inner.args
    if op_name(inner) not in SUMS or not isinstance(inner, Call):
        raise Refused("what it takes is no qnn.conv2d or qnn.dense")
    data, kernel, out = _layouts(inner)
    if sorted(data) not in (sorted("NCHW"), ["C", "N"]) or sorted(kernel) not in (sorted("OIHW"), ["I", "O"]):
        raise Refused(f"layers have no layout {data} with {kernel}")
    weights = _array(inner.args[1], "the weight").transpose([kernel.index(axis) for axis in "OIHW"[: len(kernel)]])
    outputs, channel = weights.shape[0], out.index("C")
    extents = _type(inner).concrete_shape
    if extents[channel] != outputs:
        raise Refused("its weights are not one for each channel of the result")
    made = e.attrs
    axis = int(made["axis"]) % len(extents)  # type: ignore[index]  # it has a record
    scales = _array(e.args[1], "its scale")
    if scales.size > 1 and axis != channel:
        raise Refused("its scales lie along another axis than channels")
    return Sums(
        inner, e, weights, int(_one(inner.args[2], "the zero point of the data")), _array(inner.args[3], "the zero point"),
        _along(bias, outputs, channel, len(extents)), scales.reshape(-1), _one(e.args[3], "the scale of the result"),
        int(_one(e.args[4], "the zero point of the result")),
    )  # fmt: skip


def _along(bias: Expr | None, outputs: int, channel: int, rank: int) -> Numbers:
    """The bias of each channel."""
    if bias is None:
        return np.zeros(outputs, np.int64)
    array = _array(bias, "the bias")
    if array.ndim == 1 and array.size == outputs and (channel == rank - 1 or outputs > 1):
        return array.astype(np.int64)  # of nn.bias_add, or along the last axis
    whole = array.reshape((1,) * (rank - array.ndim) + array.shape)
    if any(size != 1 for d, size in enumerate(whole.shape) if d != channel):
        raise Refused("the bias is not one number for each channel")
    return np.broadcast_to(whole.reshape(-1), (outputs,)).astype(np.int64)


def _reach(s: Sums) -> Numbers:
    """The largest magnitude of the sums of each output."""
    info = np.iinfo(_type(s.call.args[0]).dtype)
    most = max(abs(info.min - s.zero), abs(info.max - s.zero))
    moved = s.weights.astype(np.int64) - s.weights_zero.reshape(-1, *(1,) * (s.weights.ndim - 1)).astype(np.int64)
    return np.asarray(np.abs(moved).reshape(len(moved), -1).sum(1) * most + np.abs(s.bias))


def _multiplier(s: Sums) -> dict[str, object]:
    """The multiplier and shift of a layer that gives the same numbers. Refused where there is none."""
    how = s.requantise.attrs
    assert how is not None
    if requantization(str(how.rounding), str(how.compute_dtype)) != Requantization():
        raise Refused("layers know no other rounding than UPWARD in int64")
    kinds = (_type(s.call.args[0]).dtype, str(s.weights.dtype), s.out_dtype)
    if any(kind not in BYTES for kind in kinds):
        raise Refused(f"its numbers are of {', '.join(kinds)}, not of 8 bits")
    for zero, kind in (
        (s.zero, kinds[0]),
        (s.out_zero, kinds[2]),
        *((int(z), kinds[1]) for z in s.weights_zero.reshape(-1)),
    ):
        if not np.iinfo(kind).min <= zero <= np.iinfo(kind).max:
            raise Refused(f"its zero point {zero} is beyond {kind}")
    if int(_one(s.requantise.args[2], "the zero point of sums")):
        raise Refused("the zero point of sums is not 0")
    reach = _reach(s)
    if reach.max() >= LARGEST:
        raise Refused(f"its sums go up to {reach.max()}, those of layers to {LARGEST - 1}")
    factor = ratio(s.scale, s.out_scale.reshape(-1))
    if factor is None:
        return {"scale_value": 1, "scale_type": "uint32", "shift_value": 0, "shift_type": "int8"}
    info = np.iinfo(s.out_dtype)
    steps = np.arange(int(info.min) - s.out_zero + 1, int(info.max) - s.out_zero + 1)
    found = [
        _search(float(f), int(r), steps, c) for c, (f, r) in enumerate(zip(np.broadcast_to(factor, reach.shape), reach))
    ]
    multipliers, shifts = zip(*found)
    if len(set(found)) == 1:
        return {"scale_value": multipliers[0], "scale_type": "uint32", "shift_value": shifts[0], "shift_type": "int8"}
    return {"scale": np.asarray(multipliers, np.uint32), "shift": np.asarray(shifts, np.int8)}


def _search(factor: float, reach: int, steps: Numbers, channel: int) -> tuple[int, int]:
    """A multiplier and a shift by which every result changes at the same sum. `steps`: the results that are told from the one below."""
    if not 2.0**-20 <= factor < 2:
        raise Refused(f"its factor {factor:.3g} is beyond what layers multiply sums by")
    first = _first_sums(factor, steps)
    below, above = np.minimum(first - 1, reach), np.maximum(first, -reach)
    shift = BITS - 1 - int(np.floor(np.log2(factor)))
    with np.errstate(divide="ignore"):
        limits = [np.asarray((steps - 0.5) / sums) for sums in (below, above)]
    told = [below >= -reach, above <= reach]
    least = max(
        (
            x[k & (v > 0 if i else v < 0)].max(initial=0.0)
            for i, (x, k, v) in enumerate(zip(limits, told, (below, above)))
        )
    )
    most = min(
        (
            x[k & (v < 0 if i else v > 0)].min(initial=2.0)
            for i, (x, k, v) in enumerate(zip(limits, told, (below, above)))
        )
    )
    nearest = int(np.clip(round(factor * 2.0**shift), np.floor(least * 2.0**shift) + 1, np.ceil(most * 2.0**shift) - 1))
    for multiplier in (nearest, nearest - 1, nearest + 1):
        doubled, edge = 2 * multiplier, (2 * steps - 1) << shift
        right = ~told[0] | (below * doubled < edge), ~told[1] | (above * doubled > edge)
        if 0 < multiplier < LARGEST and right[0].all() and right[1].all():
            return multiplier, shift
    raise Refused(
        f"no multiplier of {BITS} bits gives the same numbers in channel {channel}, whose factor is {factor:.6g}"
    )


def _first_sums(factor: float, steps: Numbers) -> Numbers:
    """The least sum for each result that gives it, or more."""
    low = np.floor((steps - 0.5) / factor).astype(np.int64) - 2
    near = low[:, None] + np.arange(6)
    results = scaled(near.astype("int32"), np.float64(factor), Requantization())
    reached = results >= steps[:, None]
    if reached[:, 0].any() or not reached[:, -1].all():
        raise Refused("its results do not grow with its sums")
    found: Numbers = low + reached.argmax(1)
    return found


def made(b: Layers, root: Call, x: Value) -> Value:
    """The layer of a product with its requantisation. Refused where it does not give the same numbers."""
    s = _taken(root)
    multiplier = _multiplier(s)
    dtype = np.dtype(s.out_dtype)
    source = Quantised(x, plain_levels(np.ones((), np.float32), np.asarray(s.zero, x.dtype), np.dtype(x.dtype)))
    zeros = (
        np.broadcast_to(s.weights_zero.reshape(-1), (1,)) if s.weights_zero.size == 1 else s.weights_zero.reshape(-1)
    )
    weights = Quantised(Value.of(np.ascontiguousarray(s.weights)), _weights(s, zeros))
    out = plain_levels(s.out_scale.astype(np.float32), np.asarray(s.out_zero, dtype), dtype)
    int32_biases(s.bias)
    if op_name(s.call) == "qnn.dense":
        return product(b, source, weights, s.bias, out, multiplier)
    a = s.call.attrs
    assert a is not None
    data, _, result = _layouts(s.call)
    given = {**window(a, 2), "group": a.groups}
    image = Quantised(ordered(b, x, data, "NCHW"), source.levels)
    return ordered(b, convolution(b, image, weights, s.bias, out, given, multiplier), "NCHW", result)


def _weights(s: Sums, zeros: Sequence[int] | Numbers) -> Levels:
    count = s.weights.shape[0] if len(zeros) > 1 else 1
    return Levels(s.weights.dtype, np.ones(count), np.asarray(zeros, np.int64), 0)
