"""Values of small programs, and random programs."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from compassc import relay
from compassc.relay.builders import call
from compassc.relay.interpreter import Interpreter
from compassc.relay.module import IRModule

SHAPE = (2, 3)


def module(f: relay.Function, **others: relay.Function) -> IRModule:
    """A module with `main`."""
    return IRModule({"main": f, **others})


def evaluate(m: IRModule, *args: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors that `main` of a module gives, by the interpreter."""
    return _flat(Interpreter(m).evaluate()(*args))


def _flat(value: Any) -> list[np.ndarray[Any, Any]]:
    return [a for v in value for a in _flat(v)] if isinstance(value, (tuple, list)) else [np.asarray(value)]


UNARY, BINARY = ("negative", "abs"), ("add", "subtract", "multiply", "maximum")
_COMMON = ("unary", "binary", "binary", "constant", "move", "split")
_COUNTS, _PLACES, _BITS, _TRUTHS = st.integers(1, 8), st.integers(0, 100), st.integers(0, 1), st.booleans()
_STEPS = {branches: st.sampled_from((*_COMMON, *["if"] * branches)) for branches in (False, True)}
_UNARY, _BINARY = st.sampled_from(UNARY), st.sampled_from(BINARY)
# made once: hypothesis looks through each new strategy before it draws


@st.composite
def functions(draw: Any, branches: bool = False, shape: tuple[Any, ...] = SHAPE) -> relay.Function:
    """Functions of two tensors: exact operators, shared values, tuples, constants, moves; with `branches` also `if`. `shape`:
    that of the parameters, in which extents may be open."""
    params = [relay.var("x", shape=shape), relay.var("y", shape=shape)]
    values: list[relay.Expr] = list(params)

    def pick() -> relay.Expr:
        return values[draw(_PLACES) % len(values)]

    for _ in range(draw(_COUNTS)):
        kind = draw(_STEPS[branches])
        a, b = pick(), pick()
        if kind == "unary":
            values.append(call(draw(_UNARY), a))
        elif kind == "binary":
            values.append(call(draw(_BINARY), a, b))
        elif kind == "constant":
            values.append(call("add", a, relay.const(np.arange(6, dtype="float32").reshape(SHAPE))))
        elif kind == "move":
            values.append(call("transpose", call("transpose", a, axes=(1, 0)), axes=(1, 0)))
        elif kind == "split":
            values += [relay.TupleGetItem(relay.Tuple([a, b]), i) for i in (0, 1)]
        else:
            small = call("less", relay.const(draw(_BITS)), relay.const(1))
            values.append(relay.If(small, call("add", a, b), b))
    outputs = [values[-1], pick()]
    return relay.Function(params, relay.Tuple(outputs) if draw(_TRUTHS) else outputs[0])
