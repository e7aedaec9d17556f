"""`tvm.topi.image` and `tvm.topi.vision`: pictures in other sizes, and boxes in them."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.errors import ExpressionError
from ...operators.declare import numbers
from ...te.tensor import Tensor
from .calls import Sizes, one, per_axis, several

__all__ = [
    "affine_grid", "all_class_non_max_suppression", "crop_and_resize", "dilation2d_nchw", "dilation2d_nhwc", "get_valid_counts",
    "grid_sample", "multibox_detection", "multibox_prior", "multibox_transform_loc", "non_max_suppression", "reorg", "resize1d",
    "resize2d", "resize3d", "roi_align_nchw", "roi_align_nhwc", "roi_pool_nchw",
]  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- pictures


def _resized(
    rank: int, data: Tensor, roi: object, size: Sequence[int], layout: str, method: str, mode: str, rounding: str, alpha: float,
    exclude: int, extrapolation: float, out_dtype: str | None, output_shape: Sequence[int] | None,
) -> Tensor:  # fmt: skip
    made = one(
        f"image.resize{rank}d", data, [int(n) for n in size], None if roi is None else [float(r) for r in roi],  # type: ignore[attr-defined]
        layout=layout, method=method, coordinate_transformation_mode=mode, rounding_method=rounding, cubic_alpha=alpha,
        cubic_exclude=exclude, extrapolation_value=extrapolation, out_dtype=out_dtype,
    )  # fmt: skip
    if output_shape is not None and [int(n) for n in output_shape] != numbers(made, "resize"):
        raise ExpressionError(
            f"resizing gives {numbers(made, 'resize')}, not {list(output_shape)}", "leave output_shape out"
        )
    return made


def resize1d(
    data: Tensor, roi: object, size: Sequence[int], layout: str = "NCW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5, bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0, out_dtype: str | None = None, output_shape: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Rows in another size."""
    return _resized(
        1, data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value,
        out_dtype, output_shape,
    )  # fmt: skip


