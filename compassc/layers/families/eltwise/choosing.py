"""Kernels of comparisons, choices, and functions of the bits of whole numbers, element by element."""

from __future__ import annotations

import operator
from functools import reduce

import numpy as np

from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.ir.dtypes import INT32
from compassc.layers.element_copies import strides_of
from compassc.layers.emit import look_up, single
from compassc.layers.families.eltwise.reference import COMPARISONS, LOGICAL, fake_levels
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import elementwise, form_kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.remainder import exact_remainder
from compassc.layers.requantise import requantise, requantise_rounded
from compassc.layers.vectors import everywhere, pointee, wide, wide_kind

OPERATORS = {
    "EQUAL": operator.eq,
    "NOT_EQUAL": operator.ne,
    "GREATER": operator.gt,
    "GREATER_EQUAL": operator.ge,
    "LESS": operator.lt,
    "LESS_EQUAL": operator.le,
}
CONNECTIVES = {"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}
LARGEST = 3.4028234663852886e38


def _zero_of(value: Value) -> float:
    return 0.0 if value.kind == "float32" else 0


def truth(k: LayerKernel, condition: Value) -> Value:
    """1 where a condition holds, else 0."""
    return k.let(S.vsel(everywhere(1), everywhere(0), condition), low=0, high=1)


def _whole_output(layer: Layer) -> None:
    if not layer.output.is_integer:
        raise LayerError(f"its output is {layer.output.dtype}, expected an integer type")


def _alone(layer: Layer) -> bool:
    return len(layer.inputs) == 1


@form_kernel("Where", _alone)
@form_kernel("Select", _alone)
def places_that_hold(layer: Layer) -> Kernel:
    """The indices of elements other than 0: every TEC reads all elements and stores its own rows."""
    x, y, k = layer.input, layer.output, LayerKernel()
    rank = len(x.shape)
    if y.shape != (x.count, rank) or not rank or not x.count:
        raise LayerError(f"its output is {list(y.shape)}, expected {[x.count, rank]} for the input {list(x.shape)}")
    wide_kind(x)
    _whole_output(layer)
    assert wide_kind(y) == "int32"
    with k.active():
        zero = k.number(-x.scalar_zero) if layer.is_quantised and x.scalar_zero else 0
        source, target, many = k.tensor(x), k.tensor(y), k.number(x.count)
        last = k.number(2**31 - 1 if y.dtype == "int32" else y.integer.high)
        axes = [(k.number(s), k.number(n)) for s, n in zip(strides_of(x.shape), x.shape, strict=True)]
        found = k.define(k.variable("found", INT32), S.i32(0))
        with k.for_range(0, many, name="p") as p, k.when(source[p] != zero):
            with k.when(found % S.get_local_size() == S.get_local_id()):
                for i, (stride, size) in enumerate(axes):
                    target[found * rank + i] = S.cast(p / stride % size, pointee(y.dtype))
            k.assign(found, found + 1)
        with k.for_range(found, many, name="r") as r, k.when(r % S.get_local_size() == S.get_local_id()):
            value = k.define(k.variable("value", INT32), S.i32(0))
            with k.when(r == found):
                k.assign(value, last)
            with k.for_range(0, rank, name="i") as axis:
                target[r * rank + axis] = S.cast(value, pointee(y.dtype))
        return k.kernel()


@elementwise("Where", "Select")
def where(k: LayerKernel, layer: Layer, condition: Value, *x: Value) -> Value:
    if len(x) != 2:
        raise LayerError(f"it has {len(x) + 1} inputs, expected a condition and two operands, or the condition alone")
    test = condition
    if layer.is_quantised:
        test = k.shifted(condition, layer.input.scalar_zero)
        scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
        x = tuple(
            requantise_rounded(k, k.shifted(v, t.scalar_zero), m.reshape(()), s.reshape(()), layer.output)
            for v, t, m, s in zip(x, layer.inputs[1:], scale, shift, strict=True)
        )
    a, b = x
    if a.kind != b.kind or (a.kind == "float32") == layer.output.is_integer:
        raise LayerError("its operands and output are neither all floats nor all integers")
    chosen = S.vsel(a, b, test != _zero_of(test))
    return _stored(k, layer, k.let(chosen, low=min(a.low, b.low), high=max(a.high, b.high)))


def _stored(k: LayerKernel, layer: Layer, value: Value) -> Value:
    """Limited to the output's type."""
    if value.kind == "float32":
        return value
    kind = layer.output.integer
    return requantise(k, value, 1, 0, 0, kind.low, min(kind.high, 2**31 - 1))


@elementwise("Logical")
def logical(k: LayerKernel, layer: Layer, *x: Value) -> Value:
    _whole_output(layer)
    method = layer.word("method", choices=LOGICAL)
    if method == "NOT":
        return truth(k, x[0] == _zero_of(x[0]))
    if method in CONNECTIVES:
        a, b = (truth(k, v != _zero_of(v)) for v in x)
        return k.let(CONNECTIVES[method](a, b), low=0, high=1)
    if x[0].kind != x[1].kind:
        raise LayerError("it compares floats with integers, for which there is no kernel")
    if layer.is_quantised:
        factors = np.resize(layer.multipliers(of=2), 2)
        x = tuple(
            _times(k, k.shifted(v, t.scalar_zero), int(f)) for v, t, f in zip(x, layer.inputs, factors, strict=True)
        )
    assert method in COMPARISONS
    return truth(k, OPERATORS[method](x[0], x[1]))


def _times(k: LayerKernel, value: Value, factor: int) -> Value:
    if factor == 1:
        return value
    if value.magnitude * abs(factor) >= 2**31:
        raise LayerError(f"an operand times its scale {factor} does not fit 32 bits")
    return k.let(value * k.number(factor), low=value.low * factor, high=value.high * factor)


@elementwise("IsNaN")
def is_nan(k: LayerKernel, layer: Layer, x: Value) -> Value:
    _whole_output(layer)
    if x.kind != "float32":
        return k.let(x * 0, low=0, high=0)
    return truth(k, x != x)  # noqa: PLR0124 (NaN alone is)


@elementwise("IsInf")
def is_inf(k: LayerKernel, layer: Layer, x: Value) -> Value:
    _whole_output(layer)
    tests = []
    if layer.flag("detect_positive", True):
        tests.append(x > LARGEST)
    if layer.flag("detect_negative", True):
        tests.append(x < -LARGEST)
    if x.kind != "float32" or not tests:
        return k.let(everywhere(0), low=0, high=0)
    found = [truth(k, t) for t in tests]
    return k.let(reduce(operator.or_, found), low=0, high=1)


def _same_integers(layer: Layer) -> None:
    kinds = {t.dtype for t in (*layer.inputs[:2], layer.output)}
    if len(kinds) > 1 or not layer.output.is_integer:
        raise LayerError(f"its tensors are {', '.join(sorted(kinds))}, expected one integer type")


def _wrapped(k: LayerKernel, layer: Layer, value: Expression) -> Value:
    """The low bits, as the output's type reads them."""
    dtype, kind = layer.output.dtype, layer.output.integer
    if kind.bits == 32:
        return k.let(value, low=kind.low, high=kind.high)
    return k.let(wide(S.cast(value, dtype), dtype), low=kind.low, high=kind.high)


@elementwise("Bitwise")
def bitwise(k: LayerKernel, layer: Layer, *x: Value) -> Value:
    _same_integers(layer)
    method = layer.word("method", choices=("NOT", *CONNECTIVES))
    if method == "NOT":
        return _wrapped(k, layer, -1 - x[0])
    return _wrapped(k, layer, CONNECTIVES[method](x[0], x[1]))


@elementwise("BitShift")
def bit_shift(k: LayerKernel, layer: Layer, x: Value, n: Value) -> Value:
    kind = layer.output.integer
    if layer.input.dtype != layer.output.dtype or n.kind != "int32" or x.kind != "int32":
        raise LayerError(f"it shifts {layer.input.dtype} to {layer.output.dtype}, expected one integer type")
    if layer.word("direction", choices=("LEFT", "RIGHT")) == "RIGHT":
        return k.let(x >> S.min(n, 31), low=kind.low, high=kind.high)
    moved = x << S.min(n, kind.bits - 1)
    kept = k.let(S.vsel(everywhere(0), moved, n >= kind.bits))
    return _wrapped(k, layer, kept)


@elementwise("Mod")
def mod(k: LayerKernel, layer: Layer, a: Value, b: Value) -> Value:
    truncated = layer.flag("fmod", False)
    if not layer.is_quantised:
        if a.kind != "float32" or b.kind != "float32":
            raise LayerError("it divides floats by integers, or the other way round, for which there is no kernel")
        if truncated:
            rest = k.let(a)
            k.paste(exact_remainder, rest, b)
            return rest
        return k.let(a - S.floor(a / b) * b)
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    left, right = (
        requantise(k, k.shifted(v, t.scalar_zero), m.reshape(()), s.reshape(()), 0, t.low, t.high)
        for v, t, m, s in zip((a, b), layer.inputs, scale, shift, strict=True)
    )
    divisor = k.let(S.vsel(everywhere(1), right, right == 0), low=right.low, high=max(right.high, 1))
    size = divisor.magnitude
    rest = k.let(left % divisor, low=-size, high=size)
    if not truncated:
        other = (rest ^ divisor) < 0
        away = truth(k, rest != 0)
        moved = S.vsel(rest + divisor * away, rest, other)
        rest = k.let(moved, low=-size, high=size)
    out = layer.output
    return requantise(k, rest, 1, 0, out.scalar_zero, out.low, out.high)


@elementwise("DivMod")
def div_mod(k: LayerKernel, layer: Layer, a: Value, b: Value) -> tuple[Value, Value]:
    """By zero both are 0."""
    if any(v.kind != "int32" for v in (a, b)) or any(not t.is_integer for t in layer.outputs):
        raise LayerError(f"its tensors are {[t.dtype for t in (*layer.inputs, *layer.outputs)]}, expected integers")
    floored = layer.word("mode", "FLOOR", ("FLOOR", "TRUNC")) == "FLOOR"
    divisor = k.let(S.vsel(everywhere(1), b, b == 0), low=b.low, high=max(b.high, 1))
    left, least = a, -(2**31)
    if a.low == least and b.low < 0:
        # the one quotient that does not fit is saturated, as is what stores it
        left = k.let(S.vsel(least + 1, a, (a == least) & (b == -1)), low=a.low, high=a.high)
    size, whole = max(abs(b.low), abs(b.high)), max(abs(a.low), abs(a.high)) + 1
    quotient = k.let(left / divisor, low=-whole, high=whole)
    rest = k.let(left - quotient * divisor, low=-size, high=size)
    if floored:
        away = truth(k, (rest != 0) & ((rest ^ divisor) < 0))
        quotient = k.let(quotient - away, low=-whole, high=whole)
        rest = k.let(rest + away * divisor, low=-size, high=size)
    found = (S.vsel(everywhere(0), v, b == 0) for v in (quotient, rest))
    return k.let(next(found), low=-whole, high=whole), k.let(next(found), low=-size, high=size)


@elementwise("Pow")
def power(k: LayerKernel, layer: Layer, base: Value, *exponent: Value) -> Value:
    if not layer.is_quantised:
        raised = k.number(layer.number("exponent")) if layer.has("exponent") else exponent[0]
        return k.let(S.pow(base, raised))
    kind = layer.input.integer
    logarithm = look_up(k, k.shifted(base, -kind.low), layer.constant("lut_log"), kind.bits)
    if layer.has("exponent"):
        return _stored(k, layer, logarithm)
    scale, shift = (single(v, "scale") for v in layer.scale_shift(of=1))
    times = k.shifted(exponent[0], layer.inputs[1].scalar_zero)
    if logarithm.magnitude * times.magnitude >= 2**31:
        raise LayerError("the logarithm times its exponent does not fit 32 bits")
    size = logarithm.magnitude * times.magnitude
    product = k.let(logarithm * times, low=-size, high=size)
    inner = requantise(k, product, scale, shift, 0, -32768, 32767)
    value = look_up(k, k.shifted(inner, 32768), layer.constant("lut_exp"), 16)
    number = k.shifted(base, layer.input.scalar_zero)
    negative = truth(k, number < 0)
    odd = k.let(negative & times, low=0, high=1)
    signed = k.let(S.vsel(0 - value, value, odd != 0), low=-value.magnitude, high=value.magnitude)
    empty = k.let(S.vsel(everywhere(0), signed, number == 0), low=signed.low, high=signed.high)
    result = S.vsel(value, empty, times == 0)
    return _stored(k, layer, k.let(result, low=signed.low, high=signed.high))


@elementwise("FakeQuantWithMinMaxVars")
def fake_quantise(k: LayerKernel, layer: Layer, x: Value) -> Value:
    if layer.is_quantised:
        return x
    f = fake_levels(layer)
    scaled = S.rint(x * k.number(f.scale) - k.number(f.zero))
    level = k.let(S.min(S.max(scaled, k.number(f.first)), k.number(f.last)))
    back = (level + k.number(f.zero)) * k.number(f.step)
    return k.let(S.min(S.max(back, k.number(f.low)), k.number(f.high)))
