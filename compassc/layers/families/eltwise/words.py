"""Element-wise kernels of uint32, whose lanes are unsigned: without scales, zero points and activations, which no layer of
uint32 has."""

from __future__ import annotations

from compassc.graph import Layer, LayerError
from compassc.layers.families.eltwise.choosing import CONNECTIVES, ONE, OPERATORS
from compassc.layers.families.eltwise.choosing import NOTHING as NO
from compassc.layers.families.eltwise.kernels import SYMBOLS
from compassc.layers.families.eltwise.reference import ALONE, COMPARISONS, LOGICAL
from compassc.layers.kernels import of_words
from compassc.layers.source import KernelSource, Value

HIGHEST = 2**32 - 1
NOTHING, ALL = ("S.vbcast(S.u32(0), lanes=32)", f"S.vbcast(S.u32({HIGHEST}), lanes=32)")


def _word(k: KernelSource, expression: str) -> Value:
    return k.let(expression, "uint32", 0, HIGHEST)


def _truth(k: KernelSource, condition: str) -> Value:
    return k.let(f"S.vsel({ONE}, {NO}, {condition})", "int32", 0, 1)


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
def eltwise(k: KernelSource, layer: Layer, a: Value, b: Value) -> Value:
    """Results beyond the type are limited to it."""
    _words(layer, a, b)
    _plain(layer)
    if layer.word("with_activation", "NONE") != "NONE":
        raise LayerError("activations of uint32 have no kernel")
    method = ALONE.get(layer.type) or layer.word("method", choices=tuple(SYMBOLS))
    if method in ("ADD", "SUB"):
        return _word(k, f"S.v{method.lower()}({a.name}, {b.name}, saturate=True)")
    made = _word(k, SYMBOLS[method].format(a=a.name, b=b.name))
    if method != "MUL":
        return made
    # the product is the low word of the exact one where dividing gives the operand back
    whole = f"({a.name} == S.u32(0)) | (S.vdiv({made.name}, S.max({a.name}, S.u32(1))) == {b.name})"
    return _word(k, f"S.vsel({made.name}, {ALL}, {whole})")


@of_words("Bitwise")
def bitwise(k: KernelSource, layer: Layer, *x: Value) -> Value:
    _words(layer, *x)
    method = layer.word("method", choices=("NOT", *CONNECTIVES))
    return _word(k, f"{x[0].name} ^ {ALL}" if method == "NOT" else f"{x[0].name} {CONNECTIVES[method]} {x[1].name}")


@of_words("BitShift")
def bit_shift(k: KernelSource, layer: Layer, x: Value, n: Value) -> Value:
    _words(layer, x, n)
    symbol = "<<" if layer.word("direction", choices=("LEFT", "RIGHT")) == "LEFT" else ">>"
    return _word(k, f"S.vsel({NOTHING}, {x.name} {symbol} S.min({n.name}, S.u32(31)), {n.name} > S.u32(31))")


@of_words("Logical")
def logical(k: KernelSource, layer: Layer, *x: Value) -> Value:
    method = layer.word("method", choices=LOGICAL)
    if any(v.kind != "uint32" for v in x) or not layer.output.is_integer or layer.output.dtype == "uint32":
        raise LayerError("it compares uint32 with another type, for which there is no kernel")
    if method == "NOT":
        return _truth(k, f"{x[0].name} == S.u32(0)")
    if method in CONNECTIVES:
        a, b = (_truth(k, f"{v.name} != S.u32(0)") for v in x)
        return k.let(f"{a.name} {CONNECTIVES[method]} {b.name}", "int32", 0, 1)
    assert method in COMPARISONS
    _plain(layer)
    return _truth(k, f"{x[0].name} {OPERATORS[method]} {x[1].name}")


@of_words("Where", "Select")
def where(k: KernelSource, layer: Layer, condition: Value, *x: Value) -> Value:
    _words(layer, *x)
    _plain(layer)
    zero = {"uint32": "S.u32(0)", "float32": "0.0"}.get(condition.kind, "0")
    return _word(k, f"S.vsel({x[0].name}, {x[1].name}, {condition.name} != {zero})")


@of_words("DivMod")
def div_mod(k: KernelSource, layer: Layer, a: Value, b: Value) -> tuple[Value, Value]:
    """By zero both are 0."""
    _words(layer, a, b)
    divisor = _word(k, f"S.max({b.name}, S.u32(1))")
    quotient = _word(k, f"S.vdiv({a.name}, {divisor.name})")
    found = [quotient, _word(k, f"{a.name} - {quotient.name} * {divisor.name}")]
    first, second = (_word(k, f"S.vsel({NOTHING}, {v.name}, {b.name} == S.u32(0))") for v in found)
    return first, second


@of_words("Cast")
def cast(k: KernelSource, layer: Layer, x: Value) -> Value:
    """To and from uint32: limited, or wrapped around."""
    out, wraps = layer.output, layer.word("clip_mode", "SATURATION", ("SATURATION", "TRUNCATION")) == "TRUNCATION"
    _plain(layer)
    if not out.is_integer:
        # both halves are exact, so that their sum is rounded once
        upper, lower = (f'S.cast(S.reinterpret({v}, "int32x32"), "float32")' for v in _halves(x))
        return k.let(f"{upper} * 65536.0 + {lower}", "float32")
    if out.dtype == "bool":
        return _truth(k, f"{x.name} != S.u32(0)")
    if out.dtype == "uint32":
        return _to_word(k, x, wraps)
    low, high = out.integer.low, min(out.integer.high, 2**31 - 1)
    if wraps and out.integer.bits == 32:
        return k.let(f'S.reinterpret({x.name}, "int32x32")', "int32", low, high)
    if wraps:
        kept = f'S.reinterpret({x.name}, "int32x32")'
        return k.let(f'wide(S.cast({kept}, "{out.dtype}"), "{out.dtype}")', "int32", low, high)
    return k.let(f'S.cast(S.min({x.name}, S.u32({high})), "int32")', "int32", 0, high)


def _halves(x: Value) -> tuple[str, str]:
    return f"({x.name} >> S.u32(16))", f"({x.name} & S.u32(65535))"


def _to_word(k: KernelSource, x: Value, wraps: bool) -> Value:
    if x.kind == "uint32":
        return x
    if x.kind == "int32":
        given = x.name if wraps else f"S.max({x.name}, 0)"
        return _word(k, f'S.reinterpret({given}, "uint32x32")')
    if wraps:
        raise LayerError("floats that wrap around have no kernel for uint32")
    far, beyond = f"{x.name} >= 2147483648.0", f"{x.name} >= 4294967296.0"
    positive = f"S.vsel({x.name}, S.vbcast(S.fp32(0.0), lanes=32), {x.name} > 0.0)"
    near = k.let(f"S.vsel({x.name} - 2147483648.0, {positive}, {far})", "float32")
    whole = k.let(f'S.reinterpret(S.cast({near.name}, "int32"), "uint32x32")', "uint32")
    return _word(k, f"S.vsel({ALL}, S.vsel({whole.name} ^ S.u32({1 << 31}), {whole.name}, {far}), {beyond})")
