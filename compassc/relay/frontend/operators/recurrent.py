"""Recurrent networks, as functions that call themselves for each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compassc.importers.onnx.reading import AFFINE, SCALED_TANH, Function, Recurrence
from compassc.relay.frontend.operators.control import repeated
from compassc.relay.frontend.terms import INDEX, Expressions, Size, Term, operator

Cell = Callable[[Expressions, Term, list[Term]], list[Term]]
"""Of an input and the states: the next states."""


def activation(b: Expressions, function: Function, x: Term) -> Term:
    """A function of a recurrent network."""
    numbers = function.numbers
    if function.operator == AFFINE:
        return b.call("add", b.call("multiply", x, numbers["alpha"]), numbers["beta"])
    if function.operator == SCALED_TANH:
        return b.call("multiply", b.call("tanh", b.call("multiply", x, numbers["beta"])), numbers["alpha"])
    return b.made(function.operator, x, **numbers)


class Gates:
    """The weights of one direction, and its functions."""

    def __init__(
        self, b: Expressions, direction: int, w: Term, r: Term, bias: Term | None, functions: Sequence[Function],
        clip: float | None, gates: int,
    ) -> None:  # fmt: skip
        def own(x: Term) -> Term:
            return b.call("take", x, np.asarray(direction, INDEX), axis=0)

        self.b, self.clip, self.functions, self.own, self.gates = b, clip, functions, own, gates
        self.w, self.r = own(w), own(r)
        self.input_bias = self.state_bias = None
        if bias is not None:
            self.input_bias, self.state_bias = b.calls("split", own(bias), indices_or_sections=2, axis=0)

    def apply(self, place: int, x: Term) -> Term:
        """One of its functions, of limited numbers."""
        if self.clip is not None:
            x = self.b.call("clip", x, a_min=-self.clip, a_max=self.clip)
        return activation(self.b, self.functions[place], x)

    def of_input(self, x: Term) -> list[Term]:
        """What an input gives each gate."""
        return self._parts(x, self.w, self.input_bias)

    def of_state(self, h: Term) -> list[Term]:
        """What a state gives each gate."""
        return self._parts(h, self.r, self.state_bias)

    def _parts(self, x: Term, weights: Term, bias: Term | None) -> list[Term]:
        b = self.b
        made = b.call("nn.dense", x, weights)
        made = made if bias is None else b.call("add", made, bias)
        return b.calls("split", made, indices_or_sections=self.gates, axis=1) if self.gates > 1 else [made]


def _rnn(g: Gates, b: Expressions, x: Term, states: list[Term]) -> list[Term]:
    (h,) = states
    return [g.apply(0, b.call("add", g.of_input(x)[0], g.of_state(h)[0]))]


def _gru(g: Gates, before: bool, b: Expressions, x: Term, states: list[Term]) -> list[Term]:
    (h,) = states
    given, kept = g.of_input(x), g.of_state(h)
    z, r = (g.apply(0, b.call("add", given[i], kept[i])) for i in range(2))
    if before:  # the state is multiplied by the reset gate behind its weights
        inner = b.call("multiply", r, kept[2])
    else:
        inner = g.of_state(b.call("multiply", r, h))[2]
    n = g.apply(1, b.call("add", given[2], inner))
    return [b.call("add", b.call("multiply", b.call("subtract", b.of(1.0, z), z), n), b.call("multiply", z, h))]


def _lstm(
    g: Gates, peepholes: list[Term] | None, coupled: bool, b: Expressions, x: Term, states: list[Term]
) -> list[Term]:
    h, c = states
    i, o, f, n = (b.call("add", u, v) for u, v in zip(g.of_input(x), g.of_state(h), strict=True))
    if peepholes is not None:
        i, f = (
            b.call("add", i, b.call("multiply", peepholes[0], c)),
            b.call("add", f, b.call("multiply", peepholes[2], c)),
        )
    i = g.apply(0, i)
    f = b.call("subtract", b.of(1.0, i), i) if coupled else g.apply(0, f)
    after = b.call("add", b.call("multiply", f, c), b.call("multiply", i, g.apply(1, n)))
    if peepholes is not None:
        o = b.call("add", o, b.call("multiply", peepholes[1], after))
    return [b.call("multiply", g.apply(0, o), activation(b, g.functions[2], after)), after]


def _sequence(
    b: Expressions, cell: Cell, x: Term, states: list[Term], lengths: Term | None, back: bool
) -> tuple[Term, list[Term]]:
    """All outputs of a direction, and its last states. Beyond a sequence's length outputs are 0 and states stay."""
    steps = b.size(x, 0)
    limit = b.of(np.asarray(steps, INDEX)) if isinstance(steps, int) else steps
    if back and lengths is not None:
        x = b.call("reverse_sequence", x, lengths, seq_axis=0, batch_axis=1)
    elif back:
        x = b.call("reverse", x, axis=0)

    def once(step: Term, inside: Sequence[Term]) -> tuple[None, list[Term], list[Term]]:
        after = cell(b, b.call("take", x, step, axis=0), list(inside))
        out = after[0]
        if lengths is not None:
            within = b.call("expand_dims", b.call("less", b.cast(step, "int32"), lengths), axis=1)
            out = b.call("where", within, out, b.call("zeros_like", out))
            after = [b.call("where", within, new, old) for new, old in zip(after, inside, strict=True)]
        return None, after, [out]

    *last, outputs = repeated(b, states, None, limit, once)
    if back and lengths is not None:
        outputs = b.call("reverse_sequence", outputs, lengths, seq_axis=0, batch_axis=1)
    elif back:
        outputs = b.call("reverse", outputs, axis=0)
    return outputs, last


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@operator("RNN", "GRU", "LSTM", since=7)
def recurrent(
    b: Expressions, x: Term, w: Term, r: Term, bias: Term | None = None, lengths: Term | None = None, h: Term | None = None,
    c: Term | None = None, peepholes: Term | None = None, *, asked: Recurrence,
) -> list[Term]:  # fmt: skip
    """Each direction is a loop over the steps, which may be any number."""
    kind, ways = b.op, asked.ways(b.op, r)
    size = r.shape[-1]
    if asked.layout:
        x = b.transpose(x, [1, 0, 2])
        h, c = (None if s is None else b.transpose(s, [1, 0, 2]) for s in (h, c))
    outputs, finals = [], []
    for place, way in enumerate(ways):
        gates = Gates(b, place, w, r, bias, way.functions, asked.clip, GATES[kind])
        states = []
        for given in (h, c) if kind == "LSTM" else (h,):
            nothing: list[Size] = [b.size(x, 1), size]
            states.append(gates.own(given) if given is not None else b.full(b.of(np.zeros((), x.dtype)), nothing))
        cell = _cell(kind, gates, peepholes, bool(asked.linear_before_reset), bool(asked.input_forget))
        made, last = _sequence(b, cell, x, states, lengths, way.back)
        outputs.append(made)
        finals.append(last)
    y = b.call("stack", outputs, axis=1)
    last_states = [b.call("stack", list(column), axis=0) for column in zip(*finals, strict=True)]
    if asked.layout:
        return [b.transpose(y, [2, 0, 1, 3]), *(b.transpose(s, [1, 0, 2]) for s in last_states)]
    return [y, *last_states]


def _cell(kind: str, gates: Gates, peepholes: Term | None, before: bool, coupled: bool) -> Cell:
    b = gates.b
    if kind == "RNN":
        return lambda _, x, s: _rnn(gates, b, x, s)
    if kind == "GRU":
        return lambda _, x, s: _gru(gates, before, b, x, s)
    holes = None
    if peepholes is not None:
        holes = b.calls("split", gates.own(peepholes), indices_or_sections=3, axis=0)
    return lambda _, x, s: _lstm(gates, holes, coupled, b, x, s)
