"""Passes on Relay modules: all keep what a program computes, and each does what its docstring says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from compass_core.errors import CompassError
from compassc import relay
from compassc.pass_manager import describe, load_pass
from compassc.pass_manager.context import PassContext, Sequential
from compassc.pass_manager.instruments import PassTimingInstrument
from compassc.relay.builders import build, call
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes import FOLDER, make
from compassc.relay.visit import post_order
from compassc.targets.compilation import make_compilation_config
from tests.choosing import some
from tests.relay.relay_values import SHAPE, evaluate, functions, module

PASSES = [d.name for d in describe(FOLDER)]
APPROXIMATE = {"FastMath", "FirstOrderGradient", "FlexibleShapeDispatch", "ToMixedPrecision"}
"""Those that change what is computed, or do not take every program, with tests of their own."""
X, Y = np.arange(6, dtype="float32").reshape(SHAPE) - 2, np.full(SHAPE, 1.5, "float32")


def typed(f: relay.Function, **others: relay.Function) -> IRModule:
    return make("InferType")(module(f, **others))


def after(name: str, f: relay.Function, *args, **options) -> relay.Function:
    return make(name, *args, **options)(typed(f))["main"]


def ops(f: relay.Expr) -> list[str]:
    """The operators that a function calls, in order."""
    return [e.op.name for e in post_order(f) if isinstance(e, relay.Call) and isinstance(e.op, Op)]


def kernels(f: relay.Expr) -> list[list[str]]:
    """The operators of each kernel of a function."""
    return [ops(e) for e in post_order(f) if isinstance(e, relay.Function) and e.attrs.get("Primitive")]


@cache
def options_of(name: str) -> dict[str, object]:
    known = {
        "EtaExpand": {"expand_global_var": True},
        "ChangeBatch": {"data": {}},
        "PlanDevices": {"config": make_compilation_config(PassContext(), "llvm")},
        "SimplifyFCTranspose": {"target_weights": ["w"]},
        "SplitArgs": {"max_function_args": 4},
        "ConvertLayout": {"desired_layouts": {"nn.conv2d": ["NHWC", "default"]}},
    }
    return known.get(name, {})


@pytest.mark.parametrize("name", list(some([n for n in PASSES if n not in APPROXIMATE])))
@settings(max_examples=25, deadline=None)
@given(f=functions(branches=True))
def test_passes_keep_what_a_program_computes(name, f):
    before, change = typed(f), make(name, **options_of(name))
    changed = change(before)
    again = change(changed)
    for a, b, c in some(zip(*(evaluate(m, X, Y) for m in (before, changed, again)), strict=True)):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(b, c)


x, y = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE)


def test_constants_are_computed():
    two = call("add", relay.const(1.0), relay.const(1.0))
    f = after("FoldConstant", relay.Function([x], call("multiply", x, two)))
    assert ops(f) == ["multiply"] and f.body.args[1].array == 2.0 and f.body.args[1].array.shape == ()
    v = relay.var("v")
    branch = relay.If(relay.const(True), relay.Let(v, relay.const(3.0), call("add", v, v)), relay.const(0.0))
    assert isinstance(after("FoldConstant", relay.Function([], branch)).body, relay.Constant)


def test_equal_calls_are_one_unless_they_are_skipped():
    f = relay.Function([x, y], call("multiply", call("add", x, y), call("add", x, y)))
    assert ops(after("EliminateCommonSubexpr", f)) == ["add", "multiply"]
    kept = after("EliminateCommonSubexpr", f, fskip=lambda e: isinstance(e, relay.Call) and e.op.name == "add")
    assert ops(kept) == ["add", "add", "multiply"]


def test_dead_bindings_go_and_effects_stay():
    v, w, r = relay.var("v"), relay.var("w"), relay.var("r")
    dead = relay.Let(v, call("exp", x), relay.Let(w, call("add", v, v), call("negative", x)))
    assert ops(after("DeadCodeElimination", relay.Function([x], dead))) == ["negative"]
    once = relay.Function([x], relay.Let(v, call("exp", x), call("negative", v)))
    assert isinstance(after("DeadCodeElimination", once, inline_once=True).body, relay.Call)
    assert isinstance(after("DeadCodeElimination", once).body, relay.Let)
    writes = relay.Let(r, relay.RefCreate(x), relay.Let(w, relay.RefWrite(r, x), x))
    assert isinstance(after("DeadCodeElimination", relay.Function([x], writes)).body, relay.Let)
    assert after("DeadCodeElimination", relay.Function([x], writes), ignore_impurity=True).body is x


def test_normal_forms():
    shared = call("exp", x)
    f = relay.Function([x], call("add", call("negative", shared), shared))
    named = after("ToANormalForm", f)
    assert isinstance(named.body, relay.Let) and all(
        isinstance(a, relay.Var) for e in post_order(named) if isinstance(e, relay.Call) for a in e.args
    )
    back = after("ToGraphNormalForm", named)
    assert relay.structural_equal(back, after("InferType", f))
    c = relay.var("c", relay.scalar_type("bool"))
    both = relay.Function([x, c], call("add", relay.If(c, call("negative", shared), shared), shared))
    blocks = after("ToBasicBlockNormalForm", both)
    assert isinstance(blocks.body, relay.Let) and ops(blocks) == ["exp", "negative", "add"]


def test_functions_are_lifted_inlined_expanded_and_dropped():
    i32 = relay.scalar_type("int32")
    n, loop, g = relay.var("n", i32), relay.var("loop"), relay.GlobalVar("g")
    again = loop(call("subtract", n, relay.const(1)))
    count = relay.Function([n], relay.If(call("less", n, relay.const(1)), x, again), x.type_annotation)
    lifted = make("LambdaLift")(typed(relay.Function([x], relay.Let(loop, count, loop(relay.const(3))))))
    assert len(lifted.functions) == 2
    np.testing.assert_array_equal(evaluate(lifted, X)[0], X)
    inner = relay.Function([y], call("exp", y), attrs={"Inline": 1})
    inlined = make("Inline")(IRModule({g: inner, "main": relay.Function([x], call("add", g(x), x))}))
    assert list(inlined.functions.by_name) == ["main"] and ops(inlined["main"]) == ["exp", "add"]
    value = typed(relay.Function([], g), g=relay.Function([y], call("exp", y)))
    assert isinstance(make("EtaExpand", expand_global_var=True)(value)["main"].body, relay.Function)
    with pytest.raises(CompassError, match="expand nothing"):
        make("EtaExpand")(value)
    unused = typed(relay.Function([x], x), g=relay.Function([y], y))
    assert list(make("RemoveUnusedFunctions")(unused).functions.by_name) == ["main"]


e1 = call("exp", x)
FUSED = {
    "a chain is one kernel": (call("negative", call("exp", call("add", x, relay.const(1.0)))), [["add", "exp", "negative"]]),
    "a reduction takes what is before it": (call("sqrt", call("sum", e1, axis=(1,))), [["exp", "sum"], ["sqrt"]]),
    "what a reduction and its user share stands alone": (
        call("divide", e1, call("sum", e1, axis=(1,), keepdims=True)),
        [["exp"], ["sum"], ["divide"]],
    ),
    "a diamond is one kernel": (
        call("multiply", call("add", e1, relay.const(1.0)), call("add", e1, relay.const(2.0))),
        [["exp", "add", "add", "multiply"]],
    ),
    "a tuple as the result has a kernel per field": (relay.Tuple([e1, call("negative", y)]), [["exp"], ["negative"]]),
    "fields that are moved together are one kernel": (
        build("concatenate", [e1, call("negative", y)], axis=0),
        [["exp", "negative", "concatenate"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FUSED)
def test_fusion(case):
    body, expected = FUSED[case]
    f = relay.Function([x, y], body)
    fused = after("FuseOps", f, 2)
    assert sorted(kernels(fused)) == sorted(expected)
    assert [k for k in kernels(after("FuseOps", f, 0)) if len(k) > 1] == []
    defused = make("DefuseOps")(module(fused))["main"]
    assert relay.structural_equal(defused, after("InferType", f))


def test_fusion_keeps_to_its_limits():
    e: relay.Expr = x
    for _ in range(10):
        e = call("negative", call("exp", e))
    with PassContext(config={"relay.FuseOps.max_depth": 5}):
        assert max(map(len, kernels(after("FuseOps", relay.Function([x], e), 2)))) == 5


def test_sequences_choose_passes_by_level_and_name():
    f = typed(relay.Function([x], call("add", call("exp", x), call("add", relay.const(1.0), relay.const(1.0)))))
    passes = Sequential([make("FoldConstant"), make("FastMath")])
    assert ops(passes(f)["main"]) == ["exp", "add"]
    with PassContext(opt_level=1):
        assert passes(f) is f
    with PassContext(disabled_pass=["FoldConstant"], required_pass=["FastMath"]):
        assert ops(passes(f)["main"]) == ["fast_exp", "add", "add"]
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        passes(f)
    assert "FoldConstant: " in timing.render()


i8, i32 = (relay.var("i", shape=SHAPE, dtype=d) for d in ("int8", "int32"))
_scale, _zero = relay.const(0.5), relay.const(3, "int32")
_quantised = build("qnn.requantize", i8, _scale, _zero, relay.const(0.25), _zero)
SIMPLE = {
    "nothing is added": (call("add", call("subtract", x, relay.const(0.0)), relay.const(0.0)), []),
    "a sum of one value": (call("add", call("exp", x), call("exp", x)), ["exp", "exp", "add"]),
    "multiplied by 1": (call("divide", call("multiply", relay.const(1.0), x), relay.const(1.0)), []),
    "constants are one": (call("add", call("add", x, relay.const(1.0)), relay.const(2.0)), ["add"]),
    "reshapes": (call("reshape", call("reshape", x, newshape=(6,)), newshape=(3, 2)), ["reshape"]),
    "a reshape to the same shape": (call("reshape", x, newshape=SHAPE), []),
    "transposes": (call("transpose", call("transpose", x, axes=(1, 0)), axes=None), []),
    "a cast that widens before": (call("cast", call("cast", i8, dtype="int32"), dtype="float32"), ["cast"]),
    "a cast that narrows before": (call("cast", call("cast", i8, dtype="uint8"), dtype="int32"), ["cast", "cast"]),
    "a shape that is known": (call("multiply", x, call("ones_like", y)), []),
    "a tensor of one number": (
        call("maximum", call("multiply", x, build("full", relay.const(3.0), SHAPE)), build("ones", SHAPE, "float32")),
        ["multiply", "maximum"],
    ),
    "a tensor of one number that gives the shape": (
        call("add", call("sum", x), build("ones", SHAPE, "float32")),
        ["sum", "ones", "add"],
    ),
    "a bound that all keep": (call("clip", call("negative", i8), a_min=-128.0, a_max=200.0), ["negative"]),
    "a bound behind requantisation": (call("clip", _quantised, a_min=-128.0, a_max=127.0), ["qnn.requantize", "clip"]),
    "a bound within a type": (
        call("cast", call("cast", call("clip", i32, a_min=0, a_max=255), dtype="uint8"), dtype="int32"),
        ["clip"],
    ),
    "a bound beyond a type": (
        call("cast", call("cast", call("clip", i32, a_min=0, a_max=256), dtype="uint8"), dtype="int32"),
        ["clip", "cast", "cast"],
    ),
    "the order of dequantised numbers": (
        build("argmax", build("qnn.dequantize", i8, _scale, _zero), axis=1),
        ["argmax"],
    ),
    "an order that is turned round": (
        build("argsort", build("qnn.dequantize", i8, relay.const(-0.5), _zero), axis=1),
        ["qnn.dequantize", "argsort"],
    ),
    "a bound of a bound": (call("clip", call("clip", x, a_min=-1.0, a_max=2.0), a_min=0.0, a_max=1.5), ["clip"]),
    "bounds that do not meet": (call("clip", call("clip", x, a_min=-1.0, a_max=0.5), a_min=1.0, a_max=2.0), ["clip"]),
    "a bound of whole numbers between them": (
        call("clip", call("clip", i8, a_min=-1.5, a_max=20.5), a_min=0.0, a_max=15.0),
        ["clip", "clip"],
    ),
    "a square of a sum": (
        x * x + relay.const(3.0) * x * y + relay.const(2.0) * y * y,
        ["add", "multiply", "add", "multiply"],
    ),
    "a sum of squares": (
        x * x + y * y,
        ["multiply", "multiply", "add"],
    ),
    "a root that divides": (call("divide", x, call("sqrt", y)), ["rsqrt", "multiply"]),
}


@pytest.mark.parametrize("case", SIMPLE)
def test_simpler_calls(case):
    body, expected = SIMPLE[case]
    f = relay.Function([x, y, i8, i32], body)
    simple = after("SimplifyExpr", f)
    assert ops(simple) == expected
    arrays = X, Y + 1, X.astype("int8") * 60, X.astype("int32") * 100
    for a, b in some(zip(evaluate(module(simple), *arrays), evaluate(typed(f), *arrays), strict=True)):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_quotients_by_constants_are_products():
    assert ops(after("DivToMul", relay.Function([x], call("divide", x, relay.const(4.0))))) == ["multiply"]
    assert ops(after("DivToMul", relay.Function([x], call("divide", x, relay.const(0.0))))) == ["divide"]


def test_normalisations_become_arithmetic():
    data, vectors = relay.var("d", shape=(2, 3, 4)), [relay.var(n, shape=(3,)) for n in "gbmv"]
    normed = relay.TupleGetItem(call("nn.batch_norm", data, *vectors, axis=1, epsilon=1e-5, center=True, scale=True), 0)
    f = relay.Function([data, *vectors], normed)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2, (2, 3, 4)).astype("float32"), *rng.uniform(0.5, 2, (4, 3)).astype("float32")]
    changed = after("SimplifyInference", f)
    assert "nn.batch_norm" not in ops(changed)
    np.testing.assert_allclose(
        evaluate(module(changed), *arrays)[0], evaluate(typed(f), *arrays)[0], rtol=1e-5, atol=1e-5
    )
    for name in ("nn.layer_norm", "nn.instance_norm"):
        attrs = {"axis": 1, "epsilon": 1e-5, "center": True, "scale": True}
        g = relay.Function([data, *vectors[:2]], call(name, data, *vectors[:2], **attrs))
        changed = after("SimplifyInference", g)
        assert name not in ops(changed)
        np.testing.assert_allclose(
            evaluate(module(changed), *arrays[:3])[0], evaluate(typed(g), *arrays[:3])[0], rtol=1e-4, atol=1e-5
        )


def test_biases_are_added_along_their_axis():
    data, bias = relay.var("d", shape=(2, 3, 4)), relay.var("b", shape=(3,))
    f = after("CanonicalizeOps", relay.Function([data, bias], call("nn.bias_add", data, bias, axis=1)))
    assert ops(f) == ["expand_dims", "add"] and f.body.args[1].checked_type == relay.TensorType((3, 1))


def _branches(name: str, others: list[tuple[int, ...]], data: tuple[int, ...], **attrs):
    """A function of three calls on the same data, each by the builder of an operator."""
    d, w = relay.var("d", shape=data), [relay.var(f"w{i}", shape=s) for i, s in enumerate(others)]
    return relay.Function([d, *w], relay.Tuple([build(name, d, one, **attrs) for one in w])), [data, *others]


PARALLEL = {
    "conv2d": ("CombineParallelConv2D", "nn.conv2d", [(2, 3, 3, 3), (4, 3, 3, 3), (1, 3, 3, 3)], (1, 3, 5, 5), {}, {"padding": (1, 1)}),
    "conv2d of channels last": (
        "CombineParallelConv2D", "nn.conv2d", [(1, 1, 3, 2), (1, 1, 3, 4), (1, 1, 3, 2)], (1, 4, 5, 3), {},
        {"data_layout": "NHWC", "kernel_layout": "HWIO"},
    ),
    "dense": ("CombineParallelDense", "nn.dense", [(4, 3)] * 3, (2, 3), {}, {}),
    "dense of other sizes": ("CombineParallelDense", "nn.dense", [(4, 3), (2, 3), (5, 3)], (2, 3), {"to_batch": False}, {}),
    "batch_matmul": ("CombineParallelBatchMatmul", "nn.batch_matmul", [(2, 4, 3), (2, 1, 3), (2, 2, 3)], (2, 5, 3), {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", PARALLEL)
def test_calls_on_the_same_data_are_combined(case):
    name, op, others, data, options, attrs = PARALLEL[case]
    f, shapes = _branches(op, others, data, **attrs)
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-4, 5, shape).astype("float32") for shape in shapes]
    before, made = typed(f), make(name, **options)(typed(f))
    calls = ops(made["main"])
    assert calls.count(op) == (case != "dense") and calls.count("nn.batch_matmul") == (
        case in ("dense", "batch_matmul")
    )
    for a, b in some(zip(evaluate(before, *arrays), evaluate(made, *arrays), strict=True)):
        np.testing.assert_array_equal(a, b)
    assert make(name, min_num_branches=4, **options)(before) is before


def test_a_call_that_another_one_needs_is_not_combined():
    d, w = relay.var("d", shape=(3, 3)), relay.var("w", shape=(3, 3))
    inner = build("nn.dense", d, w)
    f = relay.Function([d, w], build("nn.dense", d, inner))
    assert ops(after("CombineParallelDense", f, min_num_branches=2)) == ["nn.dense", "nn.dense"]


def test_transform_gives_passes_by_name_and_takes_those_of_programs():
    from compassc.relay import transform

    f = typed(relay.Function([x], call("exp", x)))
    assert ops(transform.FastMath()(f)["main"]) == ["fast_exp"]

    @transform.function_pass(opt_level=1)
    class Twice:
        def __init__(self, name):
            self.name = name

        def transform_function(self, function, mod, ctx):
            return function.replace(body=call(self.name, function.body), ret_type=None)

    assert ops(transform.Sequential([Twice("negative"), transform.FastMath()])(f)["main"]) == ["exp", "negative"]
    with pytest.raises(AttributeError, match="there is no pass FastMaths"):
        transform.FastMaths  # noqa: B018
    with pytest.raises(CompassError, match="gave a int, not a IRModule"):
        transform.module_pass(lambda mod, ctx: 3, opt_level=0)(f)


def _window(layout: str, groups: int, data: relay.Expr) -> relay.Expr:
    """A convolution of 4 channels with constant weights."""
    rng = np.random.default_rng(2)
    oihw = rng.integers(-3, 4, (4, 4 // groups, 3, 3)).astype("float32")
    weight, kernel = (oihw, "OIHW") if layout == "NCHW" else (oihw.transpose(2, 3, 1, 0), "HWIO")
    attrs = {"data_layout": layout, "kernel_layout": kernel, "groups": groups, "channels": 4, "kernel_size": (3, 3)}
    return build("nn.conv2d", data, relay.const(np.ascontiguousarray(weight)), padding=(1, 1), **attrs)


def _channels(layout: str, values: list[float]) -> relay.Constant:
    return relay.const(np.array(values, "float32").reshape((4, 1, 1) if layout == "NCHW" else (4,)))


@pytest.mark.parametrize("name", ["BackwardFoldScaleAxis", "ForwardFoldScaleAxis"])
@pytest.mark.parametrize(("layout", "groups"), [("NCHW", 1), ("NCHW", 4), ("NHWC", 1)])
@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("between", ["", "relu", "add", "add relu"])
def test_scales_of_channels_go_into_weights(name, layout, groups, positive, between):
    shape = (1, 4, 5, 5) if layout == "NCHW" else (1, 5, 5, 4)
    d, scale = relay.var("d", shape=shape), _channels(layout, [0.5, 2, 4, 1 if positive else -1])
    steps = {"relu": lambda e: call("nn.relu", e), "add": lambda e: call("add", e, _channels(layout, [1, -2, 3, 4]))}
    inner = [steps[step] for step in between.split()]
    back = name.startswith("Backward")
    e: relay.Expr = _window(layout, groups, d) if back else call("multiply", d, scale)
    for step in inner:
        e = step(e)
    e = call("multiply", e, scale) if back else _window(layout, groups, e)
    f = typed(relay.Function([d], e))
    made = make("FoldConstant")(make(name)(f))
    needs_sign = "relu" in between
    assert ("multiply" in ops(made["main"])) == (needs_sign and not positive)
    array = np.random.default_rng(3).integers(-9, 9, shape).astype("float32")
    np.testing.assert_allclose(evaluate(made, array)[0], evaluate(f, array)[0], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("back", [True, False])
def test_scales_of_channels_go_into_all_weights_that_share_them(back):
    d, scale = relay.var("d", shape=(1, 4, 5, 5)), _channels("NCHW", [0.5, 2, 4, 1])
    given = d if back else call("nn.relu", call("multiply", d, scale))
    e = call("add", *[call("nn.relu", _window("NCHW", 1, given)) for _ in range(2)])
    f = typed(relay.Function([d], call("multiply", e, scale) if back else e))
    made = make("FoldConstant")(make("BackwardFoldScaleAxis" if back else "ForwardFoldScaleAxis")(f))
    assert "multiply" not in ops(made["main"])
    array = np.random.default_rng(3).integers(-9, 9, (1, 4, 5, 5)).astype("float32")
    np.testing.assert_allclose(evaluate(made, array)[0], evaluate(f, array)[0], rtol=1e-5, atol=1e-4)


def test_a_scale_stays_where_the_result_is_used_otherwise():
    d = relay.var("d", shape=(1, 4, 5, 5))
    conv = _window("NCHW", 1, d)
    f = typed(relay.Function([d], relay.Tuple([call("multiply", conv, _channels("NCHW", [1, 2, 3, 4])), conv])))
    assert make("BackwardFoldScaleAxis")(f) is f


def test_operators_say_what_is_called_instead():
    from compassc.relay.op import get, temporary

    f = typed(relay.Function([x, y], call("add", call("exp", x), y)))
    assert get("exp").get_attr("FTVMLegalize") is None

    def instead(attrs, args, types):
        assert types == [relay.TensorType(SHAPE)] * 2
        return call("negative", *args)

    with temporary("exp", "FTVMLegalize", instead):
        assert ops(make("Legalize")(f)["main"]) == ["negative", "add"]
    with temporary("exp", "FTVMLegalize", lambda attrs, args, types: None):
        assert make("Legalize")(f) is f
    with (
        temporary("exp", "FTVMLegalize", lambda attrs, args, types: 3),
        pytest.raises(CompassError, match="gave a int"),
    ):
        make("Legalize")(f)


def test_casts_that_widen_are_repeated():
    wide = call("cast", i8, dtype="int32")
    f = relay.Function([i8], call("multiply", call("add", wide, relay.const(1)), call("abs", wide)))
    assert ops(after("CanonicalizeCast", f)).count("cast") == 2
    narrow = call("cast", x, dtype="int8")
    g = relay.Function([x], call("multiply", call("abs", narrow), call("negative", narrow)))
    assert ops(after("CanonicalizeCast", g)).count("cast") == 1


def test_what_is_inlined_twice_has_its_own_cells_and_variables():
    v, r, g = relay.var("v"), relay.var("r"), relay.GlobalVar("g")
    fresh = relay.Function([], relay.Let(v, relay.const(1.0), relay.RefCreate(v)), attrs={"Inline": 1})
    cells = [relay.var("a"), relay.var("b")]
    body = relay.Let(r, relay.RefWrite(cells[0], relay.const(5.0)), relay.RefRead(cells[1]))
    f = relay.Function([], relay.Let(cells[0], g(), relay.Let(cells[1], g(), body)))
    inlined = make("Inline")(IRModule({g: fresh, "main": f}))
    assert evaluate(make("InferType")(inlined)) == [1.0]
    bound = [e.var for e in post_order(inlined["main"]) if isinstance(e, relay.Let)]
    assert len(set(bound)) == len(bound) == 5
    a = relay.TypeVar("T")
    p = relay.var("p", a)
    same = relay.Function([p], relay.Let(relay.var("q"), p, p), a, [a], {"Inline": 1})
    twice = IRModule({g: same, "main": relay.Function([], relay.Tuple([g(relay.const(1)), g(relay.const(1.0))]))})
    assert len(make("InferType")(make("Inline")(twice))["main"].ret_type.fields) == 2


def test_what_cannot_be_computed_is_left_to_who_runs_it():
    wrong = call("power", relay.const(2), relay.const(-1))
    assert ops(after("FoldConstant", relay.Function([], wrong))) == ["power"]


LEAST = float(np.finfo("float32").min)
PADDED = {
    "conv2d": (
        lambda d: build("nn.conv2d", d, relay.const(np.ones((2, 3, 2, 2), "float32")), padding=(1, 0)),
        0.0,
        True,
    ),
    "avg_pool2d": (lambda d: build("nn.avg_pool2d", d, (2, 2)), 0.0, True),
    "avg_pool2d that does not count": (lambda d: build("nn.avg_pool2d", d, (2, 2), padding=(1, 1)), 0.0, False),
    "max_pool2d": (lambda d: build("nn.max_pool2d", d, (2, 2)), LEAST, True),
    "max_pool2d of windows within padding": (lambda d: build("nn.max_pool2d", d, (1, 2)), LEAST, False),
    "max_pool2d of zeros": (lambda d: build("nn.max_pool2d", d, (2, 2)), 0.0, False),
}


@pytest.mark.parametrize("case", PADDED)
def test_operators_pad_themselves(case):
    user, value, folds = PADDED[case]
    d = relay.var("d", shape=(1, 3, 4, 5))
    array = np.random.default_rng(4).integers(-9, 9, (1, 3, 4, 5)).astype("float32")
    for widths, fits in ([[0, 0], [0, 0], [1, 1], [0, 1]], True), ([[0, 0], [1, 0], [1, 1], [1, 1]], False):
        if not fits and case == "conv2d":
            continue  # its weights have other channels then
        f = typed(relay.Function([d], user(build("nn.pad", d, widths, value))))
        made = make("FoldExplicitPadding")(f)
        assert ("nn.pad" in ops(made["main"])) != (folds and fits)
        np.testing.assert_array_equal(evaluate(made, array)[0], evaluate(f, array)[0])


def test_sums_with_constants_are_distributed():
    f = after("SimplifyExpr", relay.Function([x], (x + relay.const(2.0)) * relay.const(3.0)))
    assert ops(f) == ["multiply", "add"] and f.body.args[1].array == 6


def known(value: object) -> relay.Expr:
    """A tensor that is no constant before constants are folded."""
    array = np.asarray(value, "int64")
    return relay.const(array, "int64") + relay.const(np.zeros_like(array), "int64")


DYNAMIC = {
    "topk": lambda: build("topk", x, known(2), 1, "values"),
    "strided_slice": lambda: build("strided_slice", x, *map(known, ([0, 1], [2, 3], [1, 1]))),
    "one_hot": lambda: build(
        "one_hot", build("cast", x, "int32"), relay.const(1.0), relay.const(0.0), known(4), -1, "float32"
    ),
    "nn.pad": lambda: build("nn.pad", x, known([[0, 1], [2, 0]])),
    "tile": lambda: build("tile", x, known([2, 1])),
    "image.resize2d": lambda: build("image.resize2d", build("reshape", x, (1, 1, 2, 3)), known([4, 3]), None),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_known_shapes_make_operators_static(name):
    before = typed(relay.Function([x], DYNAMIC[name]()))
    made = make("DynamicToStatic")(before)
    assert f"dyn.{name}" in ops(before["main"]) and name in ops(made["main"])
    assert not any(op.startswith("dyn.") for op in ops(made["main"]))
    np.testing.assert_array_equal(evaluate(made, X)[0], evaluate(before, X)[0])


def test_the_page_has_every_pass():
    page = (Path(__file__).parents[2] / "docs" / "relay.md").read_text()
    rows = [f"| `{d.name}` | {load_pass(d.name, FOLDER).LEVEL} | {d.summary} |" for d in describe(FOLDER)]
    assert "\n".join(rows) in page


def test_weights_that_products_transpose_are_taken_transposed():
    data, w = relay.var("d", shape=(2, 4)), relay.var("w", shape=(4, 3))
    product = build("nn.dense", data, build("transpose", w))
    changed = after("SimplifyFCTranspose", relay.Function([data, w], product), ["w"])
    assert ops(changed) == ["nn.dense"] and [p.name_hint for p in changed.params] == ["d", "w.T"]
    a, b = np.arange(8, dtype="float32").reshape(2, 4), np.arange(12, dtype="float32").reshape(4, 3)
    np.testing.assert_array_equal(evaluate(module(changed), a, b.T)[0], a @ b)
    both = after(
        "SimplifyFCTranspose",
        relay.Function([data, w], product + build("nn.dense", data, build("reshape", w, (3, 4)))),
        ["w"],
    )
    assert [p.name_hint for p in both.params] == ["d", "w", "w.T"]
    kept = after("SimplifyFCTranspose", relay.Function([data, w], product), ["v"])
    assert ops(kept) == ["transpose", "nn.dense"]
