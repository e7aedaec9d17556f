"""`relay.quantize`: integers equal those of exact arithmetic, kernels equal the interpreter, and errors shrink with bits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import floor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import relay
from compassc.ir.errors import ExpressionError
from compassc.relay import quantize as Q
from compassc.relay.module import IRModule
from compassc.relay.op import temporary
from compassc.relay.operators import op_name
from compassc.relay.passes import infer_type
from compassc.relay.quantize.annotate import SIMULATED
from compassc.relay.quantize.realize import Whole, realized
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.relay.relay_values import evaluate

Array = np.ndarray[Any, Any]
INTEGERS = {"skip_conv_layers": [], "skip_dense_layer": False}


def weight(rng: np.random.Generator, *shape: int) -> relay.Constant:
    return relay.const((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))


def network(seed: int) -> tuple[IRModule, list[dict[str, Array]]]:
    """A random network that begins with a convolution and ends with one, and samples."""
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(1, 3, 8, 8))
    values: list[relay.Expr] = [relay.nn.conv2d(x, weight(rng, 4, 3, 3, 3), padding=1)]
    one = relay.const(rng.uniform(0.5, 1.5, (4, 1, 1)).astype("float32"))
    steps = {
        "conv": lambda e, o: relay.nn.conv2d(e, weight(rng, 4, 4, 3, 3), padding=1),
        "depthwise": lambda e, o: relay.nn.conv2d(e, weight(rng, 4, 1, 3, 3), padding=1, groups=4),
        "bias": lambda e, o: relay.nn.bias_add(e, weight(rng, 4)),
        "relu": lambda e, o: relay.nn.relu(e),
        "clip": lambda e, o: relay.clip(e, -0.75, 1.25),
        "add": lambda e, o: e + o,
        "add a float": lambda e, o: e + relay.sigmoid(o),
        "scale": lambda e, o: e * one,
        "product": lambda e, o: e * o,
        "join": lambda e, o: relay.strided_slice(relay.concatenate([e, o, e * one], axis=1), [0, 1, 0, 0], [1, 5, 8, 8]),
        "max": lambda e, o: relay.nn.max_pool2d(e, (3, 3), padding=1),
        "mean": lambda e, o: relay.nn.avg_pool2d(e, (3, 3), padding=1),
        "move": lambda e, o: relay.transpose(relay.squeeze(relay.expand_dims(e, 0), [0]), (0, 1, 3, 2)),
        "float": lambda e, o: relay.tanh(e),
    }  # fmt: skip
    for name in rng.choice(list(steps), rng.integers(3, 9)):
        values.append(steps[str(name)](values[-1], values[rng.integers(len(values))]))
    body = relay.nn.conv2d(values[-1], weight(rng, 2, 4, 1, 1))
    samples = [{"x": rng.standard_normal((1, 3, 8, 8)).astype("float32")} for _ in range(6)]
    return IRModule({"main": relay.Function([x], body)}), samples


def quantized(module: IRModule, samples: list[dict[str, Array]] | None = None, **settings: object) -> IRModule:
    with Q.qconfig(**{**INTEGERS, **settings}):
        return Q.quantize(module, dataset=samples)


def error(module: IRModule, exact: IRModule, x: Array) -> float:
    (got,), (wanted,) = evaluate(module, x), evaluate(exact, x)
    return float(np.sqrt(np.mean((got - wanted) ** 2) / np.mean(wanted**2)))


TWELVE = {"nbit_input": 12, "nbit_weight": 12, "dtype_input": "int16", "dtype_weight": "int16"}


@pytest.mark.parametrize("seed", range(20))
def test_errors_shrink_with_steps(seed):
    """Sixteen times finer steps make a program at least four times more exact."""
    module, samples = network(seed)
    settings = {"global_scale": 16.0, "weight_scale": ("max", "power2")[seed % 2]}
    with_8, with_12 = quantized(module, **settings), quantized(module, **settings, **TWELVE)
    few, many = (error(m, module, samples[0]["x"]) for m in (with_8, with_12))
    assert few < 0.5 and many < max(few / 4, 1e-3)
    assert not any(op_name(e) == SIMULATED for e in post_order(with_8["main"]))


@pytest.mark.parametrize("seed", range(20))
def test_simulation_rounds_as_the_integers(seed):
    """But for ties, where scales are powers of two."""
    module, samples = network(seed)
    real = quantized(module, do_simulation=True, global_scale=4.0)
    assert any(op_name(e) == SIMULATED for e in post_order(real["main"]))
    assert error(quantized(module, global_scale=4.0), real, samples[0]["x"]) < 0.1


@pytest.mark.parametrize(("seed", "mode"), [(0, "percentile"), (3, "kl_divergence"), (9, "percentile")])
def test_samples_give_scales_and_kernels_the_interpreters_numbers(seed, mode):
    module, samples = network(seed)
    made = quantized(module, samples, calibrate_mode=mode, weight_scale="max")
    run = relay.create_executor("graph", made, target="llvm").evaluate()
    for sample in some(samples[:2]):
        np.testing.assert_array_equal(run(**sample).numpy(), evaluate(made, sample["x"])[0])
    assert error(made, module, samples[0]["x"]) < 0.1


# ------------------------------------------------------------------------------------------------- exact arithmetic


def convolved(x: Array, w: Array) -> Array:
    """A convolution of whole numbers, padded to the same size."""
    _, _, height, width = x.shape
    padded = np.pad(x.astype(object), ((0, 0), (0, 0), (1, 1), (1, 1)))
    made = np.zeros((1, len(w), height, width), object)
    for i, j in np.ndindex(3, 3):
        made += np.einsum("nchw,oc->nohw", padded[:, :, i : i + height, j : j + width], w[:, :, i, j].astype(object))
    return made


def half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def away(x: Array) -> Array:
    return np.trunc(x) + np.where(np.abs(x - np.trunc(x)) >= 0.5, np.sign(x), 0)


def fixed(value: float) -> Fraction:
    """A factor with 31 bits."""
    part, exponent = np.frexp(value)
    return Fraction(floor(part * 2**31 + 0.5)) * Fraction(2) ** (int(exponent) - 31)


@pytest.mark.parametrize("how", ["power2", "max"])
def test_integers_are_those_of_exact_arithmetic(how):
    """Convolution, bias, rectifier, convolution: in Python's integers, from the definition of scales alone."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 3, 6, 6)).astype("float32") * 2
    first, bias, second = weight(rng, 4, 3, 3, 3).array, weight(rng, 4).array, weight(rng, 2, 4, 3, 3).array
    v = relay.var("x", shape=x.shape)
    hidden = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(v, relay.const(first), padding=1), relay.const(bias)))
    module = IRModule({"main": relay.Function([v], relay.nn.conv2d(hidden, relay.const(second), padding=1))})
    got = evaluate(quantized(module, weight_scale=how, global_scale=3.0), x)[0]

    def whole(values: Array) -> tuple[Array, Fraction]:
        largest = float(np.abs(values).max())
        step = np.float32((2.0 ** np.ceil(np.log2(largest)) if how == "power2" else largest) / 128)
        return np.clip(away(values * np.float32(1 / float(step))), -127, 127).astype(int), Fraction(float(step))

    step = Fraction(float(np.float32(3.0 / 128)))
    numbers = np.clip(away(x * np.float32(1 / float(step))), -127, 127).astype(int)
    (w1, s1), (b, sb), (w2, s2) = whole(first), whole(bias), whole(second)
    own = step * s1
    finer = min(own, sb)

    def rescaled(a: Array, scale: Fraction, to: Fraction) -> Array:
        factor = float(scale) / float(to)
        exact = Fraction(factor) if np.frexp(factor)[0] == 0.5 else fixed(factor)
        return np.vectorize(lambda n: half_up(n * exact), otypes=[object])(a)

    sums = rescaled(convolved(numbers, w1), own, finer) + rescaled(b.astype(object), sb, finer).reshape(1, 4, 1, 1)
    hidden_numbers = np.clip(rescaled(np.maximum(sums, 0), finer, step), -127, 127)
    wanted = convolved(hidden_numbers, w2).astype("float32") * np.float32(float(step * s2))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("apart", [-40, -20, -9, 9, 20, 25])
