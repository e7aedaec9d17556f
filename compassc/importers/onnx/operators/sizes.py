"""Images in another size, and images sampled at computed places."""

from __future__ import annotations

from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator, refuse
from compassc.importers.onnx.interpolation import Axis, Resizing, by_axes, is_whole
from compassc.importers.values import Value, channels_last

LAYER_MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
)


@operator("Resize")
def resize(
    b: Building,
    x: Value,
    roi: Constant | None = None,
    scales: Constant | None = None,
    sizes: Constant | None = None,
    *,
    asked: Resizing,
) -> Value:
    """Images by the layer, whatever else along one axis after the other."""
    changed = asked.changed(x, roi, scales, sizes)
    return (_layer if _is_layer(x, changed, asked) else by_axes)(b, x, changed, asked)


def _is_layer(x: Value, axes: dict[int, Axis], asked: Resizing) -> bool:
    image = x.rank == 4 and not set(axes) - {2, 3} and not asked.antialias
    if not image or asked.kind == "cubic" or asked.coordinate_transformation_mode not in LAYER_MODES:
        return False
    # between the elements the layer and ONNX differ where the last position reaches past a size that is cut off
    return asked.kind == "nearest" or is_whole(axes)


def _layer(b: Building, x: Value, axes: dict[int, Axis], asked: Resizing) -> Value:
    tensor, nearest = b.image(x), asked.kind == "nearest"
    full = [axes.get(a, Axis(x.shape[a], x.shape[a], 1.0)) for a in (2, 3)]
    shape = (x.shape[0], full[0].result, full[1].result, x.shape[1])
    transform = next(iter(axes.values())).transform if axes else "half_pixel"
    made = b.layer(
        "Resize",
        [tensor],
        shape,
        tensor.dtype,
        method="NEAREST" if nearest else "BILINEAR",
        ratio_x=full[1].factor,
        ratio_y=full[0].factor,
        mode=transform.upper(),
        nearest_mode=asked.nearest_mode.upper() if nearest else None,
        antialias=False,
        exclude_outside=False,
    )
    return b.value(made, x.dtype, channels_last(4))


refuse(
    "how many results it gives follows from the values: import up to its inputs (`--output-tensor`), and run it behind the "
    "network",
    "NonMaxSuppression",
)
