"""Regions and samples of images: places are integers of 16 bits, values keep their scale."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.arithmetic import quantise
from compassc.layers.families.regions.fixed import PART, nearest_numbers, reach
from compassc.layers.families.regions.reference import (
    AVERAGES,
    LEVELS,
    NORMALISED_LEVELS,
    pair,
    pooled_shape,
    pyramid_numbers,
    samples,
)
from compassc.layers.families.sampling.affine import points, sizes_of
from compassc.layers.families.sampling.reference import letters_of
from compassc.quantizer.job import Job, NotQuantised, scale_of
from compassc.quantizer.numbers import Factor, factor
from compassc.quantizer.rules import rule

F32 = np.float32
FRACTION = 10
"""Fraction bits of places in regions."""
COARSEST = 0.25
"""How far ends of regions may be off, in pixels of the map."""


def _listed(factors: list[Factor], prefix: str = "") -> dict[str, Value]:
    """The keys of a layer that holds several factors as lists."""
    return {
        f"{prefix}scale_value": [int(f.multiplier) for f in factors],
        f"{prefix}scale_type": [f.type for f in factors],
        f"{prefix}shift_value": [int(f.shift) for f in factors],
        f"{prefix}shift_type": ["int8"] * len(factors),
    }


def _wide(t: Tensor, what: str) -> Tensor:
    if t.integer.bits != 16:
        raise NotQuantised(f"its {what} have {t.integer.bits} bits, expected 16")
    return t


@rule("GridSample")
def grid_sample(job: Job) -> Layer:
    """Coordinates have as many fraction bits as the range of the grid's type leaves of 16."""
    x, grid = job.inputs[0], _wide(job.inputs[1], "coordinates")
    most = max(abs(grid.integer.low + grid.scalar_zero), abs(grid.integer.high + grid.scalar_zero))
    factors, attributes = [], dict[str, Value]()
    for i, letter in enumerate(letters_of(x.shape, grid.shape)):
        size = x.shape[-2 - i]
        reach = F32(size - 1 if job.layer.flag("align_corners", False) else size) / scale_of(grid) / F32(2)
        farthest = float(most * reach) + (size - 1) / 2
        fraction = 15 - int(np.floor(np.log2(max(farthest, 1))) + 1)
        if fraction < 1:
            raise NotQuantised(f"places along {letter} go to {farthest:.0f}, which leaves no bits between pixels")
        factors.append(factor(reach * F32(1 << fraction), 15))
        attributes[f"coordinate_{letter}_shift"] = fraction
    if min(int(f.shift) for f in factors) < 0:
        raise NotQuantised("its coordinates are too large")
    return job.made(job.as_input(), {**attributes, **_listed(factors)})


@rule("AffineGrid")
def affine_grid(job: Job) -> Layer:
    theta = job.input
    if theta.zero:
        raise NotQuantised("its maps have a zero point")
    _, sizes = sizes_of(job.layer)
    bits = int(np.clip(np.ceil(np.log2(max(sizes))) + 1, 8, 14))
    out = job.output(True)
    tables = {
        f"{a}_lut": np.rint(points(job.layer, n) * F32(1 << bits)).astype(np.int16)
        for a, n in zip("dhw"[-len(sizes) :], sizes, strict=True)
    }
    made = factor(scale_of(out) / (scale_of(theta) * F32(1 << bits)), job.bits)
    return job.made(out, {**made.attributes(), "multiplier_bits": bits}, tables)


def _summed(layer: Layer) -> int:
    """Points of a cell whose values are added up: 1 where they are compared, or where their mean is taken."""
    count, maximum = samples(layer), layer.type == "RoiAlign" and layer.word("method", "AVG", AVERAGES) == "MAX"
    return 1 if maximum or 0 in count else count[0] * count[1]


