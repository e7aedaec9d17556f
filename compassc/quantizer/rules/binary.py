"""Layers of two operands: arithmetic, comparisons, choices, matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.arithmetic import approximate_factor
from compassc.quantizer.job import Job, NotQuantised, scale_of
from compassc.quantizer.numbers import WIDEST, factor, index_positions, positions, real, stored
from compassc.quantizer.rules import rule
from compassc.quantizer.rules._rectify import fused, is_signed, parameters, rectified_output
from compassc.quantizer.tables import check_floats

F32 = np.float32
METHOD_OF = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL"}


def any_signed(*tensors: Tensor) -> bool:
    return any(t.integer.signed for t in tensors)


def reach(t: Tensor) -> int:
    """The largest number that goes into a sum."""
    return max(abs(t.low + t.scalar_zero), abs(t.high + t.scalar_zero), 1)


def common_scales(first: Any, second: Any, out: np.generic, bits: int, largest: int = WIDEST) -> tuple[list[int], int]:
    """([multiplier of the result, of the first operand, of the second], shift): both operands in one scale, then the
    output's."""
    (m0, n0), (m1, n1) = approximate_factor(first, 16), approximate_factor(second, 16)
    common = max(int(n0), int(n1))
    each = [F32(int(m1)) * F32(2.0) ** (common - int(n1)), F32(int(m0)) * F32(2.0) ** (common - int(n0))]
    ratio = F32(F32(out) / (F32(second) * F32(first))) / F32(2.0) ** common
    excess = F32(max(each)) / F32(largest)
    if excess > 1:
        each, ratio = [k / excess for k in each], ratio * excess
    own = [int(np.clip(np.rint(k), 0, largest)) for k in each]
    made = factor(ratio, bits)
    multiplier, shift = int(made.multiplier), int(made.shift)
    if shift < 0:
        multiplier, shift = int(np.clip(multiplier << -shift, 1, WIDEST)), 0
    return [multiplier, *own], shift


THREE = {"scale_type": ["uint16"] * 3, "shift_type": "int8"}


