"""Depthwise convolutions, pooling and convolutions on the NPU at odd sizes, strides, dilations and padding: whole numbers exact."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compassc import targets, te, topi
from compassc.operators.declare import OPERATORS

TARGET = "X2_1204"
small = st.integers(1, 3)


def built(name: str, shapes: list[tuple[int, ...]], options: tuple[object, ...], kind: str = "int8") -> str:
    """Builds an operator on bytes of all values with its default schedule, compares, and gives what it was lowered to."""
    operator, draw = OPERATORS[name], np.random.default_rng(0)
    args = [te.placeholder(shape, kind, name=n) for shape, n in zip(shapes, "xw")]
    arrays = [
        draw.integers(-128 if kind == "int8" else -9, 128 if kind == "int8" else 9, s).astype(kind) for s in shapes
    ]
    out = operator.define(*args, *options)
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    s = topi.schedule(out, TARGET)
    targets.build(s, [*args, out], TARGET)(*arrays, found)
    wanted = operator.reference(*arrays, *options)
    np.testing.assert_array_equal(found, np.trunc(wanted).astype(found.dtype))
    return te.lower(s, [*args, out], "k", target=TARGET).script()


@st.composite
def windowed(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]], tuple[object, ...]]:
    name = draw(st.sampled_from(["depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "max_pool2d", "avg_pool2d"]))
    last = draw(st.booleans()) if "pool" in name else name.endswith("nhwc")
    kernel, strides, dilation = ([draw(small), draw(small)] for _ in range(3))
    sizes = [draw(st.integers(7, 14)), draw(st.integers(7, 40))]
    channels = draw(st.integers(8, 40)) if last else draw(st.integers(1, 5))
    shape = (1, *sizes, channels) if last else (1, channels, *sizes)
    padding = [draw(st.integers(0, kernel[n % 2] // 2)) for n in range(4)]
    if "pool" in name:
        return name, [shape], (kernel, strides, dilation, padding, name[:3], False, "NHWC" if last else "NCHW")
    times = draw(st.integers(1, 2))
    weights = (*kernel, channels, times) if last else (channels, times, *kernel)
    return name, [shape, weights], (strides, padding, dilation)


@given(windowed())
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_windows_of_bytes_are_exact(case):
    built(*case)


@given(st.booleans(), st.integers(1, 9), st.integers(1, 33), small, small, small, st.integers(0, 2))
@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_convolutions_of_bytes_are_exact(last, channels, outputs, kernel, stride, dilation, padding):
    size = (7, 19)
    shapes = (
        [(1, *size, channels), (kernel, 2, channels, outputs)]
        if last
        else [(1, channels, *size), (outputs, channels, kernel, 2)]
    )
    built("conv2d_nhwc" if last else "conv2d_nchw", shapes, (stride, padding, dilation))


def test_rows_of_windows_are_transferred_beside_the_work():
    text = built("depthwise_conv2d_nchw", [(1, 8, 16, 24), (8, 1, 3, 3)], (1, 1))
    assert "async_dma_copy" in text and "vqdpa" in text


def test_weights_that_lanes_share_are_in_the_memory_of_a_tec():
    text = built("conv2d_nchw", [(1, 4, 8, 16), (8, 4, 3, 3)], (1, 1, 1), "float32")
    assert "w_lsram" in text and "S.fma" in text
