"""LSTMs whose gates see the cell state (peepholes), which the layer has none of: the steps one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.operators.activations import activation, clipped
from compassc.importers.onnx.operators.elementwise import arithmetic
from compassc.importers.onnx.operators.linear import fully_connected
from compassc.importers.values import Value


def stepwise(
    b: Building,
    x: Value,
    weights: tuple[Array, Array, Array],
    peephole: Array,
    states: Sequence[Value],
    activations: Sequence[str],
    clip: float | None,
    reverse: bool,
) -> list[Value]:
    """The sequence [B, T, H], the last state and the last cell state [B, H] of one direction.

    `x`: [B, T, I]. `weights`: of the input [4H, I] and of the state [4H, H], and biases [4H], for the gates i, o, f, c in
    this order. `peephole`: [3H], of i, o and f. i and f see the state before the step, o the one after it.
    """
    w, r, biases = weights
    size = r.shape[-1]
    of_input, of_output, of_forget = (Value.of(peephole[k * size : (k + 1) * size]) for k in range(3))
    known = fully_connected(b, x, w, biases)
    hidden, cell = states
    nothing = np.zeros(4 * size, np.float32)

    def gate(total: Value, seen: Value | None, kind: str) -> Value:
        total = total if seen is None else arithmetic(b, total, seen, "Add")
        return activation(b, total if clip is None else clipped(b, total, -clip, clip), kind)

    steps: list[Value] = []
    for t in reversed(range(x.shape[1])) if reverse else range(x.shape[1]):
        step = b.squeeze(b.sliced(known, [t], [t + 1], [1], [1]), [1])
        total = arithmetic(b, step, fully_connected(b, hidden, r, nothing), "Add")
        i, o, f, c = b.split(total, 1, [size] * 4)
        kept = arithmetic(b, gate(f, arithmetic(b, cell, of_forget, "Mul"), activations[0]), cell, "Mul")
        new = arithmetic(
            b, gate(i, arithmetic(b, cell, of_input, "Mul"), activations[0]), gate(c, None, activations[1]), "Mul"
        )
        cell = arithmetic(b, kept, new, "Add")
        shown = gate(o, arithmetic(b, cell, of_output, "Mul"), activations[0])
        hidden = arithmetic(b, shown, activation(b, cell, activations[2]), "Mul")
        steps.append(b.unsqueeze(hidden, [1]))
    sequence = steps[::-1] if reverse else steps
    return [sequence[0] if len(sequence) == 1 else b.concat(*sequence, axis=1), hidden, cell]
