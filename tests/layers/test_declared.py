"""What is declared of each layer type is whole: a reference or a refusal, kernels where they are claimed, a page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.gbuilder.build import GraphOptions, build_in_memory
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.build import GraphBuilder
from compassc.graph.dtypes import numpy_dtype
from compassc.layers import docs, layer_checks
from compassc.layers.declare import all_types, evaluate
from compassc.layers.kernels import BUILDERS, STEPS, kernel_of, load_kernels
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.support import DTYPES, SHAPES, forms_of
from tests.choosing import some

FOLDER = Path(__file__).parents[2] / "docs" / "layers"
TYPES = all_types()


def with_kernels() -> list[str]:
    load_kernels()
    return sorted({*STEPS, *BUILDERS})


APART = """
from compassc.layers import kernels
from compassc.layers.declare import LAYER_TYPES
from compassc.layers.families import FAMILY_OF, TYPES

def registered(family):
    tables = (kernels.STEPS, kernels.WORD_STEPS, kernels.BUILDERS, kernels.FORM_BUILDERS, kernels.SCHEDULED)
    names = [name for name, home in FAMILY_OF.items() if home == family]
    return [(name, name in LAYER_TYPES, name in kernels.WITH_TAIL, *map(str, (t.get(name) for t in tables))) for name in names]

found = {}
for family in TYPES:
    kernels.load_family(family)
    found[family] = registered(family)
