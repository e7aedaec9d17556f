"""Kernels of comparisons, choices, and functions of the bits of whole numbers, element by element."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.emit import look_up, requantise, requantise_rounded, single, wide_kind
from compassc.layers.families.eltwise.reference import COMPARISONS, LOGICAL
from compassc.layers.kernels import elementwise, form_kernel
from compassc.layers.moving import strides_of
from compassc.layers.source import Kernel, KernelSource, Value, finish
from compassc.layers.vectors import pointee

ONE, NOTHING = "S.vbcast(S.i32(1), lanes=32)", "S.vbcast(S.i32(0), lanes=32)"
OPERATORS = {"EQUAL": "==", "NOT_EQUAL": "!=", "GREATER": ">", "GREATER_EQUAL": ">=", "LESS": "<", "LESS_EQUAL": "<="}
CONNECTIVES = {"AND": "&", "OR": "|", "XOR": "^"}
LARGEST = "3.4028234663852886e+38"


def _zero_of(value: Value) -> str:
    return "0.0" if value.kind == "float32" else "0"


def _truth(k: KernelSource, condition: str) -> Value:
    """1 where a condition holds, else 0."""
    return k.let(f"S.vsel({ONE}, {NOTHING}, {condition})", "int32", 0, 1)


def _whole_output(layer: Layer) -> None:
    if not layer.output.is_integer:
        raise LayerError(f"its output is {layer.output.dtype}, expected an integer type")


def _alone(layer: Layer) -> bool:
    return len(layer.inputs) == 1


@form_kernel("Where", _alone)
@form_kernel("Select", _alone)
def places_that_hold(layer: Layer) -> Kernel:
    """The indices of elements other than 0: every TEC reads all elements and stores its own rows."""
    x, y, k = layer.input, layer.output, KernelSource()
    rank = len(x.shape)
    if y.shape != (x.count, rank) or not rank or not x.count:
        raise LayerError(f"its output is {list(y.shape)}, expected {[x.count, rank]} for the input {list(x.shape)}")
    wide_kind(x)
    zero = k.scalar(-x.scalar_zero) if layer.is_quantised and x.scalar_zero else "0"
    source, target, many = k.tensor(x), k.tensor(y), k.scalar(x.count)
    end = wide_kind(y)
    last = k.scalar(2**31 - 1 if y.dtype == "int32" else y.integer.high) if y.is_integer else '"inf"'
    if not y.is_integer:
        raise LayerError(f"its output is {y.dtype}, expected an integer type")
    places = [f"p / {k.scalar(s)} % {k.scalar(n)}" for s, n in zip(strides_of(x.shape), x.shape, strict=True)]
    cast = f'S.cast({{}}, "{pointee(y.dtype)}")'
    assert end == "int32"
    return finish(
        k,
        [
            "found = S.i32(0)",
            f"for p in range({many}):",
            f"    if {source}[p] != {zero}:",
            "        if found % S.get_local_size() == S.get_local_id():",
            *(f"            {target}[found * {rank} + {i}] = {cast.format(place)}" for i, place in enumerate(places)),
            "        found += 1",
            f"for r in range(found, {many}):",
            "    if r % S.get_local_size() == S.get_local_id():",
            f"        for i in range({rank}):",
            "            value = S.i32(0)",
            "            if r == found:",
            f"                value = S.i32({last})",
            f"            {target}[r * {rank} + i] = {cast.format('value')}",
        ],
    )


@elementwise("Where", "Select")
def where(k: KernelSource, layer: Layer, condition: Value, *x: Value) -> Value:
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
    chosen = f"S.vsel({a.name}, {b.name}, {test.name} != {_zero_of(test)})"
    return _stored(k, layer, k.let(chosen, a.kind, min(a.low, b.low), max(a.high, b.high)))


def _stored(k: KernelSource, layer: Layer, value: Value) -> Value:
    """Limited to the output's type."""
    if value.kind == "float32":
        return value
    kind = layer.output.integer
    return requantise(k, value, 1, 0, 0, kind.low, min(kind.high, 2**31 - 1))


@elementwise("Logical")
def logical(k: KernelSource, layer: Layer, *x: Value) -> Value:
    _whole_output(layer)
    method = layer.word("method", choices=LOGICAL)
    if method == "NOT":
        return _truth(k, f"{x[0].name} == {_zero_of(x[0])}")
    if method in CONNECTIVES:
        a, b = (_truth(k, f"{v.name} != {_zero_of(v)}") for v in x)
        return k.let(f"{a.name} {CONNECTIVES[method]} {b.name}", "int32", 0, 1)
    if x[0].kind != x[1].kind:
        raise LayerError("it compares floats with integers, for which there is no kernel")
    if layer.is_quantised:
        factors = np.resize(layer.multipliers(of=2), 2)
        x = tuple(
            _times(k, k.shifted(v, t.scalar_zero), int(f)) for v, t, f in zip(x, layer.inputs, factors, strict=True)
        )
    assert method in COMPARISONS
    return _truth(k, f"{x[0].name} {OPERATORS[method]} {x[1].name}")


