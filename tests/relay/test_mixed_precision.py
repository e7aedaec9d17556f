"""Mixed precision: which calls are computed with fewer bits, and that programs of small whole numbers keep their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from compass_core.errors import CompassError
from compassc import relay
from compassc.pass_manager.context import PassContext
from compassc.relay.builders import build
from compassc.relay.op import temporary
from compassc.relay.operators import op_name
from compassc.relay.passes import make
from compassc.relay.passes.to_mixed_precision import KEEP_TYPES, LARGEST
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.relay.relay_values import SHAPE, evaluate, functions, module

X, Y = np.arange(6, dtype="float32").reshape(SHAPE) - 2, np.full(SHAPE, 2, "float32")
x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))


def mixed(e: relay.Expr, dtype: str = "float16", mode: int = 0) -> relay.Function:
    f = e if isinstance(e, relay.Function) else relay.Function(relay.analysis.free_vars(e), e)
    return make("ToMixedPrecision", dtype, mode)(module(f))["main"]


def types_of(f: relay.Function) -> list[tuple[str, str]]:
    """The operators of a function but casts, with the types of their results."""
    calls = [e for e in post_order(f) if op_name(e) not in ("", "cast")]
    return [(op_name(e), e.checked_type.dtype) for e in calls]


@pytest.mark.parametrize("dtype", LARGEST)
@settings(max_examples=40, deadline=None)
@given(f=functions(branches=True))
def test_small_whole_numbers_stay(dtype, f):
    before = make("InferType")(module(f))
    with PassContext(config={KEEP_TYPES: True}):
        made = make("ToMixedPrecision", dtype, 2)(before)
    assert made["main"].checked_type == before["main"].checked_type
    parts = [e for e in post_order(f.body) if isinstance(e, relay.Call)]
    whole = make("InferType")(module(relay.Function(f.params, relay.Tuple(parts))))
    if all(np.abs(part).max() < 256 for part in evaluate(whole, X, Y)):
        for a, b in some(zip(evaluate(before, X, Y), evaluate(made, X, Y), strict=True)):
            np.testing.assert_array_equal(a, b)


def test_categories():
    dense = build("nn.dense", x, w)
    low, high = "float16", "float32"
    assert types_of(mixed(build("nn.relu", dense))) == [("nn.dense", low), ("nn.relu", low)]
    assert types_of(mixed(build("nn.softmax", dense))) == [("nn.dense", low), ("nn.softmax", high)]
    soft = build("nn.softmax", x)
    assert types_of(mixed(soft + x)) == [("nn.softmax", high), ("add", high)]
    assert types_of(mixed(build("clip", x, -1e6, 1e6))) == [("clip", high)]
    assert types_of(mixed(build("clip", x, -1e6, 1e6), "bfloat16")) == [("clip", "bfloat16")]
    assert mixed(build("nn.softmax", x)).body.args[0].checked_type.dtype == high


def test_casts_are_made_once_and_undone():
    dense = build("nn.dense", x, w)
    f = mixed(build("nn.relu", build("nn.dense", x, w)) + dense)
    assert [op_name(e) for e in post_order(f)].count("cast") == 2
    back = mixed(build("nn.dense", build("exp", dense), build("reshape", w, (3, 4))))
    assert [op_name(e) for e in post_order(back)].count("cast") == 4


def test_operators_say_their_category():
    with temporary("nn.dense", "FTVMMixedPrecisionConversionType", lambda e, t: [0, "float32", t]):
        f = mixed(build("nn.dense", x, w))
    assert types_of(f) == [("nn.dense", "float32")] and f.body.checked_type.dtype == "float16"
    wrong = temporary("nn.dense", "FTVMMixedPrecisionConversionType", lambda e, t: [7, t, t])
    with wrong, pytest.raises(CompassError, match=r"gave \[7"):
        mixed(build("nn.dense", x, w))


def test_operators_without_a_category():
    with pytest.raises(CompassError, match=r"fewer bits: tan \(1 calls\)"):
        mixed(build("tan", x))
    with pytest.warns(UserWarning, match="tan"):
        assert types_of(mixed(build("tan", x), mode=1)) == [("tan", "float16")]
    assert types_of(mixed(build("tan", x), mode=2)) == [("tan", "float16")]
    with pytest.raises(ValueError, match="missing_op_mode"):
        mixed(x, mode=3)


def test_functions_keep_the_types_of_their_arguments_and_results():
    g, v = relay.GlobalVar("g"), relay.var("v", shape=(2, 4))
    m = module(relay.Function([x, w], g(build("nn.dense", x, w))), g=relay.Function([v], build("nn.relu", v)))
    made = make("ToMixedPrecision", "float16", 0)(m)
    assert made["g"].checked_type == make("InferType")(m)["g"].checked_type
    assert made["main"].ret_type == relay.TensorType((2, 4), "float32")