def test_sums_of_distant_scales_do_not_wrap(apart):
    """The larger operand is what counts."""
    rng = np.random.default_rng(1)
    x, far = relay.var("x", shape=(1, 2, 5, 5)), relay.const(weight(rng, 2, 5, 5).array * np.float32(2.0**apart))
    both = relay.nn.conv2d(x, weight(rng, 2, 2, 3, 3), padding=1) + far
    module = IRModule({"main": relay.Function([x], both)})
    data = rng.standard_normal((1, 2, 5, 5)).astype("float32")
    for bits, limit in some([({}, 0.05), (TWELVE, 0.01)]):
        made = quantized(module, global_scale=4.0, weight_scale="max", **bits)
        assert error(made, module, data) < limit


# --------------------------------------------------------------------------------------------------------- settings


def calls(module: IRModule, name: str) -> list[relay.Call]:
    return [e for e in post_order(module["main"]) if op_name(e) == name]


def types_of(module: IRModule, name: str) -> list[str]:
    return [e.checked_type.dtype for e in calls(module, name)]


def chain() -> IRModule:
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 3, 8, 8))
    hidden = relay.nn.relu(relay.nn.conv2d(x, weight(rng, 4, 3, 3, 3)))
    hidden = relay.nn.conv2d(hidden, weight(rng, 4, 4, 3, 3))
    flat = relay.nn.batch_flatten(relay.nn.relu(hidden))
    return IRModule({"main": relay.Function([x], relay.nn.dense(flat, weight(rng, 5, 64)))})


