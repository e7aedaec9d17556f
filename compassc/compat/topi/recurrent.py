"""`tvm.topi.nn.lstm`: recurrent layers as scans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compass_core.dataclass import dataclass

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
    made: Tensor = te.compute(
        (steps, batch, outputs), lambda t, b, o: te.sum(x[t, b, k] * weight[o, k], axis=k), name=name
    )
    return made


@dataclass(frozen=True)
class _Cells:
    """The sums that reach the gates of a layer, and what a step makes of the states before it."""

    inputs: Tensor
    recurrent: Tensor
    biases: Sequence[Tensor]
    places: Mapping[str, int]
    """Where the outputs of each gate begin."""
    peepholes: Mapping[str, Tensor | None]
    acts: tuple[Activation, Activation, Activation]
    reverse: bool

    def gate(self, name: str, t: te.Var, b: te.Var, d: te.Var, state: Expr) -> Expr:
        """The sum of a gate for a cell in the step `t`, from 1; `state` is what its peephole sees."""
        o, steps = self.places[name] + d, numbers(self.inputs, "lstm")[0]
        found = self.inputs[steps - t if self.reverse else t - 1, b, o] + self.recurrent[t, b, o]
        for bias in self.biases:
            found = found + bias[o]
        peephole = self.peepholes.get(name)
        made: Expr = found if peephole is None else found + peephole[d] * state
        return made

    def cell(self, c: Tensor) -> Callable[[te.Var, te.Var, te.Var], Expr]:
        """The next states of cells, of those in `c`."""
        f_act, g_act, _ = self.acts

        def element(t: te.Var, b: te.Var, d: te.Var) -> Expr:
            before = c[t - 1, b, d]
            forget, take = (f_act(self.gate(n, t, b, d, before)) for n in "FI")
            made: Expr = forget * before + take * g_act(self.gate("G", t, b, d, before))
            return made

        return element

    def hidden(self, c: Tensor) -> Callable[[te.Var, te.Var, te.Var], Expr]:
        """The next hidden states, of the next states of cells."""
        f_act, _, h_act = self.acts
        return lambda t, b, d: f_act(self.gate("O", t, b, d, c[t, b, d])) * h_act(c[t, b, d])


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
    hidden, kind = numbers(proj, "lstm")[0] if proj is not None else cells, str(Xs.dtype)
    h = te.placeholder((steps + 1, batch, hidden), kind, name="h")
    c = te.placeholder((steps + 1, batch, cells), kind, name="c")
    k = te.reduce_axis((0, hidden), name="k")
    recurrent: Tensor = te.compute(
        (steps + 1, batch, 4 * cells), lambda t, b, o: te.sum(h[t - 1, b, k] * Wh[o, k], axis=k), name="T_recurrent"
    )
    step = _Cells(
        _by(Xs, Wi, "T_inputs"), recurrent, [bias for bias in (Bi, Bh) if bias is not None],
        {gate: weight_layout.index(gate) * cells for gate in _GATES}, {"I": p_i, "F": p_f, "O": p_o},
        (f_act, g_act, h_act), reverse,
    )  # fmt: skip
    next_c: Tensor = te.compute((steps + 1, batch, cells), step.cell(c), name="T_cell")
    next_h: Tensor = te.compute((steps + 1, batch, cells), step.hidden(next_c), name="T_hidden")
    if proj is not None:
        j, whole = te.reduce_axis((0, cells), name="j"), next_h
        next_h = te.compute(
            (steps + 1, batch, hidden), lambda t, b, d: te.sum(whole[t, b, j] * proj[d, j], axis=j), name="T_projected"
        )
    first = [_first(h_init, (1, batch, hidden), kind, "h_init"), _first(c_init, (1, batch, cells), kind, "c_init")]
    made = te.scan(first, [next_h, next_c], [h, c], name="lstm")
    return _later(made[0], "hidden_states"), _later(made[1], "cell_states")


def _first(given: Tensor | None, shape: tuple[int, int, int], kind: str, name: str) -> Tensor:
    """The states before the first step: those that are given, or zeros."""
    made: Tensor = te.compute(shape, lambda t, b, d: te.const(0, kind) if given is None else given[b, d], name=name)
    return made


def _later(states: Tensor, name: str) -> Tensor:
    """The states after each step."""
    steps, batch, width = numbers(states, "lstm")
    made: Tensor = te.compute((steps - 1, batch, width), lambda t, b, d: states[t + 1, b, d], name=name)
    return made
