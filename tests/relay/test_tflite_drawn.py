"""Quantised operators of TFLite with sizes, options and scales drawn at random: programs give the integers of its rules, and those of a
runtime where one is installed (`pip install ai-edge-litert`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from compassc import relay
from tests.choosing import some
from tests.importers import tflite_reference
from tests.importers.tflite_models import Model
from tests.relay.relay_values import evaluate

Array = np.ndarray[Any, Any]
Drawn = tuple[bytes, list[Array]]
SEEDS = 12
BLOCK = 16
"""Elements that LiteRT rescales at once: it rounds those behind the last block otherwise (QUANTIZE of 8 bits)."""


def levels(rng: Any, dtype: str, scale: float = 0.0) -> dict[str, Any]:
    kind = np.iinfo(dtype)
    zero = 0 if dtype == "int16" else int(rng.integers(kind.min, kind.max + 1))
    return {"scale": float(np.float32(scale or 10 ** rng.uniform(-2.5, 0))), "zero": zero}


def near(rng: Any, scale: float) -> float:
    return scale * float(rng.uniform(0.4, 2.5))


def numbers(rng: Any, shape: tuple[int, ...], dtype: str) -> Array:
    kind = np.iinfo(dtype)
    return rng.integers(kind.min, kind.max + 1, shape).astype(dtype)


def of_kind(rng: Any, *kinds: str) -> str:
    return str(rng.choice(kinds))


def transposed(rng: Any) -> Drawn:
    """Also of filters that are smaller than strides, and shapes beyond what they reach."""
    net, dtype, same = Model(), of_kind(rng, "int8", "int16"), bool(rng.integers(2))
    size, kernel, stride = ([int(v) for v in rng.integers(1, most, 2)] for most in (5, 4, 4))
    full = [n * s if same else (n - 1) * s + k for n, s, k in zip(size, stride, kernel)]
    shape = (1, *(n + (-1 if same else 1) * int(rng.integers(s)) for n, s in zip(full, stride)), 4)
    own, scales = levels(rng, dtype), (rng.random(4) / 100 + 0.001).astype("float32")
    filters = net.constant(numbers(rng, (4, *kernel, 3), "int8"), scale=scales, zero=np.zeros(4))
    given = [net.constant(shape, np.int32), filters, net.input("x", (1, *size, 3), dtype, **own)]
    if rng.integers(2):
        wide, products = ("int32", "int64")[dtype == "int16"], scales * np.float32(own["scale"])
        given.append(net.constant(rng.integers(-2000, 2000, 4).astype(wide), scale=products, zero=np.zeros(4)))
    out = levels(rng, dtype, near(rng, own["scale"] * 0.8))
    options = {"padding": ("VALID", "SAME")[same], "stride_h": stride[0], "stride_w": stride[1]}
    made = net("TRANSPOSE_CONV", given, shape, dtype, "TransposeConvOptions", **options, **out)
    return net.bytes(made), [numbers(rng, (1, *size, 3), dtype)]


def resized(name: str, *kinds: str) -> Callable[[Any], Drawn]:
    def draw(rng: Any) -> Drawn:
        net, dtype = Model(), of_kind(rng, *kinds)
        size, wanted = ([int(v) for v in rng.integers(1, 12, 2)] for _ in range(2))
        corners = bool(rng.integers(2))
        options = {"align_corners": corners, "half_pixel_centers": not corners and bool(rng.integers(2))}
        own = levels(rng, dtype)
        x = net.input("x", (1, *size, 3), dtype, **own)
        made = net(name, [x, net.constant(wanted, np.int32)], (1, *wanted, 3), dtype, **options, **own)
        return net.bytes(made), [numbers(rng, (1, *size, 3), dtype)]

    return draw


def function(name: str, count: int, *kinds: str, **options: object) -> Callable[[Any], Drawn]:
    def draw(rng: Any) -> Drawn:
        net, dtype = Model(), of_kind(rng, *kinds)
        own = levels(rng, dtype)
        out = levels(rng, dtype, near(rng, own["scale"]))
        made = net(name, [net.input("x", (1, count), dtype, **own)], (1, count), dtype, **options, **out)
        return net.bytes(made), [numbers(rng, (1, count), dtype)]

    return draw


def pooled(rng: Any) -> Drawn:
    net, dtype, same = Model(), of_kind(rng, "int8", "uint8", "int16"), bool(rng.integers(2))
    size, stride = ([int(v) for v in rng.integers(low, high, 2)] for low, high in ((2, 9), (1, 4)))
    kernel = [int(rng.integers(1, n + 1)) for n in size]
    out = [-(-(n if same else n - k + 1) // s) for n, k, s in zip(size, kernel, stride)]
    own = levels(rng, dtype)
    options = {"stride_h": stride[0], "stride_w": stride[1], "filter_height": kernel[0], "filter_width": kernel[1]}
    options |= {"padding": ("VALID", "SAME")[same], "fused_activation_function": of_kind(rng, "NONE", "RELU", "RELU6")}
    x = net.input("x", (1, *size, 3), dtype, **own)
    made = net("AVERAGE_POOL_2D", [x], (1, *out, 3), dtype, "Pool2DOptions", **options, **own)
    return net.bytes(made), [numbers(rng, (1, *size, 3), dtype)]


OPERATORS: dict[str, Callable[[Any], Drawn]] = {
    "TRANSPOSE_CONV": transposed,
    "RESIZE_BILINEAR": resized("RESIZE_BILINEAR", "int8", "int16"),
    "RESIZE_NEAREST_NEIGHBOR": resized("RESIZE_NEAREST_NEIGHBOR", "int8", "uint8", "int16"),
    "HARD_SWISH": function("HARD_SWISH", 256, "int8", "uint8"),
    "AVERAGE_POOL_2D": pooled,
    "QUANTIZE": function("QUANTIZE", 20 * BLOCK, "int8", "uint8", "int16"),
    "LEAKY_RELU": function("LEAKY_RELU", 250, "int8", "uint8", "int16", alpha=0.3),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_programs_give_the_integers_of_the_rules(name: str) -> None:
    for seed in some(range(SEEDS)):
        content, given = OPERATORS[name](np.random.default_rng(seed))
        found = evaluate(relay.frontend.from_tflite(content)[0], *given)
        np.testing.assert_array_equal(found, tflite_reference.run(content, given), err_msg=f"seed {seed}")


@pytest.mark.skipif(not find_spec("ai_edge_litert"), reason="ai-edge-litert is not installed")
@pytest.mark.parametrize("name", OPERATORS)
def test_a_runtime_gives_the_same(name: str) -> None:
    from ai_edge_litert import interpreter

    plain = interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    for seed in some(range(SEEDS)):
        content, given = OPERATORS[name](np.random.default_rng(seed))
        runtime = interpreter.Interpreter(model_content=content, experimental_op_resolver_type=plain)
        runtime.allocate_tensors()
        for info, array in zip(runtime.get_input_details(), given, strict=True):
            runtime.set_tensor(info["index"], array)
        runtime.invoke()
        wanted = [runtime.get_tensor(info["index"]) for info in runtime.get_output_details()]
        np.testing.assert_array_equal(
            evaluate(relay.frontend.from_tflite(content)[0], *given), wanted, err_msg=f"seed {seed}"
        )
