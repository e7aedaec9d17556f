"""Layers that take places in images: 8 bits are too few for these, and so are half floats."""

from __future__ import annotations

from dataclasses import replace
from glob import escape
from typing import Any

from compassc.graph import Graph
from compassc.quantizer.rules.moves import MOVES
from compassc.quantizer.settings import LayerSettings, Settings

TAKEN: dict[str, tuple[int, ...]] = {
    "GridSample": (1,), "RoiAlign": (1,), "MaxRoiPool": (1,), "AffineGrid": (0,), "NMS": (0,), "FilterBoxes": (0,),
    "CropAndResize": (1,), "ROIPooling": (1,), "PyramidROIAlign": (0,), "GenerateProposals": (1, 2),
    "DetectionOutput": (2,), "BoundingBox": (0,),
}  # fmt: skip
"""The inputs that are places, or that places follow from, by layer type."""
OF_PLACES = frozenset(
    "NMS DecodeBox FilterBoxes GetValidCount RoiAlign MaxRoiPool GridSample AffineGrid DetectionOutput BoundingBox "
    "MultiboxTransformLoc Proposal GenerateProposals Region RegionFuse PostNMS1 PyramidROIAlign ROIPooling CropAndResize".split()
)
"""Types that stay float32 where others without integers become half floats."""
WIDE: dict[str, Any] = {
    "activation_bits": 16,
    "table_bits": 0,
    "force_signed": True,
    "activation_strategy": "extrema",  # places lie in the image, and are cut to whole numbers: whole ones are to stay so
}


def wide_places(graph: Graph, settings: Settings) -> Settings:
    """The settings with 16 bits for the layers that make places, so far as nothing else is said of these by name."""
    producer, moves, found = graph.producer(), MOVES.split(), []
    for layer in graph.layers:
        for index in TAKEN.get(layer.type, ()):
            if index >= len(layer.inputs) or settings.of(layer).float:
                continue
            made = producer[layer.inputs[index].name]
            found.append(made.name)
            while made.type in moves:
                made = producer[made.inputs[0].name]
                found.append(made.name)
    return replace(settings, layers=(*((escape(name), WIDE) for name in dict.fromkeys(found)), *settings.layers))


def of_input(type: str, index: int, settings: LayerSettings) -> LayerSettings:
    """The settings by which an input of a layer becomes integers."""
    return replace(settings, **WIDE) if index in TAKEN.get(type, ()) else settings
