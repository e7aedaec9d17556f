"""Shapes that follow from inputs and attributes are those that the references make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compassc.graph import Layer, Tensor, read
from compassc.graph.graph import SOURCES
from compassc.layers import shapes
from compassc.layers.declare import all_types
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.shapes import shapes_of
from compassc.layers.support import DTYPES, SHAPES
from tests.choosing import some

KNOWN = sorted((Path(__file__).parents[1] / "data" / "graphs").glob("*/*.txt"))
DECLARED = (shapes.reshape, shapes.pooling)
"""Rules that ask the declared shape where attributes leave something open."""


def samples(name: str) -> list[Layer]:
    found = []
    for n, (shape, dtype) in enumerate((s, d) for s in SHAPES for d in DTYPES[::4]):
        layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", shape, dtype))
        if layer is not None:
            found.append(layer)
    return found


def forgotten(layer: Layer) -> Layer:
    """The layer with outputs of other shapes."""
    return replace(layer, outputs=tuple(replace(t, shape=(7, 1, 3)) for t in layer.outputs))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_samples_have_the_shapes_that_follow(name):
    rule = shapes.rule_of(all_types()[name])
    for layer in some(samples(name)):
        found = shapes_of(layer)
        assert found in (None, [t.shape for t in layer.outputs]), layer
        if found is not None and rule not in DECLARED:
            assert shapes_of(forgotten(layer)) == found


@pytest.mark.parametrize("path", KNOWN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_known_graphs_have_the_shapes_that_follow(path):
    for layer in some(read(path.read_text(), path.with_suffix(".bin").read_bytes()).computing()):
        assert shapes_of(layer) in (None, [t.shape for t in layer.outputs]), layer.name


def test_few_types_tell_nothing():
    unknown = [
        t.name
        for t in all_types().values()
        if not t.refused and shapes.rule_of(t) is shapes.unknown and t.name not in SOURCES
    ]
    assert len(unknown) < 0.3 * len(all_types()), unknown


def test_defaults_are_values_of_their_kind():
    for declared in all_types().values():
        for attribute in declared.attributes:
            if attribute.value is not None:
                assert attribute.fault(attribute.value) == "", (declared.name, attribute)
    convolution = {a.name: a for a in all_types()["Convolution"].attributes}
    assert (convolution["dilation_x"].value, convolution["kernel_x"].value) == (1, None)
    assert convolution["with_activation"].value == "NONE"
    assert convolution["pad_left"].fault("wide") == "a whole number"