def test_what_is_skipped_stays_in_floats():
    with Q.qconfig():
        made = Q.quantize(chain())
    assert types_of(made, "nn.conv2d") == ["float32", "int32"] and types_of(made, "nn.dense") == ["float32"]
    with Q.qconfig(skip_conv_layers=[1], skip_dense_layer=False):
        assert types_of(made := Q.quantize(chain()), "nn.conv2d") == ["int32", "float32"]
    assert types_of(made, "nn.dense") == ["int32"]
    assert types_of(quantized(chain(), debug_enabled_ops=["nn.dense"]), "nn.conv2d") == ["float32"] * 2


def test_global_pools_end_quantisation():
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 3, 8, 8))
    pooled = relay.nn.global_avg_pool2d(relay.nn.conv2d(x, weight(rng, 4, 3, 3, 3)))
    last = relay.nn.conv2d(pooled, weight(rng, 2, 4, 1, 1))
    made = quantized(IRModule({"main": relay.Function([x], last)}))
    assert types_of(made, "nn.conv2d") == ["int32", "float32"]


def test_settings_are_a_context_and_cannot_be_assigned():
    assert Q.current_qconfig() == Q.QConfig()
    with Q.qconfig(nbit_input=6) as config, Q.qconfig(global_scale=4.0):
        assert (Q.current_qconfig().global_scale, Q.current_qconfig().nbit_input) == (4.0, 8)
        with pytest.raises(AttributeError):
            config.nbit_input = 8
    assert [Q.kind2str(k) for k in Q.QAnnotateKind] == ["identity", "input", "weight", "activation"]


WRONG = {
    "calibrate_mode": "best", "weight_scale": "min", "rounding": "DOWN", "partition_conversions": "yes", "global_scale": 0.0,
    "nbit_input": 9, "dtype_input": "uint8", "dtype_activation": "int64", "calibrate_chunk_by": 0, "nbits": 8,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_refused(name):
    with pytest.raises(ExpressionError, match=name):
        Q.qconfig(**{name: WRONG[name]})


def test_what_cannot_be_right_is_refused():
    with pytest.raises(CompassError, match="looks at samples, and there are none"):
        quantized(chain(), calibrate_mode="kl_divergence")
    with pytest.raises(CompassError, match="a sample lacks 'x'"):
        quantized(chain(), [{"y": np.zeros(1)}], calibrate_mode="percentile")
    with pytest.raises(CompassError, match="a sample leads to NaN"):
        quantized(chain(), [{"x": np.full((1, 3, 8, 8), np.nan, "float32")}], calibrate_mode="percentile")
    with pytest.raises(CompassError, match="nn.conv2d: its sums reach [0-9]+, beyond int16"):
        quantized(chain(), dtype_activation="int16", nbit_activation=16)
    with Q.qconfig(**INTEGERS), pytest.raises(CompassError, match="run relay.quantize.calibrate before realize"):
        Q.realize()(Q.annotate()(infer_type.run(chain())))


def test_what_is_no_number_becomes_zero():
    module = quantized(chain())
    x = np.zeros((1, 3, 8, 8), "float32")
    wanted = evaluate(module, x)[0]
    x[0, 1, 2, 3] = np.nan
    np.testing.assert_array_equal(evaluate(module, x)[0], wanted)
    np.testing.assert_array_equal(relay.create_executor("graph", module).evaluate()(x).numpy(), wanted)


def test_samples_are_looked_at_in_parts():
    samples = [{"x": np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype("float32")}]
    settings = {"calibrate_mode": "percentile"}
    whole, parts = (quantized(chain(), samples, calibrate_chunk_by=n, **settings) for n in (-1, 2))
    assert relay.structural_equal(whole, parts)


@pytest.mark.parametrize("seed", [1, 4])
def test_conversions_are_functions_of_their_own(seed):
    module, samples = network(seed)
    plain = quantized(module)
    parted = quantized(module, partition_conversions="enabled")
    assert {"quantize_inputs", "quantized_main", "dequantize_outputs", "main"} == set(parted.functions.by_name)
    np.testing.assert_array_equal(evaluate(parted, samples[0]["x"])[0], evaluate(plain, samples[0]["x"])[0])


def test_integers_alone_are_demanded():
    parted = quantized(chain(), partition_conversions="fully_integral")
    assert {p.checked_type.dtype for p in parted["quantized_main"].params} == {"int8"}
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 3, 8, 8))
    middle = relay.sigmoid(relay.nn.conv2d(x, weight(rng, 4, 3, 3, 3)))
    module = IRModule({"main": relay.Function([x], relay.nn.conv2d(middle, weight(rng, 2, 4, 1, 1)))})
    with pytest.raises(CompassError, match=r"quantized_main has .*float32"):
        quantized(module, partition_conversions="fully_integral")


