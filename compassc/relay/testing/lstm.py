"""Cells with gates, unrolled: each step is a function that is called with the states of the one before."""

from __future__ import annotations

from compassc.relay.analysis import free_vars
from compassc.relay.builders import build
from compassc.relay.expr import Call, Expr, Function, Tuple, TupleGetItem, Var, var
from compassc.relay.scope_builder import ScopeBuilder
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload
from compassc.relay.testing.layers import dense_add_bias
from compassc.relay.types import TensorType, TupleType

GATES = 4
_WEIGHTS = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")


def lstm_cell(num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = "") -> Function:
    """The function of an input, a pair of states and four weights that gives the output and the next states."""
    state = TensorType((batch_size, num_hidden), dtype)
    weight, bias = TensorType((GATES * num_hidden, num_hidden), dtype), TensorType((GATES * num_hidden,), dtype)
    inputs, states = Var("inputs", state), Var("states", TupleType([state, state]))
    weights = [Var(n, t) for n, t in zip(_WEIGHTS, (weight, bias, weight, bias))]
    scope, units = ScopeBuilder(), GATES * num_hidden
    i2h = scope.let(f"{name}i2h", dense_add_bias(inputs, weights[0], weights[1], units))
    h2h = scope.let(f"{name}h2h", dense_add_bias(TupleGetItem(states, 0), weights[2], weights[3], units))
    gates = scope.let(f"{name}gates", layers.made("add", i2h, h2h))
    parts = build("split", gates, GATES, axis=1)
    write, keep, candidate, show = (
        scope.let(f"{name}{gate}", layers.made("tanh" if gate == "candidate" else "sigmoid", TupleGetItem(parts, i)))
        for i, gate in enumerate(("in", "forget", "candidate", "out"))
    )
    memory = layers.made(
        "add", layers.made("multiply", keep, TupleGetItem(states, 1)), layers.made("multiply", write, candidate)
    )
    cell = scope.let(f"{name}cell", memory)
    hidden = scope.let(f"{name}hidden", layers.made("multiply", show, layers.made("tanh", cell)))
    scope.ret(Tuple([hidden, Tuple([hidden, cell])]))
    result = TupleType([state, TupleType([state, state])])
    return Function([inputs, states, *weights], scope.get(), result)


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Function:
    """The output of the last of so many steps, whose states begin with zeros. Each step has an input and weights of its own."""
    state = TensorType((batch_size, num_hidden), dtype)
    scope = ScopeBuilder()
    zeros = layers.made("zeros", (batch_size, num_hidden), dtype)
    states: Expr = scope.let(var("states", TupleType([state, state])), Tuple([zeros, zeros]))
    output: Expr = zeros
    for i in range(iterations):
        weights = [var(f"lstm_{i}_{n}") for n in _WEIGHTS]
        data = var("data" if i == 0 else f"data_{i}_weight", state)
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{i}_")
        both = scope.let(f"call_{i}", Call(cell, [data, states, *weights]))
        output = scope.let(f"output_{i}", TupleGetItem(both, 0))
        states = scope.let(f"states_{i}", TupleGetItem(both, 1))
    scope.ret(output)
    body = scope.get()
    return Function(free_vars(body), body, state)


def get_workload(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Workload:
    """The module and parameters of `get_net`."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
