"""Activation, and its methods as layer types of their own."""

from functools import cache

from compassc.dsl import script as S
from compassc.oplib.activations import TABLE, values
from compassc.oplib.layer import (
    FLOATS,
    QUANTISED,
    Argument,
    Choice,
    Layer,
    Unsupported,
    count,
    input_scale,
    operator,
    output_scale,
)
from compassc.oplib.vector import LANES, SHORT, dequantised, narrow, quantised, share, wide

ALONE = {"Sigmoid": "SIGMOID", "Tanh": "TANH", "RELU": "RELU", "RELU6": "RELU6", "LeakyRELU": "LEAKYRELU", "ELU": "ELU",
         "SELU": "SELU", "GELU": "GELU", "MISH": "MISH", "Silu": "SILU", "Swish": "SWISH", "Softplus": "SOFTPLUS",
         "Softsign": "SOFTSIGN", "Hardswish": "HARDSWISH", "HardSigmoid": "HARDSIGMOID", "Clip": "CLIP",
         "THRESHOLDEDRELU": "THRESHOLDEDRELU"}  # fmt: skip
"""Layer type -> method."""


@cache
def _kernel(method: str, dtype: str):
    function, lanes = TABLE[method].apply, LANES[dtype]

    @S.prim_func
    def activation(x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), n: S.i32, p: S.fp32, q: S.fp32):
        part = share(n, lanes)
        first = S.get_local_id() * part
        for at in range(first, S.min(first + part, n), lanes):
            mask = S.tail_mask(S.min(n - at, lanes), lanes)
            v = wide(S.vload(x + at, mask), dtype)
            S.vstore(narrow(function(v, p, q), dtype), y + at, mask)

    return activation


@cache
def _quantised(method: str, dtype: str):
    """On quantised values: what they stand for goes through the function, and the result is quantised again."""
    function, lanes = TABLE[method].apply, LANES[dtype]

    @S.prim_func
    def activation(
        x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), n: S.i32, p: S.fp32, q: S.fp32,
        step: S.fp32, zero: S.fp32, scale: S.fp32, out_zero: S.fp32,
    ):  # fmt: skip
        part = share(n, lanes)
        first = S.get_local_id() * part
        for at in range(first, S.min(first + part, n), lanes):
            mask = S.tail_mask(S.min(n - at, lanes), lanes)
            v = function(dequantised(S.vload(x + at, mask), dtype, step, zero), p, q)
            S.vstore(quantised(v, dtype, scale, out_zero), y + at, mask)

    return activation


@operator("Activation", *ALONE)
def select(layer: Layer) -> Choice:
    method = ALONE.get(layer.type) or layer.word("method", "")
    if method == "GELU" and layer.word("approximate", "NONE") == "TANH":
        method = "GELU_TANH"
    if method not in TABLE:
        raise Unsupported(f"the method {method or 'missing'} is not among {', '.join(TABLE)}")
    dtype = layer.dtype(*FLOATS, *QUANTISED)
    args: list[Argument] = [layer.input(), layer.output, count(layer.input().shape), *values(layer, method)]
    name = f"activation_{method.lower()}_{SHORT[dtype]}"
    if dtype in QUANTISED:
        return Choice(_quantised(method, dtype), name, args + input_scale(layer.input()) + output_scale(layer.output))
    return Choice(_kernel(method, dtype), name, args)
