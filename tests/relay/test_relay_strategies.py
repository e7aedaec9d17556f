"""Strategies: which implementation of an operator computes it, and schedules its kernel."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import relay, te
from compassc.relay import operators
from compassc.relay.backend.executors import create_executor
from compassc.relay.builders import build
from compassc.relay.op import temporary
from compassc.relay.operators import get, register
from compassc.relay.passes import make
from compassc.relay.strategy import (
    NoImplementation,
    OpStrategy,
    SpecializedCondition,
    get_valid_implementations,
    register_injective_schedule,
    register_schedule,
    select_implementation,
    wrap_compute_dense,
)
from compassc.relay.tuned import consulted
from tests.relay.relay_values import module

SCHEDULED: list[str] = []


def times(factor: int, name: str):
    """An implementation of `exp` that multiplies, so that a result tells which one it was."""

    def compute(attrs, inputs, out_type):
        (x,) = inputs
        return [te.compute(x.shape, lambda *i: x[i] * te.const(float(factor), "float32"), name=name)]

    def schedule(attrs, outs, target):
        SCHEDULED.append(f"{name} on {target.kind.name}")
        return te.create_schedule([t.op for t in outs])

    return {"compute": compute, "schedule": schedule, "name": name}


def strategy(attrs, inputs, out_type, target):
    made = OpStrategy()
    made.add_implementation(**times(2, "two"), plevel=10)
    made.add_implementation(**times(3, "three"), plevel=15)
    with SpecializedCondition(inputs[0].shape[0] >= 16):
        made.add_implementation(**times(5, "five"), plevel=20)
    return made


@pytest.mark.parametrize(("rows", "names", "factor"), [(4, ["two", "three"], 3), (16, ["two", "three", "five"], 5)])
def test_conditions_and_levels_choose(rows, names, factor):
    x = te.placeholder((rows, 2))
    t = relay.TensorType((rows, 2))
    with temporary("exp", "FTVMStrategy", strategy):
        found = get_valid_implementations(get("exp"), None, [x], t, "llvm")
        chosen, outputs = select_implementation(get("exp"), None, [x], t, "llvm")
        v = relay.var("v", shape=(rows, 2))
        SCHEDULED.clear()
        result = create_executor("graph").evaluate(relay.Function([v], build("exp", v)))(np.ones((rows, 2), "float32"))
    assert [i.name for i in found] == names and chosen.name == names[-1] and len(outputs) == 1
    np.testing.assert_array_equal(result.numpy(), np.full((rows, 2), factor, "float32"))
    assert SCHEDULED == [f"{names[-1]} on llvm"]


def test_the_most_complex_call_schedules_its_kernel():
    v, w = relay.var("v", shape=(2, 3)), relay.var("w", shape=(4, 3))
    f = relay.Function([v, w], build("exp", build("nn.dense", v, w)))

    def by_definition(attrs, inputs, out_type, target):
        made = OpStrategy()
        made.add_implementation(get("nn.dense").compute, times(1, "dense")["schedule"], "dense")
        return made

    with temporary("exp", "FTVMStrategy", strategy), temporary("nn.dense", "FTVMStrategy", by_definition):
        SCHEDULED.clear()
        made = create_executor("graph").evaluate(f)(np.ones((2, 3), "float32"), np.ones((4, 3), "float32"))
    assert SCHEDULED == ["dense on llvm"]
    np.testing.assert_array_equal(made.numpy(), np.full((2, 4), 9, "float32"))


def test_what_cannot_be_chosen_is_refused():
    x, t = te.placeholder((2, 2)), relay.TensorType((2, 2))
    with pytest.raises(CompassError, match="exp has no strategy"):
        get_valid_implementations(get("exp"), None, [x], t, "llvm")
    nothing = temporary("exp", "FTVMStrategy", lambda *given: OpStrategy())
    with nothing, pytest.raises(RuntimeError, match="No valid exp implementations for llvm"):
        select_implementation(get("exp"), None, [x], t, "llvm")


def test_functions_of_topi_are_adapted():
    from compassc import topi

    f = make("InferType")(
        module(
            relay.Function(
                [v := relay.var("v", shape=(2, 3)), w := relay.var("w", shape=(4, 3))], build("nn.dense", v, w)
            )
        )
    )
    e = f["main"].body
    (found,) = wrap_compute_dense(topi.nn.dense)(
        e.attrs, [te.placeholder((2, 3)), te.placeholder((4, 3))], e.checked_type
    )
    assert tuple(map(int, found.shape)) == (2, 4)


class Noted:
    """Records that have costs of implementations by the names of their results."""

    def __init__(self, **costs):
        self.costs = costs

    def cost(self, op, outputs, target):
        assert (op, target.kind.name) == ("exp", "llvm")
        return self.costs.get(outputs[0].op.name)

    def knobs(self, workload, target):
        raise AssertionError("implementations with schedules have no knobs")


@pytest.mark.parametrize(
    ("costs", "name"),
    [({}, "three"), ({"two": 2.0}, "two"), ({"two": 2.0, "three": 1.0}, "three"), ({"five": 0.1}, "three")],
)
def test_the_implementation_of_least_cost_on_record_goes_before_levels(costs, name):
    x, t = te.placeholder((4, 2)), relay.TensorType((4, 2))
    with temporary("exp", "FTVMStrategy", strategy), consulted(Noted(**costs)):
        chosen, outputs = select_implementation(get("exp"), None, [x], t, "llvm")
        plain, _ = select_implementation(get("exp"), None, [x], t, "llvm", use_autotvm=False)
    assert (chosen.name, outputs[0].op.name, plain.name) == (name, name, "three")


def test_an_operator_has_one_implementation_of_its_compute(monkeypatch):
    monkeypatch.setattr(operators, "OPERATORS", dict(operators.OPERATORS))
    op = register("test.tripled")
    op.set_num_inputs(1)
    op.add_argument("x", "Tensor", "numbers")
    op.add_type_rel("Identity")
    with pytest.raises(NoImplementation, match="FTVMCompute is not registered for op test.tripled"):
        register_injective_schedule("test.tripled")
    op.set_attr("FTVMCompute", lambda attrs, ins, out: [te.compute(ins[0].shape, lambda *i: ins[0][i] * 3.0)])
    op.set_attr("TOpPattern", 0)
    asked = []

    def schedule(attrs, outs, target):
        asked.append(target.kind.name)
        return te.create_schedule(outs[0].op)

    register_injective_schedule("test.tripled")
    register_schedule("test.tripled", schedule, level=11)
    x = relay.var("x", shape=(3,))
    f = relay.Function([x], relay.Call(op, [x]))
    found = create_executor("graph", relay.IRModule.from_expr(f)).evaluate()(np.arange(3, dtype="float32"))
    np.testing.assert_array_equal(found.numpy(), [0, 3, 6])
    assert asked == ["llvm"]
