"""Gradients: of every operator against differences, of programs with all that the language has, and of gradients."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay.builders import build, call
from compassc.relay.gradient import gradient
from compassc.relay.interpreter import Interpreter
from compassc.relay.module import IRModule
from compassc.relay.op import temporary
from compassc.relay.operators import get
from compassc.relay.passes import make
from compassc.relay.primal_gradients import GRADIENTS
from compassc.relay.testing.gradients import check_grad, count_ops
from tests.choosing import some
from tests.relay.relay_values import SHAPE, evaluate, functions, module
from tests.relay.trying_operators import Case, type_of

FLAT = {"argmax", "argmin", "argsort", "shape_of", "ndarray_size", "arange"}
"""Operators whose results are whole numbers, or of an extent that numbers say."""
NO_DIRECTION = {"nn.dropout", "annotation.checkpoint", "annotation.stop_fusion", "on_device"}
"""Operators without samples of real numbers; those of annotations give what they take."""


def typed(f: relay.Expr) -> relay.Function:
    return make("InferType")(IRModule.from_expr(f))["main"]


def as_double(value, name, rng):
    """An argument in double precision, within the domain of most functions."""
    if isinstance(value, (list, tuple)):
        return [as_double(v, name, rng) for v in value]
    if value.dtype.kind != "f":
        return value
    low = 1.1 if name == "acosh" else 0.1
    return rng.uniform(low, low + 0.8, value.shape)


def moved(value, direction, step):
    if isinstance(value, (list, tuple)):
        return [moved(v, d, step) for v, d in zip(value, direction)]
    return value + step * direction if value.dtype.kind == "f" else value


def drawn_like(value, rng):
    if isinstance(value, (list, tuple)):
        return tuple(drawn_like(v, rng) for v in value)
    return rng.uniform(-1, 1, np.shape(value)) if np.asarray(value).dtype.kind == "f" else np.zeros(np.shape(value))


def products(values, others):
    if isinstance(values, (list, tuple)):
        return sum(products(v, o) for v, o in zip(values, others, strict=True))
    return float((np.asarray(values, "float64") * np.asarray(others, "float64")).sum())


def differentiable(name: str):
    op = get(name)
    kinds = [k for k in op.types if k.startswith("float")]
    found = [Case(op, s, kinds[0]) for s in op.samples] if kinds else []
    return [c for c in found if all(t.dtype == kinds[0] for t in c.fields())]


CASES = [(name, case) for name in GRADIENTS if name not in NO_DIRECTION | FLAT for case in differentiable(name)]


@pytest.mark.parametrize(("name", "case"), list(some(CASES)), ids=str)
def test_gradients_are_slopes(name, case):
    rng = np.random.default_rng(zlib.crc32(repr(case).encode()))
    op = case.op
    args = [as_double(a, name, rng) for a in case.arrays]
    attrs = case.attrs
    if attrs is not None:
        wide = {n: "float64" for n in ("out_dtype", "dtype") if attrs.get(n) in ("float32", "float16")}
        attrs = attrs.changed(**wide)
    params = [relay.Var(f"x{i}", type_of(a)) for i, a in enumerate(args)]
    f = typed(relay.Function(params, relay.Call(op, params, attrs)))
    result = f.ret_type
    way = [drawn_like(a, rng) for a in args]
    weight = drawn_like(op.reference(attrs, args, result), rng)
    grad = relay.Var("grad", type_of(list(weight) if isinstance(weight, tuple) else weight))
    try:
        back = GRADIENTS[name](f.body, grad)
    except CompassError as error:
        assert error.help
        return
    found = make("InferType")(module(relay.Function([*f.params, grad], relay.Tuple(back))))
    given = [tuple(a) if isinstance(a, list) else a for a in (*args, weight)]
    slope = products(Interpreter(found).evaluate()(*given), way)
    step = 1e-6
    above, below = (op.reference(attrs, [moved(a, d, s) for a, d in zip(args, way)], result) for s in (step, -step))
    assert slope == pytest.approx((products(above, weight) - products(below, weight)) / (2 * step), rel=1e-4, abs=1e-5)


X, Y = np.arange(6, dtype="float32").reshape(SHAPE) - 2, np.full(SHAPE, 1.5, "float32")


@settings(max_examples=40, deadline=None)
@given(f=functions(branches=True))
def test_both_ways_give_the_same(f):
    whole = module(gradient(typed(f)))
    straight = make("FirstOrderGradient")(make("FoldConstant")(make("InferType")(module(f))))
    for a, b in some(zip(evaluate(whole, X, Y), evaluate(straight, X, Y), strict=True)):
        np.testing.assert_array_equal(a, b)


def gradients(f: relay.Expr, *args, mod: IRModule | None = None):
    """The result and the gradients of a function."""
    m = mod or IRModule()
    m["main"] = gradient(f, m)
    return evaluate(m, *args)


x = relay.var("x", shape=SHAPE)


def test_gradients_of_recursion_and_of_functions_as_values():
    m = IRModule()
    relay.Prelude(m)
    m.import_from_std("nat.rly")
    _, zero, succ = m.get_type("nat")
    three = succ(succ(succ(zero())))
    v = relay.var("v", shape=SHAPE)
    body = m.get_global_var("nat_iterate")(relay.Function([v], v * v), three)(x)
    m["f"] = relay.Function([x], body)
    m = make("InferType")(m)
    result, grad = gradients(m.get_global_var("f"), X, mod=m)
    np.testing.assert_allclose(result, X**8)
    np.testing.assert_allclose(grad, 8 * X**7)


def test_gradients_of_references_and_data_types():
    m = IRModule()
    relay.Prelude(m)
    _, cons, nil = m.get_type("List")
    r, u, head, rest = relay.Var("r"), relay.Var("u"), relay.Var("head"), relay.Var("rest")
    pattern = relay.PatternConstructor(cons, [relay.PatternVar(head), relay.PatternVar(rest)])
    first = relay.Match(cons(relay.RefRead(r), nil()), [relay.Clause(pattern, head * head)], complete=False)
    body = relay.Let(r, relay.RefCreate(x), relay.Let(u, relay.RefWrite(r, relay.RefRead(r) * x), first))
    m["f"] = relay.Function([x], body)
    m = make("InferType")(m)
    result, grad = gradients(m.get_global_var("f"), X, mod=m)
    np.testing.assert_allclose(result, X**4)
    np.testing.assert_allclose(grad, 4 * X**3)


def test_gradients_of_gradients():
    f = typed(relay.Function([x], x * x * x))
    y = relay.var("y", shape=SHAPE)
    once = typed(relay.Function([y], relay.TupleGetItem(relay.TupleGetItem(gradient(f)(y), 1), 0)))
    value, grad = gradients(once, X)
    np.testing.assert_allclose(value, 3 * X**2)
    np.testing.assert_allclose(grad, 6 * X)


def test_nothing_is_computed_twice():
    a, b = relay.var("a", shape=(4, 4)), relay.var("b", shape=(4, 4))
    product = build("nn.dense", a, b)
    f = typed(relay.Function([a, b], build("sum", product - build("sum", product, keepdims=True))))
    assert count_ops(gradient(f))["nn.dense"] == 3
    assert count_ops(make("FirstOrderGradient")(module(f))["main"])["nn.dense"] == 3


def test_differences_find_a_wrong_gradient():
    good = relay.Function([v := relay.var("v", shape=(2,), dtype="float64")], call("sin", v))
    check_grad(good)
    with (
        temporary("sin", "FPrimalGradient", lambda e, grad: [grad * grad * relay.const(2.0, "float64")]),
        pytest.raises(AssertionError),
    ):
        check_grad(good)


def test_programs_without_a_gradient_are_refused():
    with pytest.raises(CompassError, match="sort does not have a registered primal gradient"):
        gradient(typed(relay.Function([x], build("sort", x))))
    with pytest.raises(CompassError, match="mode 'backward'"):
        gradient(typed(relay.Function([x], x)), mode="backward")
    with pytest.raises(RuntimeError, match="of one function"):
        gradient(typed(relay.Function([x], x)), IRModule(), mode="first_order")
    with pytest.raises(CompassError, match="without types"):
        gradient(relay.Function([x], x + x))
    branch = relay.If(relay.const(True), x, x)
    with pytest.raises(CompassError, match="If has no first-order gradient"):
        make("FirstOrderGradient")(module(relay.Function([x], branch)))