@rule("Eltwise", "Add", "Sub")
def sums(job: Job) -> Layer:
    method = METHOD_OF.get(job.layer.type) or job.layer.word("method")
    if method == "MUL":
        return multiplied(job)
    activation = fused(job.layer)
    first, second = job.inputs
    negative = any_signed(first, second) or method == "SUB"
    out = rectified_output(job, activation, negative if activation == "NONE" else None)
    a, b, bits = scale_of(first), scale_of(second), job.settings.factor_bits
    if a == b and first.zero == second.zero and method == "ADD":
        made = factor(scale_of(out) / a, bits)
        scales, shift = [int(made.multiplier), 1, 1], int(made.shift)
    else:
        # sums of operands in one scale have 32 bits
        most = min(WIDEST, (2**31 - 1) // (reach(first) + reach(second)))
        scales, shift = common_scales(a, b, scale_of(out), bits, most)
    attributes, constants = parameters(job.layer, activation, out)
    return job.made(out, {"scale_value": scales, "shift_value": shift, **THREE, **attributes}, constants)


@rule("Mul")
def multiplied(job: Job) -> Layer:
    activation = fused(job.layer)
    first, second = job.inputs
    signed = any_signed(first, second) if activation == "NONE" else is_signed(job.layer, activation)
    out = rectified_output(job, activation, signed)
    made = factor(scale_of(out) / (scale_of(first) * scale_of(second)), job.settings.factor_bits)
    attributes, constants = parameters(job.layer, activation, out)
    return job.made(out, {**made.attributes(), **attributes}, constants)


@rule("MatMul")
def matmul(job: Job) -> Layer:
    first, second = job.inputs
    out = job.output(any_signed(first, second))
    extra = F32(job.layer.number("fused_multiplier", 1.0))
    if extra <= 0:
        raise NotQuantised(f"'fused_multiplier' is {extra}")
    ratio = scale_of(out) * extra / (scale_of(first) * scale_of(second))
    return job.made(out, factor(ratio, job.settings.factor_bits).attributes(), without=("fused_multiplier",))


@rule("Gemm")
def gemm(job: Job) -> Layer:
    layer = job.layer
    alpha, beta = F32(layer.number("alpha", 1.0)), F32(layer.number("beta", 1.0))
    if not alpha or len(job.inputs) > 2 and not beta:
        raise NotQuantised("'alpha' or 'beta' is 0")
    first, second, *rest = job.inputs
    signed = any_signed(*job.inputs) or bool(alpha < 0) or (bool(rest) and bool(beta < 0))
    product = scale_of(first) * scale_of(second)
    if not rest:
        if alpha < 0:
            raise NotQuantised("'alpha' is negative, which the layer applies after its limits")
        out = job.output(signed)
        return job.made(out, factor(np.abs(alpha) * scale_of(out) / product, job.bits).attributes())
    out = job.output(signed)
    both = [product / np.abs(alpha), scale_of(rest[0]) / np.abs(beta)]
    most = max(both)
    own = [int(most / b * 256) for b in both]
    if max(own) > 65535:
        raise NotQuantised("the scales of its product and its third input are too far apart")
    made = factor(scale_of(out) / most, job.bits)
    return job.made(
        out,
        {
            "scale_value": [int(made.multiplier), *own],
            "scale_type": [made.type, "uint16", "uint16"],
            "shift_value": int(made.shift) + 8,
            "shift_type": "int8",
        },
    )


@rule("Div")
def divide(job: Job) -> Layer:
    first, second = job.inputs
    if not job.settings.table_bits and second.integer.bits > 8:
        raise NotQuantised(
            "its table has reciprocals in 16 bits, which are only whole numbers up to some hundreds", "float32"
        )
    out = job.output(any_signed(first, second))
    at = index_positions(second.integer.bits, job.settings.table_bits)
    with np.errstate(divide="ignore"):
        table = np.clip(np.rint(F32(65535) / at), 0, 65535)
    table[0] = 0
    ratio = scale_of(out) * scale_of(second) / (scale_of(first) * F32(65535))
    return job.made(out, factor(ratio, job.settings.factor_bits).attributes(), {"lut": table.astype(np.uint16)})


@rule("Pow")
def power(job: Job) -> Layer:
    """By a table, where the exponent is one number."""
    exponent = _exponent(job)
    if exponent is None:
        raise NotQuantised("its exponent is not one known number")
    base = job.input
    if not base.integer.signed and exponent < 0:
        raise NotQuantised(f"the exponent {exponent} of numbers that may be 0")
    check_floats(job, "Pow")
    out = job.output(base.integer.signed and exponent % 2 != 0)
    at = positions(base.low, base.high, 1 << min(base.integer.bits, job.settings.table_bits or 8))
    with np.errstate(all="ignore"):
        table = stored(np.power(real(at, base), F32(exponent)), out)
    attributes: dict[str, Value] = {"exponent": float(exponent), "scale_value": 1, "scale_type": "uint8", "shift_value": 0,
                  "shift_type": "int8"}  # fmt: skip
    return job.made(out, attributes, {"lut_log": table})


def _exponent(job: Job) -> float | None:
    if job.layer.has("exponent"):
        return job.layer.number("exponent")
    content = (job.integers or {}).get(job.layer.inputs[1].name) if len(job.layer.inputs) > 1 else None
    if content is None or not content.size or (content != content.flat[0]).any():
        return None
    return float(content.flat[0])


@rule("SquaredDifference")
def squared_difference(job: Job) -> Layer:
    first, second = job.inputs
    out = job.output(False)
    bits = [_bits(t.low + t.scalar_zero, t.high + t.scalar_zero) for t in (first, second)]
    less = max(2 * (max(bits) - 15), 1)
    left = min(max(0, 15 - bits[0]), max(0, 15 - bits[1]))
    common = min(scale_of(first), scale_of(second)) / F32(less)
    each = [factor(common / scale_of(t) * F32(1 << left), 16) for t in (first, second)]
    made = factor(scale_of(out) / (common * common) / F32(1 << (2 * left)), 16)
    three = [made, *each]
    return job.made(
        out,
        {
            "scale_value": [int(f.multiplier) for f in three],
            "scale_type": ["uint16"] * 3,
            "shift_value": [int(f.shift) for f in three],
            "shift_type": ["int8"] * 3,
        },
    )


def _bits(low: int, high: int) -> int:
    """Bits of a signed type that holds both."""
    return max((-low - 1).bit_length() if low < 0 else 0, high.bit_length()) + 1


@rule("Where", "Select")
def where(job: Job) -> Layer:
    if len(job.inputs) != 3:
        return job.made(job.plain())
    _, first, second = job.inputs
    out = job.output(any_signed(first, second))
    each = [factor(scale_of(out) / scale_of(t), job.bits) for t in (first, second)]
    return job.made(out, _two([(int(f.multiplier), int(f.shift)) for f in each], each[0].type))


def _two(each: list[tuple[int, int]], kind: str) -> dict[str, Value]:
    return {
        "scale_value": [m for m, _ in each],
        "scale_type": [kind] * len(each),
        "shift_value": [n for _, n in each],
        "shift_type": ["int8"] * len(each),
    }


@rule("Logical")
def logical(job: Job) -> Layer:
    """Comparisons bring both operands to one scale."""
    out = job.plain(dtype="uint8")
    if len(job.inputs) < 2 or job.layer.word("method") in ("AND", "OR", "XOR", "NOT"):
        if any(t.zero for t in job.inputs):
            raise NotQuantised("it looks at stored numbers, which have a zero point")
        return job.made(out)
    scales = [float(scale_of(t)) for t in job.inputs]
    ratio = max(scales) / min(scales)
    most = min(32767.0, min(ratio * 8192, 32767.0) / ratio)
    own = [1, 1] if scales[0] == scales[1] else [int(max(1, max(scales) / s * most)) for s in scales]
    return job.made(out, {"scale_value": own, "scale_type": ["uint16"] * 2})


@rule("Mod")
def modulo(job: Job) -> Layer:
    out = job.output(job.inputs[0].integer.signed)
    each = [factor(scale_of(out) / scale_of(t), out.integer.bits) for t in job.inputs]
    return job.made(out, _two([(int(f.multiplier), int(f.shift)) for f in each], each[0].type))


@rule("Concat")
def concat(job: Job) -> Layer:
    """Its inputs stay as they are where they have one scale; else each is brought to the output's."""
    first = job.inputs[0]
    same = all(
        (t.scale, t.zero, t.dtype, t.limits) == (first.scale, first.zero, first.dtype, first.limits) for t in job.inputs
    )
    if same:
        return job.made(job.as_input())
    bits = max(t.integer.bits for t in job.inputs)
    out = job.output(any_signed(*job.inputs), bits=bits)
    each = [factor(scale_of(out) / scale_of(t), job.settings.factor_bits) for t in job.inputs]
    made = [(int(f.multiplier), int(f.shift)) for f in each]
    return job.made(out, _two(made, each[0].type))