def resize2d(
    data: Tensor, roi: object, size: Sequence[int], layout: str = "NCHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5, bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0, out_dtype: str | None = None, output_shape: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Pictures in another size."""
    return _resized(
        2, data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value,
        out_dtype, output_shape,
    )  # fmt: skip


def resize3d(
    data: Tensor, roi: object, size: Sequence[int], layout: str = "NCDHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5, bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0, out_dtype: str | None = None, output_shape: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Volumes in another size."""
    return _resized(
        3, data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value,
        out_dtype, output_shape,
    )  # fmt: skip


def crop_and_resize(
    data: Tensor, boxes: Tensor, box_indices: Tensor, crop_size: Sequence[int], layout: str = "NCHW", method: str = "bilinear",
    extrapolation_value: float | None = None, out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """Boxes (y, x of two corners, from 0 to 1) of pictures in one size."""
    return one(
        "image.crop_and_resize", data, boxes, box_indices, crop_size=[int(n) for n in crop_size], layout=layout, method=method,
        extrapolation_value=0.0 if extrapolation_value is None else extrapolation_value, out_dtype=out_dtype or "",
    )  # fmt: skip


def affine_grid(data: Tensor, target_shape: Sequence[int]) -> Tensor:
    """The places that affine maps (batches of 2 by 3) take the pixels of a picture of this size to."""
    return one("image.affine_grid", data, target_shape=[int(n) for n in target_shape])


def grid_sample(
    data: Tensor,
    grid: Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:
    """Pictures (or volumes) at places from -1 to 1."""
    return one(
        "image.grid_sample",
        data,
        grid,
        method=method,
        layout=layout,
        padding_mode=padding_mode,
        align_corners=align_corners,
    )


def _dilated(
    input: Tensor,
    filter: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilations: Sizes,
    out_dtype: str | None,
    layouts: tuple[str, str],
) -> Tensor:
    sides = per_axis(padding, 2)
    return one(
        "image.dilation2d", input, filter, strides=per_axis(stride, 2), padding=sides if len(sides) == 4 else [*sides, *sides],
        dilations=per_axis(dilations, 2), data_layout=layouts[0], kernel_layout=layouts[1], out_dtype=out_dtype or "",
    )  # fmt: skip


def dilation2d_nchw(
    input: Tensor, filter: Tensor, stride: Sizes, padding: Sizes, dilations: Sizes, out_dtype: str | None = None
) -> Tensor:
    """The largest sum of elements and a window (IHW) at each place of NCHW."""
    return _dilated(input, filter, stride, padding, dilations, out_dtype, ("NCHW", "IHW"))


def dilation2d_nhwc(
    input: Tensor, filter: Tensor, stride: Sizes, padding: Sizes, dilations: Sizes, out_dtype: str | None = None
) -> Tensor:
    """The largest sum of elements and a window (HWI) at each place of NHWC."""
    return _dilated(input, filter, stride, padding, dilations, out_dtype, ("NHWC", "HWI"))


# ----------------------------------------------------------------------------------------------------------------- boxes


def get_valid_counts(
    data: Tensor, score_threshold: object = 0, id_index: int = 0, score_index: int = 1
) -> list[Tensor]:
    """How many boxes have a score above a threshold; these, at the front; their places before."""
    return several("vision.get_valid_counts", data, score_threshold, id_index, score_index)


def non_max_suppression(
    data: Tensor, valid_count: Tensor, indices: Tensor, max_output_size: object = -1, iou_threshold: object = 0.5, force_suppress: bool = False,
    top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Tensor | list[Tensor]:  # fmt: skip
    """The boxes that do not lie on better ones: they, or their places and how many there are."""
    made = several(
        "vision.non_max_suppression", data, valid_count, indices, max_output_size, iou_threshold, bool(force_suppress), top_k, coord_start, score_index,
        id_index, bool(return_indices), bool(invalid_to_bottom),
    )  # fmt: skip
    return made if return_indices else made[0]


def all_class_non_max_suppression(
    boxes: Tensor, scores: Tensor, max_output_boxes_per_class: object, iou_threshold: object, score_threshold: object,
    output_format: str = "onnx",
) -> list[Tensor]:  # fmt: skip
    """For each class the boxes that do not lie on better ones."""
    return several(
        "vision.all_class_non_max_suppression",
        boxes,
        scores,
        max_output_boxes_per_class,
        iou_threshold,
        score_threshold,
        output_format,
    )


def reorg(data: Tensor, stride: int) -> Tensor:
    """Pixels as channels, in the order of YOLO."""
    return one("vision.yolo_reorg", data, stride=stride)


_MODES = {"avg": "avg", b"avg": "avg", 0: "avg", "max": "max", b"max": "max", 1: "max"}


def _aligned(
    data: Tensor, rois: Tensor, pooled_size: Sizes, spatial_scale: float, mode: object, sample_ratio: int, layout: str
) -> Tensor:
    if mode not in _MODES:
        raise ExpressionError(f"roi_align has no mode {mode!r}", "avg, max")
    return one(
        "vision.roi_align", data, rois, pooled_size=per_axis(pooled_size, 2), spatial_scale=spatial_scale, sample_ratio=sample_ratio,
        layout=layout, mode=_MODES[mode],
    )  # fmt: skip


def roi_align_nchw(
    data: Tensor, rois: Tensor, pooled_size: Sizes, spatial_scale: float, mode: object, sample_ratio: int = -1
) -> Tensor:
    """Regions of NCHW (batch, and two corners) in one size, by samples between pixels."""
    return _aligned(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NCHW")


def roi_align_nhwc(
    data: Tensor, rois: Tensor, pooled_size: Sizes, spatial_scale: float, mode: object, sample_ratio: int = -1
) -> Tensor:
    """Regions of NHWC (batch, and two corners) in one size, by samples between pixels."""
    return _aligned(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NHWC")


def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: Sizes, spatial_scale: float) -> Tensor:
    """The largest elements of parts of regions of NCHW (batch, and two corners)."""
    return one("vision.roi_pool", data, rois, pooled_size=per_axis(pooled_size, 2), spatial_scale=spatial_scale)


def multibox_prior(
    data: Tensor, sizes: Sequence[float] = (1,), ratios: Sequence[float] = (1,), steps: Sequence[float] = (-1, -1),
    offsets: Sequence[float] = (0.5, 0.5), clip: bool = False,
) -> Tensor:  # fmt: skip
    """Boxes of some sizes and ratios around each pixel."""
    return one(
        "vision.multibox_prior", data, sizes=tuple(map(float, sizes)), ratios=tuple(map(float, ratios)), steps=tuple(map(float, steps)),
        offsets=tuple(map(float, offsets)), clip=clip,
    )  # fmt: skip


def multibox_transform_loc(
    cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: bool = True, threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2), keep_background: bool = False,
) -> list[Tensor]:  # fmt: skip
    """Boxes by class, score and place, of the most probable classes; how many are valid."""
    return several(
        "vision.multibox_transform_loc", cls_prob, loc_pred, anchor, clip=clip, threshold=threshold, variances=tuple(variances),
        keep_background=keep_background,
    )  # fmt: skip


def multibox_detection(
    cls_prob: Tensor, loc_preds: Tensor, anchors: Tensor, clip: bool = True, threshold: float = 0.01, nms_threshold: float = 0.5,
    force_suppress: bool = False, variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2), nms_topk: int = -1,
) -> Tensor:  # fmt: skip
    """`multibox_transform_loc`, then the boxes that do not lie on better ones."""
    boxes, count = multibox_transform_loc(cls_prob, loc_preds, anchors, clip, threshold, variances)
    made = several(
        "vision.non_max_suppression",
        boxes,
        count,
        count,
        -1,
        nms_threshold,
        bool(force_suppress),
        nms_topk,
        2,
        1,
        0,
        False,
        False,
    )
    return made[0]
