"""LSTM, GRU and RNN: a layer per direction, batch first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.peepholes import stepwise
from compassc.importers.onnx.reading import Function, Recurrence
from compassc.importers.values import Refused, Value

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion

BATCH_FIRST = (1, 0, 2)


class Cell(NamedTuple):
    """An operator as layers have it: the order of its gates, the names of its outputs (sequence, last
    state, cell state)."""

    layer: str
    gates: tuple[int, ...]
    outputs: tuple[str, ...]


LSTM = Cell("BasicLSTM", (0, 3, 2, 1), ("Y", "H", "C"))
"""ONNX has i, o, f, c; the layer i, c, f, o."""
GRU = Cell("GRUv3", (1, 0, 2), ("H", "Hn"))
"""ONNX has z, r, h; the layer r, z, h."""
RNN = Cell("RNN", (0,), ("H", "Hn"))
CELLS = {"LSTM": LSTM, "GRU": GRU, "RNN": RNN}
KNOWN_ACTIVATIONS = ("SIGMOID", "TANH", "RELU")


class Weights(NamedTuple):
    """W, R and B of all directions."""

    w: Array
    r: Array
    biases: Array | None

    def plain(self, direction: int) -> tuple[Array, Array, Array]:
        """The weights of the input and of the state, and the biases of both, of a direction as ONNX has them."""
        w, r = self.w[direction], self.r[direction]
        given = np.zeros(2 * len(w)) if self.biases is None else self.biases[direction].astype(np.float64)
        return w, r, (given[: len(w)] + given[len(w) :]).astype(w.dtype)

    def of(self, cell: Cell, direction: int, apart: bool) -> tuple[Array, Array]:
        """The layer's weights and biases for a direction; `apart`: the candidate's biases are kept in two."""
        hidden, many = self.r.shape[-1], len(cell.gates)
        rows = np.concatenate([np.arange(g * hidden, (g + 1) * hidden) for g in cell.gates])
        both = np.concatenate([self.w[direction], self.r[direction]], -1)[rows]
        size = many * hidden
        given = np.zeros(2 * size) if self.biases is None else self.biases[direction].astype(np.float64)
        first, second = given[:size][rows], given[size:][rows]
        last = slice(size - hidden, size)
        if not apart:
            return both.astype(np.float32), (first + second).astype(np.float32)
        gates = (first + second)[: size - hidden]
        return both.astype(np.float32), np.concatenate([gates, first[last], second[last]]).astype(np.float32)


def _activations(functions: Sequence[Function]) -> list[str]:
    """The layer's names of functions. Refused for those that it lacks."""
    listed = [f.operator.upper() for f in functions]
    for name in listed:
        if name not in KNOWN_ACTIVATIONS:
            raise Refused(f"its activation {name} is not supported")
    return listed


def _states(
    b: Building,
    given: Sequence[Value | None],
    directions: int,
    batch: int,
    hidden: int,
    layout: int,
    dtype: np.dtype[np.generic],
) -> list[list[Value]]:
    """The initial states of each direction, [batch, hidden]."""
    found: list[list[Value]] = [[] for _ in range(directions)]
    zeros = Value.of(np.zeros(b.room(batch, hidden), dtype))
    for state in given:
        axis = 1 if layout else 0
        parts = (
            [zeros] * directions
            if state is None
            else [b.squeeze(part, [axis]) for part in b.split(state, axis, [1] * directions)]
        )
        for direction, part in enumerate(parts):
            found[direction].append(part)
    return found


def _directions(
    b: Conversion,
    cell: Cell,
    x: Value,
    weights: Weights,
    states: Sequence[Value | None],
    lengths: Array | None,
    asked: Recurrence,
    operator: str,
    peephole: Array | None = None,
) -> list[Value]:
    """All outputs, of a layer (or the steps of one with peepholes) per direction."""
    hidden, ways, layout = weights.r.shape[-1], asked.ways(operator, weights.r), asked.layout
    steps_first = x if layout else b.transpose(x, BATCH_FIRST)
    batch, steps = steps_first.shape[:2]
    if lengths is not None and (lengths != steps).any():
        raise Refused(f"its sequences have the lengths {lengths.tolist()}, not all {steps}")
    initial = _states(b, states, len(ways), batch, hidden, layout, x.dtype)
    used = [i for i in range(len(cell.outputs)) if b.uses(i) or (cell is RNN and b.uses(i + 1))] or [0]
    made: list[list[Value]] = []
    for d, way in enumerate(ways):
        names = _activations(way.functions)
        if peephole is not None:
            states_made = stepwise(
                b, steps_first, weights.plain(d), peephole[d], initial[d], names, asked.clip, reverse=way.back
            )
            made.append([states_made[i] for i in used])
            continue
        tensor = b.laid(steps_first)
        both, biases = weights.of(cell, d, bool(asked.linear_before_reset))
        shapes = [((batch, steps, hidden) if i == 0 else (batch, hidden), tensor.dtype) for i in used]
        outputs = b.layers_of(
            cell.layer,
            [tensor, *(b.laid(s) for s in initial[d])],
            shapes,
            weights=both,
            biases=biases,
            time_steps=steps,
            input_size=x.shape[-1],
            cell_size=hidden,
            direction="reverse" if way.back else "forward",
            activations=names if len(names) > 1 else names[0],
            out_sequence=[cell.outputs[i] for i in used],
            threshold=asked.clip,
        )
        made.append([b.value(t, x.dtype) for t in outputs])
    return _joined(b, made, used, layout, len(cell.outputs))


def _joined(b: Building, made: list[list[Value]], used: list[int], layout: int, many: int) -> list[Value]:
    """The outputs of the directions as one tensor each, in ONNX's order of axes."""
    found: list[Value] = [Value.of(np.zeros(0, np.float32))] * many
    for k, index in enumerate(used):
        at = 2 if index == 0 else 1
        joined = b.concat(*(b.unsqueeze(outputs[k], [at]) for outputs in made), axis=at)
        if not layout:
            joined = b.transpose(joined, (1, 2, 0, 3) if index == 0 else (1, 0, 2))
        found[index] = joined
    return found


@operator("LSTM", "GRU", "RNN", partly="lengths are the whole, gates of LSTM are not coupled")
def recurrent(
    b: Conversion,
    x: Value,
    w: Constant,
    r: Constant,
    bias: Constant | None = None,
    lengths: Constant | None = None,
    h: Value | None = None,
    c: Value | None = None,
    peephole: Constant | None = None,
    *,
    asked: Recurrence,
) -> list[Value]:
    """All outputs of the operator: the sequence [T, directions, B, H], then states [directions, B, H]."""
    if asked.input_forget:
        raise Refused("input and forget gates in one (input_forget) are not supported")
    cell, weights = CELLS[b.op], Weights(w, r, bias)
    if asked.linear_before_reset:
        cell = cell._replace(layer="GRUv1")
    holes = peephole if peephole is not None and peephole.any() else None
    return _directions(b, cell, x, weights, [h, c] if cell is LSTM else [h], lengths, asked, b.op, holes)