def _times(k: KernelSource, value: Value, factor: int) -> Value:
    if factor == 1:
        return value
    if value.magnitude * abs(factor) >= 2**31:
        raise LayerError(f"an operand times its scale {factor} does not fit 32 bits")
    return k.let(f"{value.name} * {k.scalar(factor)}", "int32", value.low * factor, value.high * factor)


@elementwise("IsNaN")
def is_nan(k: KernelSource, layer: Layer, x: Value) -> Value:
    _whole_output(layer)
    return _truth(k, f"{x.name} != {x.name}") if x.kind == "float32" else k.let(f"{x.name} * 0", "int32", 0, 0)


@elementwise("IsInf")
def is_inf(k: KernelSource, layer: Layer, x: Value) -> Value:
    _whole_output(layer)
    tests = []
    if layer.flag("detect_positive", True):
        tests.append(f"{x.name} > {LARGEST}")
    if layer.flag("detect_negative", True):
        tests.append(f"{x.name} < -{LARGEST}")
    if x.kind != "float32" or not tests:
        return k.let(NOTHING, "int32", 0, 0)
    found = [_truth(k, t) for t in tests]
    return k.let(" | ".join(v.name for v in found), "int32", 0, 1)


def _same_integers(layer: Layer) -> None:
    kinds = {t.dtype for t in (*layer.inputs[:2], layer.output)}
    if len(kinds) > 1 or not layer.output.is_integer:
        raise LayerError(f"its tensors are {', '.join(sorted(kinds))}, expected one integer type")


def _wrapped(k: KernelSource, layer: Layer, value: str) -> Value:
    """The low bits, as the output's type reads them."""
    dtype, kind = layer.output.dtype, layer.output.integer
    if kind.bits == 32:
        return k.let(value, "int32", kind.low, kind.high)
    return k.let(f'wide(S.cast({value}, "{dtype}"), "{dtype}")', "int32", kind.low, kind.high)


@elementwise("Bitwise")
def bitwise(k: KernelSource, layer: Layer, *x: Value) -> Value:
    _same_integers(layer)
    method = layer.word("method", choices=("NOT", *CONNECTIVES))
    if method == "NOT":
        return _wrapped(k, layer, f"-1 - {x[0].name}")
    return _wrapped(k, layer, f"{x[0].name} {CONNECTIVES[method]} {x[1].name}")


@elementwise("BitShift")
def bit_shift(k: KernelSource, layer: Layer, x: Value, n: Value) -> Value:
    kind = layer.output.integer
    if layer.input.dtype != layer.output.dtype or n.kind != "int32" or x.kind != "int32":
        raise LayerError(f"it shifts {layer.input.dtype} to {layer.output.dtype}, expected one integer type")
    if layer.word("direction", choices=("LEFT", "RIGHT")) == "RIGHT":
        return k.let(f"{x.name} >> S.min({n.name}, 31)", "int32", kind.low, kind.high)
    moved = f"{x.name} << S.min({n.name}, {kind.bits - 1})"
    kept = k.let(f"S.vsel({NOTHING}, {moved}, {n.name} >= {kind.bits})", "int32")
    return _wrapped(k, layer, kept.name)


@elementwise("Mod")
def mod(k: KernelSource, layer: Layer, a: Value, b: Value) -> Value:
    truncated = layer.flag("fmod", False)
    if not layer.is_quantised:
        if a.kind != "float32" or b.kind != "float32":
            raise LayerError("it divides floats by integers, or the other way round, for which there is no kernel")
        if truncated:
            rest = k.let(a.name, "float32")
            k.do(f"exact_remainder({rest.name}, {b.name})")
            return rest
        return k.let(f"{a.name} - S.floor({a.name} / {b.name}) * {b.name}", "float32")
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    left, right = (
        requantise(k, k.shifted(v, t.scalar_zero), m.reshape(()), s.reshape(()), 0, t.low, t.high)
        for v, t, m, s in zip((a, b), layer.inputs, scale, shift, strict=True)
    )
    divisor = k.let(f"S.vsel({ONE}, {right.name}, {right.name} == 0)", "int32", right.low, max(right.high, 1))
    size = divisor.magnitude
    rest = k.let(f"{left.name} % {divisor.name}", "int32", -size, size)
    if not truncated:
        other = f"(({rest.name} ^ {divisor.name}) < 0)"
        away = _truth(k, f"{rest.name} != 0")
        moved = f"S.vsel({rest.name} + {divisor.name} * {away.name}, {rest.name}, {other})"
        rest = k.let(moved, "int32", -size, size)
    out = layer.output
    return requantise(k, rest, 1, 0, out.scalar_zero, out.low, out.high)