kernels.load_kernels()
print([family for family, had in found.items() if had != registered(family)])
"""


def test_a_family_registers_all_kernels_of_its_types():
    """So that whoever needs the kernels of a type loads its family alone."""
    assert subprocess.run([sys.executable, "-c", APART], check=True, capture_output=True, text=True).stdout == "[]\n"


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return docs.pages()


def test_committed_pages_are_up_to_date(made):
    kept = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    assert not stale, f"run `make docs` and commit docs/layers: {', '.join(stale)}"


def test_links_of_the_index_exist(made):
    assert set(re.findall(r"\]\(([^)]+)\)", made["README.md"])) == made.keys() - {"README.md"}


def test_types_of_other_names_are_not_asked_for_their_kernels(monkeypatch):
    """Making all kernels takes seconds."""
    asked = []
    monkeypatch.setattr(docs, "kernels_in_words", lambda declared: asked.append(declared.name) or "")
    assert docs.table("no such type") == [] and not asked
    assert sorted(row.name for row in docs.table("depthwise")) == sorted(asked) != []


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_described_and_defined_or_refused(name):
    declared = TYPES[name]
    assert declared.summary.endswith(".")
    assert declared.use in docs.USES
    if declared.refused:
        assert not (declared.float or declared.quantised or name in with_kernels())
        assert len(declared.refused) > 20
        layer = Layer("l", name, [Tensor("x", (1,), "int8")], [Tensor("y", (1,), "int8")])
        with pytest.raises(LayerError, match=re.escape(declared.refused)):
            kernel_of([layer])
        with pytest.raises(LayerError, match=re.escape(declared.refused)):
            evaluate(layer, [np.zeros(1, "int8")])
        return
    assert declared.float or declared.quantised
    listed = [a.name for a in declared.attributes] + [c.name for c in declared.constants]
    assert len(set(listed)) == len(listed)
    assert all(a.doc and a.kind for a in declared.attributes)
    assert all(c.doc and c.shape for c in declared.constants)


def test_every_kernel_is_of_a_declared_type():
    assert set(with_kernels()) <= TYPES.keys()


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_sample_is_drawn_where_there_is_a_kernel(name):
    """Otherwise the pages would say nothing about its forms."""
    assert name in TYPES
    if name in with_kernels() and not any(form.kernel for form in forms_of(TYPES[name])):
        reasons = {form.reason for form in forms_of(TYPES[name])}
        assert reasons != {"it has no such form"}, "no sample of it is valid"


def layers_of(name: str) -> list[Layer]:
    found = []
    for n, (shape, dtype) in enumerate((s, d) for s in SHAPES for d in DTYPES):
        layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", shape, dtype))
        if layer is not None:
            found.append(layer)
    return found[:: max(1, len(found) // 4)]


DAMAGES = ("a word", -7, 2**40, [], [1, 2, 3, 4, 5, 6, 7], None, 0.37, True)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_damaged_layers_are_refused_or_taken_but_never_fail_otherwise(name):
    """One attribute, constant or shape of a valid layer is damaged: its reference and its kernel raise LayerError, or
    take it, when it does not matter."""
    for turn, layer in enumerate(some(layers_of(name))):
        inputs = [np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.inputs]
        for damaged in some(damages(layer, turn)):
            try:
                kernel_of([damaged])
            except LayerError as error:
                assert str(error)
            try:
                evaluate(damaged, inputs)
            except LayerError as error:
                assert str(error)


def damages(layer: Layer, turn: int) -> list[Layer]:
    """Copies of a layer with one damage each; in every turn its attributes have another value."""
    found = []
    for n, key in enumerate(layer.attributes):
        value = DAMAGES[(n + 3 * turn) % len(DAMAGES)]
        found.append((layer.inputs, layer.outputs, {**layer.attributes, key: value}, layer.constants))
    for key, array in layer.constants.items():
        retyped = [array.astype("float32")] if array.dtype != "float32" else []
        for other in (array.reshape(-1)[1:], array[None], *retyped, np.zeros(0, array.dtype)):
            found.append((layer.inputs, layer.outputs, layer.attributes, {**layer.constants, key: other}))
        missing = {k: a for k, a in layer.constants.items() if k != key}
        found.append((layer.inputs, layer.outputs, layer.attributes, missing))
    y = layer.outputs[0]
    for shape in ((*y.shape[:-1], y.shape[-1] + 1) if y.shape else (2,), (), (0, *y.shape[1:])):
        changed = Tensor(y.name, shape, y.dtype, y.scale, y.zero)
        found.append((layer.inputs, [changed, *layer.outputs[1:]], layer.attributes, layer.constants))
    found.append(([], layer.outputs, layer.attributes, layer.constants))
    found.append((layer.inputs, [], layer.attributes, layer.constants))
    return [Layer(layer.name, layer.type, *parts) for parts in found]


def test_types_that_no_kernel_goes_with_are_refused_by_the_layers_name(tmp_path):
    def refused(kind, dtypes, **attributes):
        g = GraphBuilder("net")
        x = g.input("x", (1, 5, 8), dtypes[0])
        made = g.layer(kind, [x], name="bad", outputs=[((1, 5, 8), dtypes[1])], attributes=attributes)
        with pytest.raises(CompassError) as caught:
            build_in_memory(g.finish(made), tmp_path, tmp_path / "aipu.bin", "X2_1204", GraphOptions(work_dir=tmp_path))
        shown = "\n".join((caught.value.message, *map(str, caught.value.notes)))
        assert "'bad'" in shown and kind in shown and dtypes[1] in shown, shown

    refused("Sign", ("float32", "uint8"))
    refused("BNLL", ("uint16", "float32"))
    refused("Square", ("int32", "float16"))
    refused("DeQuantize", ("float16", "float32"))
    refused("Tanh", ("float32", "uint32"))
    refused("Normalization", ("uint8", "float32"), method="L2", axis=[2])


def test_layers_of_unknown_types_are_listed_with_the_reason(tmp_path):
    g = GraphBuilder("net")
    x = g.input("x", (1, 5, 8), "float32")
    for kind in ("FooBar", "HeatmapMaxKeypoint", "NoSuchLayer"):
        (x,) = g.layer(kind, [x], name=f"a {kind}", outputs=[((1, 5, 8), "float32")])
    with pytest.raises(CompassError) as caught:
        build_in_memory(g.finish([x]), tmp_path, tmp_path / "aipu.bin", "X2_1204", GraphOptions(work_dir=tmp_path))
    faults = caught.value.errors  # type: ignore[attr-defined]
    shown = ["\n".join((fault.message, *map(str, fault.notes))) for fault in faults]
    assert [
        f"of type {kind}" in s for kind, s in zip(("FooBar", "HeatmapMaxKeypoint", "NoSuchLayer"), shown, strict=True)
    ] == [True] * 3
    assert "there is no layer type 'FooBar'" in shown[0] and "quadratic fit" in shown[1]


def test_a_reshape_that_contradicts_itself_is_no_view(tmp_path):
    """Views are not computed by kernels, which would refuse them."""
    g = GraphBuilder("net")
    x = g.input("x", (1, 4, 8), "int8")
    (a,) = g.layer("Activation", [x], name="first", outputs=[((1, 4, 8), "int8")], attributes={"method": "RELU"})
    (b,) = g.layer("Reshape", [a], name="bad", outputs=[((1, 8), "float32")], attributes={"shape": [1, 8]})
    made = g.layer("Activation", [b], name="last", outputs=[((1, 8), "float32")], attributes={"method": "RELU"})
    with pytest.raises(CompassError, match="'bad'"):
        build_in_memory(g.finish(made), tmp_path, tmp_path / "aipu.bin", "X2_1204", GraphOptions(work_dir=tmp_path))


def test_a_norm_without_factors_takes_none():
    x, y = Tensor("x", (1, 6, 8), "float32"), Tensor("y", (1, 6, 8), "float32")
    more = {"weights": np.ones(8, np.float32)}
    plain, given = (Layer("n", "MVN", (x,), (y,), {"axis": [1]}, c) for c in ({}, more))
    assert kernel_of([plain]).text == kernel_of([given]).text


def test_a_layer_is_looked_at_once_and_again_when_it_has_other_values(monkeypatch):
    looked, check = [], layer_checks._check
    monkeypatch.setattr(layer_checks, "_check", lambda declared, layer: (looked.append(layer), check(declared, layer)))
    attributes, x = dict[str, object](axis=1), np.ones((1, 4), np.float32)
    layer = Layer("l", "Softmax", (Tensor("x", (1, 4), "float32"),), (Tensor("y", (1, 4), "float32"),), attributes)
    for _ in range(3):
        evaluate(layer, [x])
    assert len(looked) == 1
    attributes["axis"] = "last"
    for _ in range(2):
        with pytest.raises(LayerError, match="'axis'"):
            evaluate(layer, [x])
    assert len(looked) == 3, "a layer that is wrong is so every time"
