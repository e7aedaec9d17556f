"""`tvm.topi.nn.lstm`: recurrent layers as scans."""

from __future__ import annotations

from collections.abc import Callable

from ... import te
from ...ir.errors import ExpressionError
from ...ir.exprs import Expr
from ...operators.declare import numbers
from ...te.tensor import Tensor

__all__ = ["lstm"]
Activation = Callable[[Expr], Expr]
_GATES = "IFGO"


def _by(x: Tensor, weight: Tensor, name: str) -> Tensor:
    """x (steps, batch, inputs) by a weight (outputs, inputs)."""
    (steps, batch, inputs), (outputs, depth) = numbers(x, name), numbers(weight, name)
    if inputs != depth:
        raise ExpressionError(f"lstm: {inputs} inputs do not go with the weight '{weight.name}' of {depth}")
    k = te.reduce_axis((0, inputs), name="k")
    return te.compute((steps, batch, outputs), lambda t, b, o: te.sum(x[t, b, k] * weight[o, k], axis=k), name=name)


def lstm(
    Xs: Tensor, Wi: Tensor, Wh: Tensor, Bi: Tensor | None = None, Bh: Tensor | None = None, h_init: Tensor | None = None,
    c_init: Tensor | None = None, proj: Tensor | None = None, p_i: Tensor | None = None, p_f: Tensor | None = None, p_o: Tensor | None = None,
    f_act: Activation = te.sigmoid, g_act: Activation = te.tanh, h_act: Activation = te.tanh, reverse: bool = False,
    weight_layout: str = _GATES,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A layer of long short-term memory: the hidden and the cell states after each step of (steps, batch, inputs).

    Weights have four times as many outputs as there are cells, gates in the order of `weight_layout`. `proj` (outputs, cells)
    makes hidden states of cells; `p_i`, `p_f`, `p_o` are peepholes. `reverse`: from the last step to the first.
    """
    if sorted(weight_layout) != sorted(_GATES):
        raise ExpressionError(f"lstm has no order of gates '{weight_layout}'", "the letters I, F, G, O in any order")
    (steps, batch, _), cells = numbers(Xs, "lstm"), numbers(Wh, "lstm")[0] // 4
    hidden = numbers(proj, "lstm")[0] if proj is not None else cells
    kind, at = str(Xs.dtype), {gate: weight_layout.index(gate) * cells for gate in _GATES}
    inputs = _by(Xs, Wi, "T_inputs")

    def first(given: Tensor | None, width: int, name: str) -> Tensor:
        return te.compute(
            (1, batch, width), lambda t, b, d: te.const(0, kind) if given is None else given[b, d], name=name
        )

    h = te.placeholder((steps + 1, batch, hidden), kind, name="h")
    c = te.placeholder((steps + 1, batch, cells), kind, name="c")
    k = te.reduce_axis((0, hidden), name="k")
    recurrent: Tensor = te.compute(
        (steps + 1, batch, 4 * cells), lambda t, b, o: te.sum(h[t - 1, b, k] * Wh[o, k], axis=k), name="T_recurrent"
    )

    def gate(name: str, t: te.Var, b: te.Var, d: te.Var) -> Expr:
        o = at[name] + d
        found = inputs[steps - t if reverse else t - 1, b, o] + recurrent[t, b, o]
        for bias in (Bi, Bh):
            found = found if bias is None else found + bias[o]
        return found

    def peeped(given: Expr, peephole: Tensor | None, state: Expr, d: te.Var) -> Expr:
        return given if peephole is None else given + peephole[d] * state

    def cell(t: te.Var, b: te.Var, d: te.Var) -> Expr:
        before = c[t - 1, b, d]
        forget, take = (f_act(peeped(gate(n, t, b, d), p, before, d)) for n, p in (("F", p_f), ("I", p_i)))
        return forget * before + take * g_act(gate("G", t, b, d))

    next_c: Tensor = te.compute((steps + 1, batch, cells), cell, name="T_cell")
    next_h: Tensor = te.compute(
        (steps + 1, batch, cells),
        lambda t, b, d: f_act(peeped(gate("O", t, b, d), p_o, next_c[t, b, d], d)) * h_act(next_c[t, b, d]),
        name="T_hidden",
    )
    if proj is not None:
        j, whole = te.reduce_axis((0, cells), name="j"), next_h
        next_h = te.compute(
            (steps + 1, batch, hidden), lambda t, b, d: te.sum(whole[t, b, j] * proj[d, j], axis=j), name="T_projected"
        )
    made = te.scan(
        [first(h_init, hidden, "h_init"), first(c_init, cells, "c_init")], [next_h, next_c], [h, c], name="lstm"
    )

    def later(states: Tensor, width: int, name: str) -> Tensor:
        return te.compute((steps, batch, width), lambda t, b, d: states[t + 1, b, d], name=name)

    return later(made[0], hidden, "hidden_states"), later(made[1], cells, "cell_states")
