"""Functions of one operand: rectifiers rescale, the others are tables over the input's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.arithmetic import quantise
from compassc.layers.declare import evaluate
from compassc.layers.families.activation.reference import FUNCTIONS, PERIODIC, PLAIN, RECTIFIERS, method_of
from compassc.quantizer.job import Job, scale_of
from compassc.quantizer.numbers import factor, index_positions, levels, positions, real, stored, table_positions
from compassc.quantizer.rules import rule
from compassc.quantizer.rules._rectify import is_signed, parameters, rectified_output
from compassc.quantizer.tables import check_floats, fitted

UNSIGNED = ("SIGMOID", "SOFTPLUS", "EXP", "SQUARE", "COSH", "ACOSH")
"""Functions that are never negative."""
FORGOTTEN = {"ELU": ("alpha",), "CELU": ("alpha",), "SELU": ("alpha", "gamma"), "SHRINK": ("lambd", "bias")}
"""Parameters that only the table holds."""


def is_negative(job: Job, method: str) -> bool:
    """Whether the function has negative values."""
    layer = job.layer
    if method == "HARDSIGMOID":
        return layer.number("clip_min", 0.0) < 0
    if method == "THRESHOLDEDRELU":
        return layer.number("alpha", 1.0) < 0
    if method == "ROUND":
        return job.input.integer.signed
    return method not in UNSIGNED


def alone(layer: Layer, x: Array) -> Array:
    """The layer's function of float32 numbers."""
    source = Tensor("x", x.shape, "float32")
    own = replace(layer, inputs=(source,), outputs=(Tensor("y", x.shape, "float32"),))
    with np.errstate(all="ignore"):
        return evaluate(own, [x])[0]


def tabled(job: Job, out: Tensor, at: Array) -> Layer:
    """The layer with a table of its function at integers of the input."""
    layer = job.layer
    method = method_of(layer) if layer.type in FUNCTIONS else ""
    values = alone(layer, real(at, job.input))
    return job.made(out, {}, {"lut": stored(values, out)}, without=FORGOTTEN.get(method, ()))


def function_table(job: Job, out: Tensor, at: Callable[[int], Array]) -> Layer:
    """The layer with a table: of 2^n entries at the integers `at(n)` where the settings say n, else one that fits."""
    if job.settings.table_bits:
        return tabled(job, out, at(job.settings.table_bits))
    return fitted(job, partial(alone, job.layer), partial(tabled, job, out))


@rule(*FUNCTIONS)
def activation(job: Job) -> Layer:
    method = method_of(job.layer)
    if method in RECTIFIERS:
        return rectifier(job, method)
    if method == "CRELU":
        out = job.output(False)
        return job.made(out, factor(scale_of(out) / scale_of(job.input), out.integer.bits).attributes())
    if method == "NONE":
        return job.made(job.as_input())
    check_floats(job, method)
    out = job.output(is_negative(job, method))
    return function_table(job, out, partial(table_positions, job.input))


def rectifier(job: Job, method: str) -> Layer:
    out = rectified_output(job, method, is_signed(job.layer, method))
    bits = job.settings.factor_bits if method == "LEAKYRELU" else out.integer.bits
    attributes, constants = parameters(job.layer, method, out)
    made = factor(scale_of(out) / scale_of(job.input), bits)
    return job.made(out, {**made.attributes(), **attributes}, constants)


@rule(*PLAIN)
def plain(job: Job) -> Layer:
    """Tables that begin at the lowest value of the input. Near 0 the functions with a pole there are as their table."""
    check_floats(job, job.layer.type)
    source = job.input
    out = job.output(job.layer.type == "Reciprocal" and source.integer.signed)
    return function_table(job, out, lambda n: positions(source.low, source.high, 1 << min(source.integer.bits, n)))


