"""Pooling along a line, over volumes, to a wanted size, with the place of the maximum, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from compassc.layers.windows import Window, cells_inside, seen
from tests.choosing import some
from tests.layers.cases import Array, check, drawn, same, tensor
from tests.layers.harness import run

DTYPES = ("int8", "uint8", "int16", "float32", "float16")


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(41)


def line(kernel: int, stride: int, pads: tuple[int, int], dilation: int = 1) -> dict[str, int]:
    return {"kernel_x": kernel, "stride_x": stride, "dilation_x": dilation, "pad_left": pads[0], "pad_right": pads[1]}


def solid(kernel: tuple[int, int, int], stride: int, pad: int, dilation: int = 1) -> dict[str, int]:
    """`kernel` as (depth, height, width)."""
    given = {f"kernel_{a}": n for a, n in zip("zyx", kernel, strict=True)}
    for a in "xyz":
        given |= {f"stride_{a}": stride, f"dilation_{a}": dilation, f"pad_{a}_begin": pad, f"pad_{a}_end": pad}
    return given


def zero_of(dtype: str) -> int:
    return 3 if "int" in dtype else 0


def lines() -> Iterator[Layer]:
    for i, dtype in enumerate(DTYPES):
        for j, (method, include) in enumerate(
            (("MAX", True), ("AVG", True), ("AVG", False), ("L1", True), ("L2", True))
        ):
            to = "uint8" if method == "L2" and dtype in ("int8", "uint8") else dtype
            table = {"sqrt_lut": np.arange(256).astype("uint8")} if method == "L2" else {}
            given: dict[str, Any] = {
                "method": method,
                "count_include_pad": include,
                "scale_value": 180,
                "shift_value": 9 if method == "L1" else 22 if dtype == "int16" else 2,
            }
            kernel, stride, pads, dilation = ((3, 2, (1, 1), 1), (2, 1, (0, 1), 2), (4, 3, (2, 0), 1))[(i + j) % 3]
            made = (11 + sum(pads) - dilation * (kernel - 1) - 1) // stride + 1
            x = tensor("x", (2, 11, 37), dtype, 10.0, zero_of(dtype))
            y = tensor("y", (2, made, 37), to, 9.0, zero_of(dtype))
            yield Layer("p", "Pooling", [x], [y], given | line(kernel, stride, pads, dilation), table)


def volumes() -> Iterator[Layer]:
    forms = (((2, 3, 2), 2, 1, 1), ((1, 2, 3), 1, 0, 1), ((2, 2, 2), 1, 1, 2), ((3, 3, 3), 2, 1, 1))
    for i, dtype in enumerate(DTYPES):
        for j, (method, include) in enumerate((("MAX", True), ("AVG", True), ("AVG", False))):
            kernel, stride, pad, dilation = forms[(i + j) % len(forms)]
            made = [
                (n + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for n, k in zip((5, 6, 7), kernel, strict=True)
            ]
            x, y = (
                tensor("x", (2, 5, 6, 7, 35), dtype, 1.0, zero_of(dtype)),
                tensor("y", (2, *made, 35), dtype, 1.0, zero_of(dtype)),
            )
            given = {"method": method, "count_include_pad": include, **solid(kernel, stride, pad, dilation)}
            yield Layer("p", "Pooling3D", [x], [y], given)


def adaptive() -> Iterator[Layer]:
    for i, dtype in enumerate(DTYPES):
        for method in ("MAX", "AVG"):
            lead, wanted = ((2,), [3, 4]) if i % 2 else ((), [5, 2])
            x = tensor("x", (*lead, 7, 10, 33), dtype, 1.0, zero_of(dtype))
            y = tensor("y", (*lead, *wanted, 33), dtype, 1.0, zero_of(dtype))
            yield Layer("p", "AdaptivePool", [x], [y], {"method": method, "output_size": wanted})


@pytest.mark.parametrize("cases", [lines, volumes, adaptive])
def test_kernels_give_what_the_references_give(cases, source, tmp_path):
    for case in some(list(cases())[::2]):
        check(case, source, tmp_path)


def places() -> Iterator[Layer]:
    forms = (("HWC", 0), ("NHWC", 1), ("HW", 0), ("NCHW", 1))
    for i, dtype in enumerate((*DTYPES, "int32")):
        form, order = forms[i % len(forms)]
        given = {"flatten_dim": form, "storage_order": order, "ceil_mode": False}
        given |= {f"{n}_{a}": v for n, v in (("kernel", 3), ("stride", 2), ("dilation", 1)) for a in "xy"}
        given |= {f"pad_{s}": 1 for s in ("left", "right", "top", "bottom")}
        x = tensor("x", (2, 6, 7, 35), dtype, 1.0, zero_of(dtype))
        outputs = [tensor("y", (2, 3, 4, 35), dtype, 1.0, zero_of(dtype)), tensor("i", (2, 3, 4, 35), "int32")]
        yield Layer("p", "MaxPoolingWithArgMax", [x], outputs, given)


def test_a_maximum_comes_with_the_place_of_the_first(source, tmp_path):
    for case in some(places()):
        check(case, source, tmp_path, narrow=True)


def test_what_is_not_a_number_is_the_maximum_and_infinities_have_a_place(source, tmp_path):
    case = next(c for c in places() if c.input.dtype == "float32")
    x = drawn(source, case.input)
    x[0, 2, 3], x[1], x[0, 5, 6, :5] = np.nan, -np.inf, np.nan
    got = run(kernel_of([case]), case, [x], tmp_path)
    for a, b in some(zip(got, evaluate(case, [x]), strict=True)):
        np.testing.assert_array_equal(a, b)


def whole_windows() -> Iterator[Layer]:
    """Maxima of windows that see nothing outside of the image."""

    def made(kind: str, shape: tuple[int, ...], out: tuple[int, ...], **attributes: Any) -> Layer:
        return Layer(
            "p",
            kind,
            (tensor("x", shape, "float32"),),
            (tensor("y", out, "float32"),),
            {"method": "MAX", **attributes},
            {},
        )

    yield made("Pooling", (1, 6, 35), (1, 3, 35), **line(2, 2, (0, 0)))
    yield made("GlobalPool", (1, 15, 14, 3), (1, 1, 1, 3))
    yield made("Pooling3D", (1, 4, 4, 4, 3), (1, 2, 2, 2, 3), **solid((2, 2, 2), 2, 0))
    yield made("AdaptivePool", (1, 7, 6, 3), (1, 2, 3, 3), output_size=[2, 3])
    yield made("FractionalPool", (1, 7, 6, 3), (1, 3, 4, 3), seed=7)


@pytest.mark.parametrize("layer", list(whole_windows()), ids=lambda n: n.type)
def test_the_maximum_of_infinities_is_one(layer, tmp_path):
    x = np.full(layer.input.shape, -np.inf, np.float32)
    (got,), (want,) = run(kernel_of([layer]), layer, [x], tmp_path), evaluate(layer, [x])
    assert (want == -np.inf).all() and (got == want).all()


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_the_maximum_of_images_that_fit_no_tile(dtype, source, tmp_path):
    x, y = (
        tensor("x", (2, 16, 17, 9), dtype, 1.0, zero_of(dtype)),
        tensor("y", (2, 1, 1, 9), dtype, 1.0, zero_of(dtype)),
    )
    check(Layer("p", "GlobalPool", (x,), (y,), {"method": "MAX"}, {}), source, tmp_path)


@pytest.mark.parametrize("form", ["HW", "HWC", "NHWC", "NCHW"])
@pytest.mark.parametrize("kind", ["MaxUnpool", "UpsampleByIndex"])
def test_values_are_put_at_their_places(form, kind, source, tmp_path):
    for dtype in ("int8", "float32", "float16"):
        values, index = tensor("v", (2, 3, 2, 5), dtype, 1.0, zero_of(dtype)), tensor("i", (2, 3, 2, 5), "int32")
        case = Layer(
            "u", kind, [values, index], [tensor("y", (2, 6, 4, 5), dtype, 1.0, zero_of(dtype))], {"flatten_dim": form}
        )
        at: Array = source.integers(-3, 2 * 6 * 4 * 5 + 9, index.shape).astype("int32")
        x = drawn(source, values)
        same(case, [x, at], tmp_path)


@pytest.mark.parametrize("method", ["AVG", "L1", "L2"])
def test_sums_beyond_32_bits(method, source, tmp_path):
    """All of an image with extreme values, so that sums saturate."""
    for zero, dtype in ((30000, "int16"), (0, "int16"), (0, "uint16")):
        shape = (1, 250, 280, 3)
        table = {"sqrt_lut": np.arange(1024).astype("uint16")} if method == "L2" else {}
        given = {"method": method, "scale_value": 180, "shift_value": 24}
        x, y = (
            tensor("x", shape, dtype, 10.0, zero),
            tensor("y", (1, 1, 1, 3), "uint16" if method != "AVG" else dtype, 9.0, 0),
        )
        case = Layer("p", "GlobalPool", [x], [y], given, table)
        data = source.integers(x.low, x.high + 1, shape).astype(dtype)
        data[..., 1], data[..., 2] = x.high, x.low
        same(case, [data], tmp_path)


def test_a_size_that_does_not_follow_is_refused_with_both():
    case = next(iter(lines()))
    wrong = Layer("p", "Pooling", case.inputs, [tensor("y", (2, 9, 37), "int8")], case.attributes)
    with pytest.raises(LayerError, match=r"\[2, 6, 37\].*\[2, 9, 37\]"):
        kernel_of([wrong])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float32", "float16"])
@pytest.mark.parametrize("shape", [(2, 7, 7, 40), (1, 5, 3, 2), (3, 90, 33)])
def test_the_mean_of_a_whole_image(tmp_path, dtype, shape):
    whole = "int" in dtype
    x = Tensor("x", shape, dtype, *((3.0, 7) if whole else ()))
    y = Tensor("y", (shape[0], *(1 for _ in shape[1:-1]), shape[-1]), dtype, *((11.5, -2) if whole else ()))
    size = dict(zip(("kernel_x", "kernel_y"), shape[-2:0:-1], strict=False))
    given = {"method": "AVG", "ceil_mode": False, "kernel_x": 1, "kernel_y": 1, **size}
    pads = dict.fromkeys(("pad_left", "pad_right", "pad_top", "pad_bottom"), 0)
    layer = Layer(
        "p", "Pooling" if len(shape) == 4 else "GlobalPool", (x,), (y,), given | pads | {"stride_x": 1, "stride_y": 1}
    )
    source = np.random.default_rng(3)
    values = source.integers(x.low, x.high + 1, shape) if whole else source.normal(0, 1, shape)
    inputs = [values.astype(numpy_dtype(dtype))]
    (got,), (want,) = run(kernel_of([layer]), layer, inputs, tmp_path), evaluate(layer, inputs)
    np.testing.assert_allclose(
        got.astype(float), want.astype(float), rtol=0 if whole else 2e-3, atol=0 if whole else 1e-4
    )


def edges() -> Iterator[Layer]:
    """A last window past the end along one axis only; windows in pads alone; a whole image with pads."""
    for dtype in ("int8", "float32"):
        x, zero = tensor("x", (1, 5, 6, 35), dtype, 10.0, zero_of(dtype)), zero_of(dtype)
        for method in ("MAX", "AVG"):
            given = {"method": method, "kernel_x": 3, "kernel_y": 2, "stride_x": 2, "stride_y": 2, "ceil_mode": True}
            yield Layer("p", "Pooling", [x], [tensor("y", (1, 2, 3, 35), dtype, 10.0, zero)], given)
            ones = dict.fromkeys(("kernel_x", "kernel_y", "stride_x", "stride_y", "pad_left", "pad_top"), 1)
            y = tensor("y", (1, 6, 7, 35), dtype, 9.0, zero)
            yield Layer("p", "Pooling", [x], [y], ones | {"method": method, "count_include_pad": False})
            y = tensor("y", (1, 1, 1, 35), dtype, 11.0, zero)
            yield Layer("p", "GlobalPool", [x], [y], {"method": method, "pad_left": 1, "pad_bottom": 2})


def test_windows_at_the_edges(source, tmp_path):
    for layer in edges():
        check(layer, source, tmp_path)
    given = {"method": "AVG", "pad_left": 1, "pad_bottom": 2}
    whole = Layer(
        "p", "GlobalPool", [tensor("x", (1, 3, 4, 1), "float32")], [tensor("y", (1, 1, 1, 1), "float32")], given
    )
    np.testing.assert_allclose(evaluate(whole, [np.full((1, 3, 4, 1), 25, "float32")])[0], 25 * 12 / 25)
    window = {"method": "AVG", "kernel_x": 1, "kernel_y": 1, "pad_left": 1, "count_include_pad": False}
    x, y = tensor("x", (1, 1, 1, 1), "int8", 1.0, 7), tensor("y", (1, 1, 2, 1), "int8", 1.0, 7)
    assert evaluate(Layer("p", "Pooling", [x], [y], window), [np.full(x.shape, 5, "int8")])[0].tolist() == [
        [[[0], [5]]]
    ]


def cut_windows() -> Iterator[Layer]:
    """Images of several tiles: windows that see elements outside on some sides or none, and images wider than a tile."""
    pads = ("pad_top", "pad_left", "pad_bottom", "pad_right")
    for dtype, method, (high, wide, c), kernel, stride, dilation, outside in (
        ("int8", "MAX", (23, 41, 70), (3, 3), 2, 1, (1, 1, 1, 1)),
        ("uint8", "AVG", (40, 19, 33), (2, 2), 2, 1, (0, 0, 0, 0)),
        ("float32", "MAX", (9, 150, 40), (3, 2), 1, 2, (2, 1, 0, 0)),
        ("float32", "AVG", (37, 30, 64), (3, 3), 1, 1, (1, 0, 1, 0)),
        ("int16", "L1", (30, 33, 5), (1, 5), 3, 1, (0, 2, 0, 3)),
        ("float16", "MAX", (20, 26, 96), (5, 4), 1, 1, (4, 3, 4, 3)),
    ):
        window = {f"{n}_{a}": v for n, v in (("stride", stride), ("dilation", dilation)) for a in "yx"}
        window |= dict(zip(("kernel_y", "kernel_x"), kernel, strict=True)) | dict(zip(pads, outside, strict=True))
        made = [
            (n + outside[i] + outside[i + 2] - dilation * (k - 1) - 1) // stride + 1
            for i, (n, k) in enumerate(zip((high, wide), kernel, strict=True))
        ]
        given = {"method": method, "count_include_pad": False, "scale_value": 150, "shift_value": 8} | window
        x, y = (tensor(n, s, dtype, 1.0, zero_of(dtype)) for n, s in (("x", (2, high, wide, c)), ("y", (2, *made, c))))
        yield Layer("p", "Pooling", [x], [y], given)


@pytest.mark.parametrize("layer", list(cut_windows()), ids=lambda n: f"{n.input.dtype}-{n.attributes['method']}")
def test_windows_over_many_tiles_are_as_defined(tmp_path, source, layer):
    assert "S.async_dma_copy" in kernel_of([layer]).text
    check(layer, source, tmp_path)


def test_cells_inside_are_those_that_windows_see():
    source = np.random.default_rng(1)
    for _ in range(300):
        axes = int(source.integers(1, 4))
        sizes = tuple(int(n) for n in source.integers(1, 7, axes))
        kernel, stride, dilation = (tuple(int(n) for n in source.integers(1, 4, axes)) for _ in range(3))
        pads = tuple((int(a), int(b)) for a, b in source.integers(-1, 4, (axes, 2)))
        window = Window(kernel, stride, dilation, pads)
        positions = window.positions(sizes, ceil=bool(source.integers(2)))
        if min(positions) < 1 or any(n + a + b < 1 for n, (a, b) in zip(sizes, pads, strict=True)):
            continue
        cells = seen(np.ones((1, *sizes, 1), bool), window, positions, False)[0].sum(tuple(range(-axes, 0)))
        assert (cells_inside(sizes, window, positions) == cells[..., 0]).all(), (sizes, window, positions)
    wide = Window((60000, 60000), (1, 1), (1, 1), ((30000, 30000), (30000, 30000)))
    assert (cells_inside((8, 8), wide, (9, 9)) == 64).all()
