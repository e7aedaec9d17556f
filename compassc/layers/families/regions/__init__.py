"""Layers that sample parts of feature maps: regions of interest, crops, pyramids."""

from __future__ import annotations

from compassc.layers.declare import Attribute, layer_type
from compassc.layers.families.regions.fixed import (
    quantised_crop_and_resize,
    quantised_pyramid,
    quantised_roi_pooling,
)
from compassc.layers.families.regions.reference import (
    AVERAGES,
    CROPS,
    MODES,
    crop_and_resize,
    max_roi_pool,
    pyramid_roi_align,
    quantised_max_roi_pool,
    quantised_roi_align,
    roi_align,
    roi_pooling,
)

MODE = Attribute("coordinate_transformation_mode", "word", ", ".join(MODES), "HALF_PIXEL")
layer_type(
    "RoiAlign",
    summary="Regions of a feature map in one size, interpolated.",
    use="sometimes",
    inputs="x, regions (image, y0, x0, y1, x1)",
    attributes=(
        Attribute("pooled_shape", "ints", "rows and columns of a region's result"),
        Attribute("sample", "ints", "points of a cell along y and x; 0: as many as it has pixels, up to 1024", "0"),
        Attribute(
            "spatial_scale_value", "floats", "pixels of the map for one of the regions' units, along y and x", "1"
        ),
        Attribute(
            "spatial_shift_value", "int", "fraction bits of `spatial_scale_value`", "10", "quantised", lambda layer: 10
        ),
        Attribute("method", "word", ", ".join(AVERAGES), "AVG"),
        MODE,
        Attribute("scale_value", "ints", "multipliers of the result and of the regions", form="quantised"),
        Attribute("shift_value", "ints", "their shifts", form="quantised"),
        *(
            Attribute(f"{n}_{k}_value", "ints", f"{k} of a {n}'s size along y and x", form="quantised")
            for n in ("bin", "grid")
            for k in ("scale", "shift")
        ),
    ),
    float=roi_align,
    quantised=quantised_roi_align,
    notes="Points more than a pixel outside of the map count as 0. Regions of a negative size (HALF_PIXEL) and of images "
    "that are not there are 0. Quantised, `spatial_scale_value` has ten fraction bits; with `sample` 0 the mean of each row of points, and that of the "
    "rows, lose what is beyond three fraction bits.",
)
layer_type(
    "MaxRoiPool",
    summary="Maxima over the parts of regions.",
    use="sometimes",
    inputs="x, regions (image, y0, x0, y1, x1)",
    attributes=(
        Attribute("pooled_shape", "ints", "rows and columns of a region's result"),
        Attribute("spatial", "floats", "pixels of the map for one of the regions' units; quantised with 16 bits", "1"),
    ),
    float=max_roi_pool,
    quantised=quantised_max_roi_pool,
    notes="Parts without pixels are 0.",
)
layer_type(
    "CropAndResize",
    summary="Regions of images in one size.",
    use="sometimes",
    inputs="x, boxes (y0, x0, y1, x1 from 0 to 1), images",
    attributes=(
        Attribute("crop_size", "ints", "rows and columns of a region's result"),
        Attribute("method", "word", ", ".join(CROPS), "BILINEAR"),
        Attribute("extrapolation_value", "float", "what lies outside; quantised as an integer of the output", "0"),
        Attribute("scale_value", "int", "multiplier that brings boxes to parts of the image", form="quantised"),
        Attribute("shift_value", "int", "its shift", form="quantised"),
    ),
    float=crop_and_resize,
    quantised=quantised_crop_and_resize,
    notes="Quantised, places have the bits of the boxes, their distance eight more; weights have up to 15 fraction bits, and "
    "each of the three products with one is rounded down. Elements keep their steps.",
)
layer_type(
    "PyramidROIAlign",
    summary="Regions of the levels of a pyramid in one size, interpolated.",
    use="sometimes",
    inputs="boxes (y0, x0, y1, x1), four maps",
    attributes=(
        Attribute("resize_height", "int", "rows of a region's result"),
        Attribute("resize_width", "int", "columns of a region's result"),
        Attribute("image_height", "measure", "rows of the image; floats do not need them", "none"),
        Attribute("image_width", "measure", "columns of the image; floats do not need them", "none"),
        Attribute("sample", "ints", "points of a cell; 0: as many as it has pixels, up to 1024", "0"),
        Attribute("spatial_scale_value", "floats", "pixels of each map for one of the boxes' units", "1"),
        Attribute("proposal_normalized", "flag", "boxes are parts of the image; their corners are aligned", "false"),
        Attribute("coordinate_transformation_mode", "word", ", ".join(MODES), "OUTPUT_HALF_PIXEL"),
        Attribute("levels", "ints", "areas from which on the next level is taken", "by the boxes' scale", "quantised"),
        Attribute("input_scale", "ints", "multipliers of boxes by level; of parts of the image one", "1", "quantised"),
        Attribute("input_shift", "ints", "their shifts; of parts of the image the next one", "that one", "quantised"),
        Attribute("box_input_qvalue", "int", "bits of parts of the image", "by the boxes' scale", "quantised"),
        Attribute(
            "spatial_shift", "int", "fraction bits of places in pixels", "none of parts of the image", "quantised"
        ),
        Attribute("scale_value", "ints", "multiplier of the result, or one for each level", "1", "quantised"),
        Attribute("shift_value", "ints", "its shift, or their shifts", "0", "quantised"),
    ),
    float=pyramid_roi_align,
    quantised=quantised_pyramid,
    notes="Quantised, the maps have one data type, which the result has, too; each may have its own steps. The places of points "
    "are one quotient, rounded down; a product of two weights loses as many bits as one has.",
)
layer_type(
    "ROIPooling",
    summary="Regions of a feature map in one size, nearest.",
    use="sometimes",
    inputs="x, boxes (y0, x0, y1, x1 from 0 to 1)",
    attributes=tuple(
        Attribute(
            f"{a}_index_scale", "int", f"{n} of 255 steps over the cells, times 2^15", "by the sizes", "quantised"
        )
        for a, n in (("y", "rows"), ("x", "columns"))
    ),
    float=roi_pooling,
    quantised=quantised_roi_pooling,
    notes="Quantised, boxes are brought to 255 steps, to the nearest. Elements keep their steps.",
)