@rule(*PERIODIC)
def periodic(job: Job) -> Layer:
    """Of more than 8 bits the table is one period, without anything between its entries."""
    check_floats(job, job.layer.type)
    source = job.input
    bits = source.integer.bits
    if bits <= 8:
        out = job.output(True)
        return tabled(job, out, positions(source.low, source.high, 1 << min(8, job.settings.table_bits or 8)))
    high = (1 << (bits - 1)) - 1
    own = job.layer.output
    out = Tensor(own.name, own.shape, f"int{bits}", float(high), 0, (-high, high))
    many = 1 << min(job.settings.table_bits, bits)
    angles = np.linspace(0, 2 * np.pi, many, dtype=np.float32)
    values = np.sin(angles) if job.layer.type == "Sine" else np.cos(angles)
    table = quantise(values, high, 0, -high, high).astype(f"int{bits}")
    made = factor(np.float32(many / (2 * np.pi)) / scale_of(source), bits)
    return job.made(out, made.attributes(), {"lut": table})


@rule("Abs")
def magnitude(job: Job) -> Layer:
    source = job.input
    out = job.output(False)
    return job.made(out, factor(scale_of(out) / scale_of(source), min(source.integer.bits, 16)).attributes())


@rule("Negative")
def negative(job: Job) -> Layer:
    """The numbers with the other sign in the same steps: what moves is the zero point."""
    source = job.input
    kind = source.integer
    high = (1 << (kind.bits - 1)) - 1
    zero = 1 - source.scalar_zero if kind.signed else -source.scalar_zero - high
    own = job.layer.output
    out = Tensor(own.name, own.shape, f"int{kind.bits}", source.scalar_scale, zero, (-high - 1, high))
    return job.made(out)


@rule("Sign")
def sign(job: Job) -> Layer:
    return job.made(job.plain(dtype=f"int{job.input.integer.bits}"))


def _exponential(x: Array) -> Array:
    """e^x of float32 numbers, rounded once."""
    return np.exp(x.astype(np.float64)).astype(np.float32)


@rule("Softmax")
def softmax(job: Job) -> Layer:
    """By a table of exponentials with 20 bits."""
    check_floats(job, "Softmax")
    source, layer = job.input, job.layer
    out = job.output(False)
    bits = source.integer.bits
    value_bits = 20
    at = index_positions(bits, job.settings.table_bits)
    most = (1 << value_bits) - 1
    inverse, zero = np.float32(1) / scale_of(source), np.float32(source.scalar_zero)
    offset = np.float32(np.log(most) - float(zero) / float(scale_of(source)))
    exponent = (at - np.float32((1 << bits) - 1) + zero) * inverse + offset
    table = np.clip(np.rint(_exponential(exponent)), 0, most).astype(np.uint32)
    made = factor(scale_of(out), out.integer.bits)
    return job.made(
        out, {"quantize_method": "LUT", **made.attributes(), "axis": layer.axis("axis", -1)}, {"lut": table}
    )


@rule("LogSoftmax")
def log_softmax(job: Job) -> Layer:
    """Results from -16 to 0."""
    check_floats(job, "LogSoftmax")
    source, layer = job.input, job.layer
    bits = source.integer.bits
    out = levels(-16.0, 0.0, job.mode, bits, True).tensor(layer.output)
    at = index_positions(bits, job.settings.table_bits)
    table = _exponential(-at * (np.float32(1) / scale_of(source)))[::-1]
    attributes: dict[str, Value] = {
        "quantize_scale": [float(scale_of(out) / scale_of(source)), float(scale_of(out))],
        "scale_value": 1, "scale_type": "uint8" if bits <= 8 else "uint16", "shift_value": 0, "shift_type": "int8",
        "axis": layer.axis("axis", -1),
    }  # fmt: skip
    return job.made(out, attributes, {"lut_exp": np.ascontiguousarray(table)})


@rule("Hardmax")
def hardmax(job: Job) -> Layer:
    return job.made(job.plain(dtype=job.input.dtype))
