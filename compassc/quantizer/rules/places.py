"""Regions and samples of images: places are integers of 16 bits, values keep their scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.layers.families.regions.reference import pair, pooled_shape, samples
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


def _listed(factors: list[Factor], prefix: str = "") -> dict[str, Any]:
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
    factors, attributes = [], dict[str, Any]()
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


@rule("RoiAlign")
def roi_align(job: Job) -> Layer:
    layer, (x, rois) = job.layer, job.inputs
    count, spatial = samples(layer), pair(layer, "spatial_scale_value", [1.0])
    if 0 in count:
        raise NotQuantised("it takes as many points as a region has pixels ('sample' is 0)")
    if max(spatial) > COARSEST:
        raise NotQuantised(f"its regions are cut to whole numbers, which is too coarse at a scale of {max(spatial):g}")
    out, shape = job.as_input(), pooled_shape(layer)
    fine = max(12, job.bits)
    values = factor(F32(1) / F32(count[0] * count[1]), x.integer.bits)
    attributes = {
        "spatial_scale_value": [round(s * (1 << FRACTION)) for s in spatial],
        "spatial_shift_value": FRACTION,
        **_listed([values, factor(F32(1) / scale_of(rois), rois.integer.bits)]),
        **_listed([factor(F32(1) / F32(n), fine) for n in shape], "bin_"),
        **_listed([factor(F32(1) / F32(2 * n), fine) for n in count], "grid_"),
    }
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
