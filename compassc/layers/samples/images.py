"""Small layers of images for pages and tests."""

from __future__ import annotations

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.samples.draw import Draw, sample

TO_RGB = [16, 128, 128, 0, 0, 0, 298, 0, 409, 298, -100, -208, 298, 516, 0]
TO_YUV = [0, 0, 0, 16, 128, 128, 263, 516, 100, -152, -298, 450, 450, -377, -73]


@sample("YuvToRgb", "RgbToYuv")
def _colours(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    numbers, shift = (TO_RGB, 8) if kind == "YuvToRgb" else (TO_YUV, 10)
    given: dict[str, Value] = {"coefficient": numbers, "coefficient_shift": shift, "format": "I420"}
    if not x.is_integer:
        given |= {"coefficient": numbers[:6] + [v / (1 << shift) for v in numbers[6:]], "coefficient_shift": 0}
    if kind == "RgbToYuv":
        if len(x.shape) != 4 or x.shape[3] != 3:
            x = Tensor(draw.tensor((1,), x.dtype).name, (1, 4, 6, 3), x.dtype)
        shape: tuple[int, ...] = (x.shape[0], x.count // x.shape[0] // 2)
    else:
        x = Tensor(draw.tensor((1,), x.dtype).name, (1, 36), x.dtype) if x.count % 6 else x
        shape = (1, 2, x.count // 3, 3)
    return Layer(draw.name, kind, (x,), (Tensor(draw.tensor((1,), x.dtype).name, shape, x.dtype),), given)


@sample("Dilation", "Erosion")
def _extremes(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    given: dict[str, Value] = {
        "kernel_y": 2,
        "kernel_x": 3,
        "stride_y": 1,
        "stride_x": 1,
        "pad_left": 1,
        "pad_right": 1,
        "pad_top": 1,
    }
    if x.is_integer:
        given |= {"scale_value": [200, 256, 300], "shift_value": 16}
    weights = draw.array("int8" if x.is_integer else x.dtype, c, 2, 3, 1)
    return Layer(draw.name, kind, (x,), (draw.requantised(x, (n, h, w, c)),), given, {"weights": weights})
