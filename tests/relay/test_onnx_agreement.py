"""Drawn operators of ONNX as layers and as expressions: each is what ONNX's reference or ONNX Runtime computes, or refused."""

from contextlib import suppress

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors

from compass_core.reading.budget import Budget
from compassc import onnx_backend, relay
from compassc.importers.onnx.folding import evaluate
from compassc.importers.onnx.names import ELEMENTWISE
from compassc.importers.refusals import RefusedModel
from tests.choosing import some
from tests.importers.drawn_operators import DRAWN, Draw, Drawn, element, ints, model_of
from tests.relay.onnx_programs import values_of

SEEDS = 12
NOT_THERE = (
    runtime_errors.Fail,
    runtime_errors.InvalidArgument,
    runtime_errors.InvalidGraph,
    runtime_errors.NotImplemented,
)
"""What ONNX Runtime raises for forms that it lacks."""
CLOSE = 3e-4
ROW, PICTURE = np.zeros((1, 4), np.float32), np.zeros((1, 4, 4, 4), np.float32)
SCHEMAS = {name: onnx.defs.get_schema(name) for name in ELEMENTWISE}
FIRST: dict[str, int] = {}
for schema in onnx.defs.get_all_schemas_with_history():
    if schema.domain == "":
        FIRST[schema.name] = min(schema.since_version, FIRST.get(schema.name, schema.since_version))
ELEMENTS = {name: element(name, list(e.attributes), e.inputs, max(FIRST[name], 8)) for name, e in ELEMENTWISE.items()}


def by_runtime(model, given):
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
    return session.run(None, given)


def expected(model, given):
    """What the reference and the runtime make, those of them that know the form."""
    found = []
    for make in (by_runtime, lambda m, g: ReferenceEvaluator(m).run(None, g)):
        with suppress(Exception):  # the other one may know it
            found.append(make(model, given))
    return found


def as_layers(model, given):
    return onnx_backend.prepare(model, onnx_backend.REFERENCE).run(list(given.values()))


def as_expressions(model, given):
    module, _ = relay.frontend.from_onnx(model)
    return values_of(relay.create_executor("debug", module).evaluate()(*given.values()))


def equal(got, want, step):
    return len(got) == len(want) and all(
        g.shape == w.shape
        and g.dtype == w.dtype
        and np.allclose(g.astype(float), w.astype(float), CLOSE, max(CLOSE, step), equal_nan=True)
        for g, w in zip(map(np.asarray, got), map(np.asarray, want), strict=True)
    )


def wrong(draw, seeds):
    """What is computed of drawn operators, and wrong; how many both readers computed."""
    found, both = [], 0
    for seed in range(seeds):
        d = Draw(seed)
        drawn = draw(d)
        model, given = model_of(d, drawn)
        wanted = expected(model, given)
        made = 0
        for make in (as_layers, as_expressions):
            try:
                got = make(model, given)
            except RefusedModel:
                continue
            made += 1
            if wanted and not any(equal(got, w, drawn.step) for w in wanted):
                found.append((seed, make.__name__, drawn.operator, drawn.attributes))
        both += made == 2 and bool(wanted)
    return found, both


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DRAWN)
def test_operators_are_right_or_refused(name):
    found, both = wrong(DRAWN[name], SEEDS)
    assert not found and both > SEEDS / 2


@pytest.mark.parametrize(
    "drawn",
    [
        Drawn("Pad", [ROW, ints(0, -3, 0, -2)]),
        Drawn("TopK", [ROW, ints(5)], outputs=2, since=11),
        Drawn("TopK", [ROW, ints(-3)], outputs=2, since=11),
        Drawn("Tile", [ROW, ints(-1, 1)]),
        Drawn("Split", [ROW, ints(-1, 5)], {"axis": 1}, outputs=2, since=13),
        Drawn("SpaceToDepth", [PICTURE], {"blocksize": -2}),
        Drawn("SpaceToDepth", [PICTURE], {"blocksize": 3}),
        Drawn("DepthToSpace", [PICTURE], {"blocksize": 3}),
    ],
    ids=lambda drawn: f"{drawn.operator}-{drawn.outputs}",
)
def test_what_contradicts_itself_is_refused(drawn):
    model, given = model_of(Draw(0), drawn)
    for make in (as_layers, as_expressions):
        with pytest.raises(RefusedModel):
            make(model, given)


def test_the_logarithm_of_infinite_sums():
    rows = np.float32([[1, np.inf], [-np.inf, -np.inf], [-np.inf, 2]])
    model, given = model_of(Draw(0), Drawn("ReduceLogSumExp", [rows, ints(1)], {"keepdims": 0}, since=18))
    for make in (as_layers, as_expressions):
        np.testing.assert_allclose(make(model, given)[0], [np.inf, -np.inf, 2], rtol=1e-6)


def wrong_at_import(draw):
    """What is computed at import of drawn operators whose inputs are known, and not what ONNX Runtime computes."""
    found = []
    for seed in range(2 * SEEDS):
        d = Draw(seed)
        drawn = draw(d)
        model, given = model_of(d, drawn)
        arrays = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer} | given
        (node,) = model.graph.node
        made = None
        with suppress(Exception):  # what contradicts itself is refused
            opset, budget = model.opset_import[0].version, Budget("drawn", lambda: 1000)
            made = evaluate(node, [arrays.get(i) for i in node.input], opset, budget)
        with suppress(*NOT_THERE):
            if made is not None and not equal(made, by_runtime(model, given), drawn.step):
                found.append((seed, drawn.attributes))
    return found


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_computed_at_import_is_what_the_runtime_computes(name):
    assert wrong_at_import(DRAWN[name]) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("share", range(6))
def test_operators_on_elements_are_those_of_the_registry(share):
    for name in some(list(ELEMENTS)[share::6]):
        found, both = wrong(ELEMENTS[name], 4)
        assert not found and both, name


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_attributes_and_inputs_are_those_of_onnx(name):
    declared, schema = ELEMENTWISE[name], SCHEMAS[name]
    defaults = {n: a.default_value.f for n, a in schema.attributes.items()}
    assert defaults == pytest.approx(dict(declared.attributes), rel=1e-7)
    variadic = schema.inputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    assert declared.inputs == (0 if variadic else len(schema.inputs))
