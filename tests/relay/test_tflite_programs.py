"""Quantised TFLite models as programs: what TFLite computes, by the interpreter and by compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import UsageError
from compassc import relay
from compassc.importers.refusals import RefusedModel
from compassc.relay.backend.executors import create_executor
from compassc.relay.module import IRModule
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.importers import tflite_quantised, tflite_reference
from tests.importers.test_tflite_models import arrays_for
from tests.importers.test_tflite_rounding import OPERATORS, Drawn
from tests.relay.onnx_programs import values_of
from tests.relay.relay_values import evaluate

NO_PROGRAM = {"arg_max"}
"""Models whose layers have no definition by operators, which are refused."""
IN_REALS = {
    "logistic_int16": 0.3,
    "softmax": 0.05,
    "prelu": 0.1,
    "dequantize": 0,
    "network": 0,
    "div": 0.05,
}
"""Computed of real numbers: which share of the elements may be a level off. Others that are equal are not listed."""


def difference(name: str, found: list[np.ndarray], content: bytes, given: list[np.ndarray]) -> None:
    """Assertion that results are those of TFLite, but for a level where a model is computed of real numbers."""
    for got, want in some(zip(found, tflite_reference.run(content, given), strict=True)):
        assert got.dtype == want.dtype and got.shape == want.shape, name
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
            continue
        levels = np.abs(got.astype(np.int64) - want)
        share = IN_REALS.get(name, 0)
        assert levels.max() <= (1 if share else 0), name
        assert (levels > 0).mean() <= share, name


def operators(module: IRModule) -> set[str]:
    return {e.op.name for e in post_order(module["main"]) if isinstance(e, relay.Call)}


def test_models_give_what_tflite_gives_and_hosts_the_same():
    bodies, params, arrays, wanted = [], [], [], []
    for name in some(sorted({*tflite_quantised.CASES} - NO_PROGRAM)):
        content = tflite_quantised.build(name)
        given = arrays_for(content, name)
        module, known = relay.frontend.from_tflite(content)
        assert not known
        found = evaluate(module, *given)
        difference(name, found, content, given)
        main = module["main"]
        bodies.append(main.body)
        params += main.params
        arrays += given
        wanted += found
    made = values_of(create_executor("graph").evaluate(relay.Function(params, relay.Tuple(bodies)))(*arrays))
    for a, b in some(zip(made, wanted, strict=True)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", OPERATORS)
def test_drawn_scales_give_the_same_numbers(name):
    _, dtype, make = OPERATORS[name]
    for seed in range(3):
        drawn = Drawn(seed, dtype)
        content, kind = drawn.net.bytes(make(drawn)), np.iinfo(dtype)
        shapes = [drawn.net.tensors[i].shape for i in drawn.net.inputs]
        given = [drawn.random.integers(kind.min, kind.max + 1, shape).astype(dtype) for shape in shapes]
        found = evaluate(relay.frontend.from_tflite(content)[0], *given)
        (want,) = tflite_reference.run(content, given)
        np.testing.assert_array_equal(found[0], want)
        assert len(np.unique(want)) > 9, "nothing is compared where all is saturated"


def test_programs_keep_integers():
    module = relay.frontend.from_tflite(tflite_quantised.build("conv_relu6"))[0]
    assert operators(module) == {"qnn.conv2d", "nn.bias_add", "qnn.requantize", "clip"}
    assert relay.frontend.from_tflite(tflite_quantised.build("moves"))[0]["main"].ret_type.dtype == "int8"


def test_what_is_no_program_is_refused_by_name():
    with pytest.raises(RefusedModel, match="not supported") as refused:
        relay.frontend.from_tflite(tflite_quantised.build("arg_max"))
    assert refused.value.refusals[0].operator == "ARG_MAX"
    with pytest.raises(UsageError, match="has no input 'y'"):
        relay.frontend.from_tflite(tflite_quantised.build("conv"), {"y": (1,)})
