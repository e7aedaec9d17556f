"""Counts of elements."""

from __future__ import annotations

from compassc.layers.declare import Attribute, layer_type
from compassc.layers.families.counting.reference import count, in_top_k, zero_fraction

layer_type(
    "InTopK",
    summary="Whether the target is among the k best predictions.",
    use="rare",
    inputs="predictions, targets",
    attributes=(Attribute("k", "int", "how many"),),
    float=in_top_k,
    quantised=in_top_k,
    notes="Predictions equal to the target's do not push it out.",
)
layer_type(
    "ZeroFraction",
    summary="The part of the elements that is 0.",
    use="rare",
    attributes=(Attribute("output_scale", "int", "what all elements stand for", form="quantised"),),
    float=zero_fraction,
    quantised=zero_fraction,
    notes="Of the whole tensor, or of each image of a batch, by the shape of the output.",
)
layer_type(
    "Count",
    summary="How many elements of each row lie in each of equal ranges.",
    use="rare",
    attributes=(
        Attribute("nbins", "int", "ranges"),
        Attribute("min", "float", "where the first begins"),
        Attribute("max", "float", "where the last ends"),
        Attribute("discrete", "flag", "the end of the last range is part of it", "true"),
    ),
    float=count,
    no_integers="the zero point of its result is not that of its counts; keep the layer in floats",
    notes="The form without `nbins`, whose result has a size that follows from values, is refused.",
)
