"""What kernels of regions have in common, in floats and in integers: their texts, sizes and corners of points."""

from __future__ import annotations

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import wide_kind
from compassc.layers.source import LANES

Lines = list[str]
Numbers = dict[str, "float | int"]


def check_maps(layer: Layer, rois: Tensor, width: int, shape: tuple[int, int]) -> None:
    x, y = layer.input, layer.output
    if len(x.shape) != 4 or len(rois.shape) != 2 or rois.shape[1] != width:
        raise LayerError(f"{list(x.shape)} and {list(rois.shape)} are not NHWC maps and rows of {width} numbers")
    if y.shape != (rois.shape[0], *shape, x.shape[3]):
        raise LayerError(f"the output is {list(y.shape)}, expected {[rois.shape[0], *shape, x.shape[3]]}")
    if x.dtype != y.dtype:
        raise LayerError(f"the input is {x.dtype}, the output {y.dtype}; it keeps the type")
    if (wide_kind(x) == "int32") != layer.is_quantised or (wide_kind(rois) == "int32") != layer.is_quantised:
        raise LayerError(f"maps of {x.dtype} with regions of {rois.dtype} have no kernel")


def sizes_of(layer: Layer, shape: tuple[int, int]) -> dict[str, int]:
    x = layer.input.shape
    return {
        "images": x[0],
        "height": x[1],
        "width": x[2],
        "channels": x[3],
        "down": shape[0],
        "across": shape[1],
        "image_size": x[1] * x[2] * x[3],
        "row_size": x[2] * x[3],
    }


def image_lines(layer: Layer, rois: Tensor) -> tuple[Lines, Numbers]:
    """`image`: that of region `r`."""
    if not layer.is_quantised:
        return ['image = S.cast(S.cast(rois[r * 5], "float32"), "int32")'], {}
    if layer.input.shape[0] == 1:
        return ["image = S.i32(0)"], {}
    given: Numbers = {"zero_rois": rois.scalar_zero, "scale_rois": float(rois.scalar_scale)}
    return ['image = S.cast(S.rint(S.cast(S.i32(rois[r * 5]) + zero_rois, "float32") / scale_rois), "int32")'], given


ALIGN = """
$head
for p in range(S.get_local_id(), points, S.get_local_size()):
    r = p / (down * across)
    i_y = p / across % down
    i_x = p % across
    $place
    for j in range(0, channels, 32):
        mask = S.tail_mask(S.min(channels - j, 32), 32)
        acc = S.vbcast($start, lanes=32)
        for k_y in range($many_y):
            $point_y
            $line
            for k_x in range($many_x):
                $point_x
                top = source + (image * image_size + y0 * row_size + j)
                bottom = source + (image * image_size + y1 * row_size + j)
                a = load(top + x0 * channels, mask, "$dtype", 32)$zero
                b = load(top + x1 * channels, mask, "$dtype", 32)$zero
                c = load(bottom + x0 * channels, mask, "$dtype", 32)$zero
                d = load(bottom + x1 * channels, mask, "$dtype", 32)$zero
                $weigh
            $line_end
        $body
        S.vstore(narrow($result, "$dtype"), y + (p * channels + j), mask)
"""

WEIGHTS = (("a", "g_y", "g_x"), ("b", "g_y", "f_x"), ("c", "f_y", "g_x"), ("d", "f_y", "f_x"))
"""The pixels around a point, and what each is weighed with."""

CROP = """
for p in range(S.get_local_id(), points, S.get_local_size()):
    r = p / (down * across)
    i_y = p / across % down
    i_x = p % across
    $place
    $point
    for j in range(0, channels, 32):
        mask = S.tail_mask(S.min(channels - j, 32), 32)
        result = S.vbcast(outside, lanes=32)
        if inside != 0:
            $taken
        $finish
        S.vstore(narrow(result, "$dtype"), y + (p * channels + j), mask)
"""

NEAREST = """
for p in range(S.get_local_id(), points, S.get_local_size()):
    r = p / (down * across)
    $place
    pixel = source.as_ptr("$bits") + (y_place * row_size + x_place * channels)
    S.dma_copy(target.as_ptr("$bits") + p * channels, pixel, channels)
"""


def four_pixels(nearest: bool) -> list[str]:
    """The pixels around a point, or the nearest one, as vectors; `$dtype` is the type of the map."""
    at = "source + (image * image_size + y{} * row_size + x{} * channels + j)"
    return [
        f'load({at.format(v, w)}, mask, "$dtype", {LANES})' for v in "01" for w in "01" if not nearest or v + w == "00"
    ]


INDEXED = (
    "image = S.i32(index[r])",
    "inside = S.i32(1)",
    "if image < 0 or image >= images:",
    "    inside = S.i32(0)",
    "    image = S.i32(0)",
)
"""Lines that find the image of region `r` by its number."""