def test_operators_can_have_rules_of_their_own():
    def rule(e: relay.Call, args: list[object], context: Q.QAnnotateContext) -> object:
        given = args[0].realize() if isinstance(args[0], Q.QAnnotateExpr) else args[0]
        return relay.abs(context.attach(given, Q.QAnnotateKind.INPUT))

    x = relay.var("x", shape=(4,))
    module = IRModule({"main": relay.Function([x], relay.abs(x))})
    with temporary("abs", "FQAnnotateRewrite", rule):
        made = quantized(module, global_scale=128.0)
    np.testing.assert_array_equal(evaluate(made, np.array([-1.5, 2.25, -300, 0.4], "float32"))[0], [2, 2, 127, 0])


def one_channel(body):
    """A function of an image of one channel, whose value is `body` of a product with 1."""
    x = relay.var("x", shape=(1, 1, 2, 2))
    return IRModule(
        {"main": relay.Function([x], body(relay.nn.conv2d(x, relay.const(np.ones((1, 1, 1, 1), "float32")))))}
    )


IMAGE = np.array([[[[3.0, -2.5], [7.0, 1.0]]]], "float32")


@pytest.mark.parametrize("low,high", [(20.0, 30.0), (-30.0, -20.0), (6.0, 7.0), (-1e30, 2.0)])
def test_limits_beyond_a_type_are_kept(low, high):
    """Of a pool, whose integers reach 8."""
    module = one_channel(lambda e: relay.clip(relay.nn.max_pool2d(e, (1, 1)), low, high))
    (found,) = evaluate(quantized(module), IMAGE)
    np.testing.assert_allclose(found, np.clip(IMAGE, low, high), atol=8 / 127)


@pytest.mark.parametrize("low,high,reach", [(10.0, 20.0, 10), (-3.0, 2.0, 3), (-9.0, 3.0, 5), (-9.0, -7.0, 7)])
def test_limited_integers_reach_what_they_can_be(low, high, reach):
    x = relay.var("x", shape=(4,), dtype="int8")
    assert realized(relay.clip(x, low, high), [Whole(x, 1.0, "int8", 5)]).reach == reach


def test_products_beyond_their_type_are_refused():
    settings = {
        "nbit_input": 12,
        "dtype_input": "int16",
        "dtype_activation": "int16",
        "nbit_activation": 16,
        "nbit_weight": 2,
    }
    with (
        Q.qconfig(**INTEGERS, **settings),
        pytest.raises(ExpressionError, match="numbers up to 1050625 are beyond int16"),
    ):
        Q.quantize(one_channel(lambda e: e * e))


def test_settings_are_those_of_a_thread():
    entered, found = Barrier(2), []

    def run(bits):
        with Q.qconfig(nbit_input=bits):
            entered.wait()
            found.append(Q.current_qconfig().nbit_input == bits)
            if bits == 5:
                entered.wait()
        if bits == 4:
            entered.wait()
        found.append(Q.current_qconfig().nbit_input == 8)

    with ThreadPoolExecutor() as pool:
        list(pool.map(run, (4, 5)))
    assert found == [True] * 4