@elementwise("DivMod")
def div_mod(k: KernelSource, layer: Layer, a: Value, b: Value) -> tuple[Value, Value]:
    """By zero both are 0."""
    if any(v.kind != "int32" for v in (a, b)) or any(not t.is_integer for t in layer.outputs):
        raise LayerError(f"its tensors are {[t.dtype for t in (*layer.inputs, *layer.outputs)]}, expected integers")
    floored = layer.word("mode", "FLOOR", ("FLOOR", "TRUNC")) == "FLOOR"
    divisor = k.let(f"S.vsel({ONE}, {b.name}, {b.name} == 0)", "int32", b.low, max(b.high, 1))
    left, least = a, -(2**31)
    if a.low == least and b.low < 0:
        # the one quotient that does not fit is saturated, as is what stores it
        left = k.let(
            f"S.vsel({-(2**31) + 1}, {a.name}, ({a.name} == {least}) & ({b.name} == -1))", "int32", a.low, a.high
        )
    size, whole = max(abs(b.low), abs(b.high)), max(abs(a.low), abs(a.high)) + 1
    quotient = k.let(f"{left.name} / {divisor.name}", "int32", -whole, whole)
    rest = k.let(f"{left.name} - {quotient.name} * {divisor.name}", "int32", -size, size)
    if floored:
        away = _truth(k, f"({rest.name} != 0) & (({rest.name} ^ {divisor.name}) < 0)")
        quotient = k.let(f"{quotient.name} - {away.name}", "int32", -whole, whole)
        rest = k.let(f"{rest.name} + {away.name} * {divisor.name}", "int32", -size, size)
    found = (f"S.vsel({NOTHING}, {v.name}, {b.name} == 0)" for v in (quotient, rest))
    return k.let(next(found), "int32", -whole, whole), k.let(next(found), "int32", -size, size)


@elementwise("Pow")
def power(k: KernelSource, layer: Layer, base: Value, *exponent: Value) -> Value:
    if not layer.is_quantised:
        raised = k.scalar(layer.number("exponent")) if layer.has("exponent") else exponent[0].name
        return k.let(f"S.pow({base.name}, {raised})", "float32")
    kind = layer.input.integer
    logarithm = look_up(k, k.shifted(base, -kind.low), layer.constant("lut_log"), kind.bits)
    if layer.has("exponent"):
        return _stored(k, layer, logarithm)
    scale, shift = (single(v, "scale") for v in layer.scale_shift(of=1))
    times = k.shifted(exponent[0], layer.inputs[1].scalar_zero)
    if logarithm.magnitude * times.magnitude >= 2**31:
        raise LayerError("the logarithm times its exponent does not fit 32 bits")
    size = logarithm.magnitude * times.magnitude
    product = k.let(f"{logarithm.name} * {times.name}", "int32", -size, size)
    inner = requantise(k, product, scale, shift, 0, -32768, 32767)
    value = look_up(k, k.shifted(inner, 32768), layer.constant("lut_exp"), 16)
    number = k.shifted(base, layer.input.scalar_zero)
    negative = _truth(k, f"{number.name} < 0")
    odd = k.let(f"{negative.name} & {times.name}", "int32", 0, 1)
    signed = k.let(
        f"S.vsel(0 - {value.name}, {value.name}, {odd.name} != 0)", "int32", -value.magnitude, value.magnitude
    )
    empty = k.let(f"S.vsel({NOTHING}, {signed.name}, {number.name} == 0)", "int32", signed.low, signed.high)
    result = f"S.vsel({value.name}, {empty.name}, {times.name} == 0)"
    return _stored(k, layer, k.let(result, "int32", signed.low, signed.high))


@elementwise("FakeQuantWithMinMaxVars")
def fake_quantise(k: KernelSource, layer: Layer, x: Value) -> Value:
    from compassc.layers.families.eltwise.reference import fake_levels

    if layer.is_quantised:
        return x
    f = fake_levels(layer)
    scaled = f"S.rint({x.name} * {k.scalar(f.scale)} - {k.scalar(f.zero)})"
    level = k.let(f"S.min(S.max({scaled}, {k.scalar(f.first)}), {k.scalar(f.last)})", "float32")
    back = f"({level.name} + {k.scalar(f.zero)}) * {k.scalar(f.step)}"
    return k.let(f"S.min(S.max({back}, {k.scalar(f.low)}), {k.scalar(f.high)})", "float32")
