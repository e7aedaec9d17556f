"""Which forms of a layer type have kernels, found by asking for the kernels of small layers."""

from __future__ import annotations

from functools import cache

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.graph import LayerError, Tensor
from compassc.layers.declare import LayerType
from compassc.layers.kernels import BUILDERS, STEPS, kernel_of, load_kernels_of
from compassc.layers.samples import SAMPLES, Draw, drawn

DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16")
SHAPES = ((1, 4, 4, 8), (1, 3, 8), (2, 8), (8,), (1, 2, 4, 4, 8))
TRIES = 3


WITHOUT_KERNEL = {"Input": "whoever runs the program writes it"}
"""Types that need no kernel, and why."""
_COUNTED = "how many results there are before an element follows from the values"
_OVERLAPS = "each box that is kept decides about those behind it"
BY_ELEMENT = {
    **dict.fromkeys(
        (
            "AccidentalHits",
            "Compress",
            "CTCGreedyDecoder",
            "CollapseRepeated",
            "Filter",
            "FilterBoxes",
            "GetValidCount",
            "Where",
            "Select",
            "Repeat",
            "RegionFuse",
        ),
        _COUNTED,
    ),
    **dict.fromkeys(
        ("NMS", "PostNMS1", "PostNMS2", "GenerateProposals", "DetectionOutput", "DecodeBox", "Proposal"), _OVERLAPS
    ),
    **dict.fromkeys(
        ("BoundingBox", "MultiboxTransformLoc", "Region", "RefineDetDetection"),
        "a box has four numbers, which are stored one by one",
    ),
    **dict.fromkeys(("Count", "InTopK", "ZeroFraction"), "one result for many elements; bins are found by the values"),
    **dict.fromkeys(
        ("MaxUnpool", "UpsampleByIndex", "ScatterElements", "ScatterND"),
        "later updates of a place come after earlier ones, and places are known when the graph runs",
    ),
    **dict.fromkeys(
        ("Gather", "GatherElements", "GatherND", "ReverseSequence"),
        "rows of fewer elements than a transfer is worth are copied one by one",
    ),
    **dict.fromkeys(("Sort", "TopK"), "one result after the other is found, each by comparisons of whole vectors"),
    "Cumulate": "along a single row each sum goes on from the one before",
    "FractionalPool": "the boundaries of windows are a few numbers",
    "Slice": "with steps that are inputs, the distance of elements is known when the graph runs",
    "StridedSlice": "with steps that are inputs, the distance of elements is known when the graph runs",
    "YuvToRgb": "the ends of a row are doubled",
}
"""Types some forms of which go element by element, and why; all others work on whole vectors."""


def has_kernel(name: str) -> bool:
    """Whether some layers of a type have kernels."""
    load_kernels_of(name)
    return name in STEPS or name in BUILDERS


class Form(NamedTuple):
    """Whether a type has a kernel for inputs of a data type; if not, why."""

    dtype: str
    kernel: bool
    reason: str = ""


@cache
def forms_of(declared: LayerType) -> tuple[Form, ...]:
    """The forms of a layer type by the data type of its first input; empty when no sample of it is known."""
    if declared.refused or declared.name not in SAMPLES:
        return ()
    return tuple(_form(declared.name, dtype) for dtype in DTYPES)


def _form(name: str, dtype: str) -> Form:
    reason = "it has no such form"
    for n, shape in enumerate(SHAPES * TRIES):
        source = np.random.default_rng(n)
        layer = drawn(Draw(source), name, Tensor("x", shape, dtype))
        if layer is None:
            continue
        try:
            kernel_of([layer])
            return Form(dtype, True)
        except LayerError as error:
            # without what the sample is like
            reason = str(error.__cause__ if isinstance(error.__cause__, LayerError) else error)
    return Form(dtype, False, reason)