@rule("RoiAlign")
def roi_align(job: Job) -> Layer:
    layer, (x, rois) = job.layer, job.inputs
    count, spatial = samples(layer), pair(layer, "spatial_scale_value", [1.0])
    if max(spatial) > COARSEST:
        raise NotQuantised(f"its regions are cut to whole numbers, which is too coarse at a scale of {max(spatial):g}")
    out, shape = job.as_input(), pooled_shape(layer)
    fine = max(12, job.bits)
    values = factor(F32(1) / F32(_summed(layer)), x.integer.bits)
    attributes = {
        "spatial_scale_value": [round(s * (1 << FRACTION)) for s in spatial],
        "spatial_shift_value": FRACTION,
        **_listed([values, factor(F32(1) / scale_of(rois), rois.integer.bits)]),
        **_listed([factor(F32(1) / F32(n), fine) for n in shape], "bin_"),
    }
    if 0 not in count:
        attributes |= _listed([factor(F32(1) / F32(2 * n), fine) for n in count], "grid_")
    return job.made(out, attributes)


@rule("MaxRoiPool")
def max_roi_pool(job: Job) -> Layer:
    """`spatial` has 16 fraction bits and holds the scale of the regions, too."""
    rois = job.inputs[1]
    exact = [s / float(scale_of(rois)) * (1 << 16) for s in pair(job.layer, "spatial", [1.0])]
    spatial = [round(s) for s in exact]
    most = max(abs(rois.low + rois.scalar_zero), abs(rois.high + rois.scalar_zero))
    off = max(abs(s - e) for s, e in zip(spatial, exact, strict=True)) * most / (1 << 16)
    if off > COARSEST or max(spatial) * most >= 1 << 30:
        raise NotQuantised(f"with the scale {rois.scalar_scale:g} its regions would be {off:.2f} pixels off")
    return job.made(job.as_input(), {"spatial": spatial})


@rule("CropAndResize")
def crop_and_resize(job: Job) -> Layer:
    x, boxes = job.inputs[:2]
    value = np.asarray(job.layer.number("extrapolation_value", 0.0), F32)
    whole = int(quantise(value, x.scalar_scale, x.scalar_zero, x.low, x.high))
    if abs((whole + x.scalar_zero) / x.scalar_scale - float(value)) > 1 / x.scalar_scale:
        raise NotQuantised(f"its 'extrapolation_value' {float(value):g} lies outside the range of its input")
    own = factor(F32(1) / scale_of(boxes), PART).attributes()
    return job.made(job.as_input(), {**own, "extrapolation_value": whole})


@rule("ROIPooling")
def roi_pooling(job: Job) -> Layer:
    made = job.made(job.as_input())
    y, x = nearest_numbers(made).pixels
    return job.made(made.output, {"y_index_scale": y, "x_index_scale": x})


FINEST = 10
"""Fraction bits of places in pyramids."""


@rule("PyramidROIAlign")
def pyramid(job: Job) -> Layer:
    """Each map has a factor to the scale of the result; places in pixels have as many fraction bits as sums leave."""
    layer, boxes, maps = job.layer, job.inputs[0], job.inputs[1:]
    out = job.output(maps[0].integer.signed)
    if len({t.dtype for t in (out, *maps)}) > 1:
        raise NotQuantised(f"its maps become {', '.join(t.dtype for t in maps)}, and its result {out.dtype}")
    normalised = layer.flag("proposal_normalized", False)
    areas = [int(np.ceil(v * boxes.scalar_scale**2)) for v in (NORMALISED_LEVELS if normalised else LEVELS)]
    many = 1 if normalised else _summed(layer)
    results = [factor(scale_of(out) / (scale_of(m) * F32(many)), 16) for m in maps]
    attributes: dict[str, Value] = {"levels": areas, **_listed(results)}
    if normalised:
        own = factor(F32(1) / scale_of(boxes), PART)
        return job.made(out, {**attributes, "input_scale": int(own.multiplier), "input_shift": int(own.shift)})
    sides, sums = max(n for m in maps for n in m.shape[1:3]), max(reach(m) for m in maps) * many
    bits = min(FINEST, int(np.log2(65535 / sides)), int(np.log2((2**31 - 1) / sums)))
    if bits < 4:
        raise NotQuantised(f"sums of {many} points of maps of {sides} pixels leave {bits} bits between pixels")
    spatial = [factor(F32(s * (1 << bits)) / scale_of(boxes), 16) for s in pyramid_numbers(layer)[1]]
    places = {"input_scale": [int(f.multiplier) for f in spatial], "input_shift": [int(f.shift) for f in spatial]}
    return job.made(out, {**attributes, **places, "spatial_shift": bits})
