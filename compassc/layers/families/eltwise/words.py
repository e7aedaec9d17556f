"""Element-wise kernels of uint32, whose lanes are unsigned: without scales, zero points and activations, which no layer of
uint32 has."""

from __future__ import annotations

import operator

from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.eltwise.choosing import CONNECTIVES, OPERATORS, truth
from compassc.layers.families.eltwise.kernels import METHODS
from compassc.layers.families.eltwise.reference import ALONE, COMPARISONS, LOGICAL
from compassc.layers.kernels import of_words
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import everywhere, wide

HIGHEST = 2**32 - 1


def _all(number: int) -> Expression:
    return everywhere(number, "uint32")


def _word(k: LayerKernel, expression: Expression) -> Value:
    return k.let(expression, low=0, high=HIGHEST)


def _plain(layer: Layer) -> None:
    """LayerError for layers that rescale."""
    scale, shift = layer.scale_shift()
    if (
        (scale != 1).any()
        or shift.any()
        or any(t.is_integer and t.scalar_zero for t in (*layer.inputs, *layer.outputs))
    ):
        raise LayerError("kernels do not rescale uint32")


def _words(layer: Layer, *values: Value) -> None:
    """LayerError for operands, or an output, of other types."""
    if any(v.kind != "uint32" for v in values) or any(t.dtype != "uint32" for t in layer.outputs):
        listed = ", ".join(t.dtype for t in (*layer.inputs, *layer.outputs))
        raise LayerError(f"its tensors are {listed}, expected one integer type")


@of_words("Eltwise", *ALONE)
def eltwise(k: LayerKernel, layer: Layer, a: Value, b: Value) -> Value:
    """Results beyond the type are limited to it."""
    _words(layer, a, b)
    _plain(layer)
    if layer.word("with_activation", "NONE") != "NONE":
        raise LayerError("activations of uint32 have no kernel")
    method = ALONE.get(layer.type) or layer.word("method", choices=tuple(METHODS))
    if method in ("ADD", "SUB"):
        return _word(k, (S.vadd if method == "ADD" else S.vsub)(a, b, saturate=True))
    made = _word(k, METHODS[method](a, b))
    if method != "MUL":
        return made
    # the product is the low word of the exact one where dividing gives the operand back
    whole = (a == S.u32(0)) | (S.vdiv(made, S.max(a, S.u32(1))) == b)
    return _word(k, S.vsel(made, _all(HIGHEST), whole))


@of_words("Bitwise")
def bitwise(k: LayerKernel, layer: Layer, *x: Value) -> Value:
    _words(layer, *x)
    method = layer.word("method", choices=("NOT", *CONNECTIVES))
    return _word(k, x[0] ^ _all(HIGHEST) if method == "NOT" else CONNECTIVES[method](*x))


@of_words("BitShift")
def bit_shift(k: LayerKernel, layer: Layer, x: Value, n: Value) -> Value:
    _words(layer, x, n)
    shift = operator.lshift if layer.word("direction", choices=("LEFT", "RIGHT")) == "LEFT" else operator.rshift
    return _word(k, S.vsel(_all(0), shift(x, S.min(n, S.u32(31))), n > S.u32(31)))


@of_words("Logical")
def logical(k: LayerKernel, layer: Layer, *x: Value) -> Value:
    method = layer.word("method", choices=LOGICAL)
    if any(v.kind != "uint32" for v in x) or not layer.output.is_integer or layer.output.dtype == "uint32":
        raise LayerError("it compares uint32 with another type, for which there is no kernel")
    if method == "NOT":
        return truth(k, x[0] == S.u32(0))
    if method in CONNECTIVES:
        a, b = (truth(k, v != S.u32(0)) for v in x)
        return k.let(CONNECTIVES[method](a, b), low=0, high=1)
    assert method in COMPARISONS
    _plain(layer)
    return truth(k, OPERATORS[method](*x))


@of_words("Where", "Select")
def where(k: LayerKernel, layer: Layer, condition: Value, *x: Value) -> Value:
    _words(layer, *x)
    _plain(layer)
    zero = S.u32(0) if condition.kind == "uint32" else 0.0 if condition.kind == "float32" else 0
    return _word(k, S.vsel(x[0], x[1], condition != zero))


@of_words("DivMod")
def div_mod(k: LayerKernel, layer: Layer, a: Value, b: Value) -> tuple[Value, Value]:
    """By zero both are 0."""
    _words(layer, a, b)
    divisor = _word(k, S.max(b, S.u32(1)))
    quotient = _word(k, S.vdiv(a, divisor))
    found = [quotient, _word(k, a - quotient * divisor)]
    first, second = (_word(k, S.vsel(_all(0), v, b == S.u32(0))) for v in found)
    return first, second


@of_words("Cast")
def cast(k: LayerKernel, layer: Layer, x: Value) -> Value:
    """To and from uint32: limited, or wrapped around."""
    out, wraps = layer.output, layer.word("clip_mode", "SATURATION", ("SATURATION", "TRUNCATION")) == "TRUNCATION"
    _plain(layer)
    if not out.is_integer:
        # both halves are exact, so that their sum is rounded once
        upper, lower = (S.cast(S.reinterpret(v, "int32x32"), "float32") for v in _halves(x))
        return k.let(upper * 65536.0 + lower)
    if out.dtype == "bool":
        return truth(k, x != S.u32(0))
    if out.dtype == "uint32":
        return _to_word(k, x, wraps)
    low, high = out.integer.low, min(out.integer.high, 2**31 - 1)
    if wraps and out.integer.bits == 32:
        return k.let(S.reinterpret(x, "int32x32"), low=low, high=high)
    if wraps:
        kept = S.reinterpret(x, "int32x32")
        return k.let(wide(S.cast(kept, out.dtype), out.dtype), low=low, high=high)
    return k.let(S.cast(S.min(x, S.u32(high)), "int32"), low=0, high=high)


def _halves(x: Value) -> tuple[Expression, Expression]:
    return x >> S.u32(16), x & S.u32(65535)


def _to_word(k: LayerKernel, x: Value, wraps: bool) -> Value:
    if x.kind == "uint32":
        return x
    if x.kind == "int32":
        given = x if wraps else S.max(x, 0)
        return _word(k, S.reinterpret(given, "uint32x32"))
    if wraps:
        raise LayerError("floats that wrap around have no kernel for uint32")
    far, beyond = x >= 2147483648.0, x >= 4294967296.0
    positive = S.vsel(x, everywhere(0.0, "float32"), x > 0.0)
    near = k.let(S.vsel(x - 2147483648.0, positive, far))
    whole = k.let(S.reinterpret(S.cast(near, "int32"), "uint32x32"))
    return _word(k, S.vsel(_all(HIGHEST), S.vsel(whole ^ S.u32(1 << 31), whole, far), beyond))
