"""Recurrent layers: LSTM, GRU and plain RNN over [batch, time, features]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Number, look_up, requantise, requantise_as, saturate, saturate_int32
from compassc.operators.arrays import larger, limited

INT32 = (-(2**31), 2**31 - 1)
INT48 = (-(2**47), 2**47 - 1)
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "SIGMOID": lambda x: 1 / (1 + np.exp(-x)),
    "TANH": np.tanh,
    "RELU": lambda x: larger(x, x.dtype.type(0)),
    "NONE": lambda x: x,
    "SIGN_BIT": lambda x: (x < 0).astype(x.dtype),
}


class States(NamedTuple):
    """The steps of a recurrence: the hidden states in the order of the input, the last ones."""

    sequence: Array
    last: Array
    cell: Array | None = None


def _flipped(layer: Layer, x: Array) -> Array:
    direction = layer.word("direction", "FORWARD", ("FORWARD", "REVERSE"))
    return np.flip(x, 1) if direction == "REVERSE" else x


def output_names(layer: Layer) -> list[str]:
    """The names in `out_sequence`, in upper case."""
    names = layer.attributes.get("out_sequence")
    return [str(n).upper() for n in names] if isinstance(names, list) else [str(names).upper()]


def _outputs(layer: Layer, states: States) -> list[Array]:
    """The outputs that `out_sequence` lists."""
    listed = output_names(layer)
    both = {"Y": states.sequence, "H": states.last, "C": states.cell, "HN": states.last}
    if layer.type.startswith("GRU"):
        both["H"] = states.sequence
    unknown = [n for n in listed if both.get(n) is None]
    if unknown:
        raise LayerError(f"'out_sequence' is {unknown}, which {layer.type} does not give")
    return [both[n] for n in listed]  # type: ignore[misc]


def split_weights(layer: Layer, gates: int) -> tuple[Array, Array, int]:
    """(weights of the input, weights of the state, cell size)."""
    weights = layer.constant("weights")
    inputs = layer.input.shape[-1]
    cell = weights.shape[0] // gates
    if weights.shape != (gates * cell, inputs + cell):
        raise LayerError(f"'weights' is {list(weights.shape)}, expected [{gates}C, {inputs} + C]")
    many = cell * (gates + (layer.type == "GRUv1"))
    if layer.constant("biases").size != many:
        raise LayerError(
            f"'biases' has {layer.constant('biases').size} values, but 'weights' {list(weights.shape)} say {many}"
        )
    for t in layer.inputs[1:]:
        if t.shape[-1:] != (cell,) and t.count != layer.input.shape[0] * cell:
            raise LayerError(f"'{t.name}' is {list(t.shape)}, but 'weights' {list(weights.shape)} say cells of {cell}")
    return weights[:, :inputs], weights[:, inputs:], cell


def activation_name(layer: Layer, index: int, default: str) -> str:
    """The name of one of the layer's activations."""
    names = layer.attributes.get("activations")
    listed = [str(n).upper() for n in names] if isinstance(names, list) else [str(names or default).upper()]
    name = listed[index] if index < len(listed) else default
    if name not in ACTIVATIONS:
        raise LayerError(f"the activation {name} is not among {', '.join(ACTIVATIONS)}")
    return name


def _activation(layer: Layer, index: int, default: str) -> Callable[[Array], Array]:
    return ACTIVATIONS[activation_name(layer, index, default)]


def bound_of(layer: Layer, key: str) -> float:
    value = layer.attributes.get(key)
    return float(value) if isinstance(value, (int, float)) and value > 0 else np.inf


def _clip(x: Array, bound: float) -> Array:
    return limited(x, -bound, bound) if np.isfinite(bound) else x


def lstm(layer: Layer, x: Array, h: Array, c: Array) -> list[Array]:
    """In float64; the gates are i, g, f, o."""
    wx, wh, cell = split_weights(layer, 4)
    wx, wh = wx.astype(np.float64), wh.astype(np.float64)
    biases = layer.constant("biases").reshape(-1).astype(np.float64)
    acts = [_activation(layer, k, d) for k, d in enumerate(("SIGMOID", "TANH", "TANH"))]
    bound, cell_bound, forget = (
        bound_of(layer, "threshold"),
        bound_of(layer, "cell_clip"),
        layer.number("forget_bias", 0),
    )
    hidden, state = (v.reshape(-1, cell).astype(np.float64) for v in (h, c))
    steps = []
    for xt in _flipped(layer, x.astype(np.float64)).transpose(1, 0, 2):
        s = xt @ wx.T + hidden @ wh.T + biases
        i, g, f, o = np.split(s, 4, -1)
        i, g, o, f = _clip(i, bound), _clip(g, bound), _clip(o, bound), _clip(f + forget, bound)
        state = _clip(acts[0](f) * state + acts[0](i) * acts[1](g), cell_bound)
        hidden = acts[0](o) * acts[2](state)
        steps.append(hidden)
    return _outputs(layer, States(_flipped(layer, np.stack(steps, 1)), hidden, state))


def quantised_lstm(layer: Layer, x: Array, h: Array, c: Array) -> list[Array]:
    """Gates by tables; multipliers and shifts of the steps follow those of the sums."""
    if layer.flag("basiclstm_for_qat", False):
        raise LayerError("'basiclstm_for_qat' is true; this form of the layer is not implemented")
    wx, wh, cell = split_weights(layer, 4)
    wx, wh = wx.astype(np.int64), wh.astype(np.int64)
    biases = layer.constant("biases").reshape(-1).astype(np.int64)
    bits, steps = layer.input.integer.bits, x.shape[1]
    step = LstmScales.of(layer, cell, steps)
    hidden, state = (v.reshape(-1, cell).astype(np.int64) for v in (h, c))
    found = []
    for t, xt in enumerate(_flipped(layer, x.astype(np.int64)).transpose(1, 0, 2)):
        gates = step.gates(_products(xt, wx), _products(hidden, wh), biases, bits)
        hidden, state = step.state(gates, state, t, bits)
        found.append(hidden)
    return _outputs(layer, States(_flipped(layer, np.stack(found, 1)), hidden, state))


def _products(x: Array, weights: Array) -> Array:
    return (x.astype(np.float64) @ weights.T.astype(np.float64)).astype(np.int64)


class LstmScales(NamedTuple):
    """Multipliers and shifts by use: of the state's sums, the gates, the candidate, the cell, the hidden state."""

    recurrent: tuple[Array, Array]
    gates_at: tuple[Array, Array]
    candidate: tuple[Array, Array]
    cell: tuple[Array, Array]
    hidden: tuple[Array, Array]
    previous: tuple[Array, Array]
    stored: tuple[Array, Array]
    drop: Array
    ahead: int
    tables: tuple[Array, ...]

    @classmethod
    def of(cls, layer: Layer, cell: int, steps: int) -> LstmScales:
        scale, shift = layer.scale_shift()
        single, each = 5 + 2 * steps, 1 + 5 * cell + 2 + 2 * steps
        if scale.size not in (single, each) or shift.size != scale.size:
            found = f"'scale_value' has {scale.size} values and 'shift_value' {shift.size}"
            raise LayerError(f"{found}, expected {single} or {each} for {steps} steps")
        sizes = [1, 1, 1, 1, 1] if scale.size == single else [1, 4 * cell, cell, 1, 1]
        ends = np.cumsum(sizes)
        parts = list(zip(np.split(scale, ends), np.split(shift, ends), strict=True))
        drop = (
            layer.constants["diff_shifts"].reshape(-1).astype(np.int64)
            if "diff_shifts" in layer.constants
            else np.zeros(steps, np.int64)
        )
        tables = tuple(layer.constant(f"lut_{k}").reshape(-1) for k in ("it", "ft", "ct", "ot", "h"))
        steps_at = parts[5]
        previous = steps_at[0][0::2], steps_at[1][0::2]
        stored = steps_at[0][1::2], steps_at[1][1::2]
        hw, sg, tg, ct, ho = parts[:5]
        ahead = layer.factor("lut_shift_value", 0) if layer.input.integer.bits > 8 else 0
        return cls(hw, sg, tg, ct, ho, previous, stored, np.resize(drop, steps), ahead, tables)

    def gates(self, from_x: Array, from_h: Array, biases: Array, bits: int) -> list[Array]:
        """i, g, f, o after their tables."""
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        (mw, nw), (ms, ns), (mt, nt) = self.recurrent, self.gates_at, self.candidate
        m = self.ahead
        if bits <= 8:
            u = from_x + requantise(from_h, mw, nw, 0, *INT32) + biases
            gate = requantise(u, ms, ns, 0, low, high)
            candidate = requantise(_second(u), mt, nt, 0, low, high)
        else:
            moved = requantise(requantise(from_h, 1, nw - m, 0, *INT32), mw, ns, 0, *INT32)
            u = requantise(from_x, 1, ns - m, 0, *INT32) + moved + requantise(biases, 1, ns - m, 0, *INT32)
            u = saturate_int32(u)
            gate = requantise(u, ms, m, 0, low, high)
            candidate = requantise(_second(u), mt, nt - _second(np.broadcast_to(ns, u.shape[-1:])) + m, 0, low, high)
        i, _, f, o = np.split(gate, 4, -1)
        lut_i, lut_f, lut_c, lut_o, _ = self.tables
        return [
            look_up(i, lut_i, bits, True),
            look_up(candidate, lut_c, bits, True),
            look_up(f, lut_f, bits, True),
            look_up(o, lut_o, bits, True),
        ]

    def state(self, gates: list[Array], state: Array, t: int, bits: int) -> tuple[Array, Array]:
        """(hidden state, cell state) after a step."""
        low, high = -(1 << (bits - 1)) + 1, (1 << (bits - 1)) - 1
        i, g, f, o = gates
        drop = int(self.drop[t])
        kept = requantise(f * state, self.previous[0][t], self.previous[1][t] + drop, 0, *INT32)
        e = saturate_int32(requantise(i * g, 1, drop, 0, *INT32) + kept)
        inner = requantise(e, self.cell[0], self.cell[1] - drop, 0, low, high)
        hidden = requantise(o * look_up(inner, self.tables[4], bits, True), *self.hidden, 0, low, high)
        return hidden, requantise(e, self.stored[0][t], self.stored[1][t] - drop, 0, low, high)


def _second(gates: Array) -> Array:
    """The candidate's quarter of the gates."""
    return np.split(gates, 4, -1)[1]


def gru(layer: Layer, x: Array, h: Array) -> list[Array]:
    """In float32; GRUv1 applies the reset gate after the product with the state."""
    first = layer.type == "GRUv1"
    wx, wh, cell = split_weights(layer, 3)
    wx, wh = wx.astype(np.float32), wh.astype(np.float32)
    biases = layer.constant("biases").reshape(-1).astype(np.float32)
    gate, act = _activation(layer, 0, "SIGMOID"), _activation(layer, 1, "TANH")
    bound = bound_of(layer, "threshold")
    hidden, steps = h.reshape(-1, cell).astype(np.float32), []
    for xt in _flipped(layer, x.astype(np.float32)).transpose(1, 0, 2):
        s = xt @ wx.T
        r, u = np.split(gate(_clip(s[:, : 2 * cell] + hidden @ wh[: 2 * cell].T + biases[: 2 * cell], bound)), 2, -1)
        if first:
            inner = r * (hidden @ wh[2 * cell :].T + biases[3 * cell :])
        else:
            inner = (r * hidden) @ wh[2 * cell :].T
        n = act(_clip(s[:, 2 * cell :] + biases[2 * cell : 3 * cell] + inner, bound))
        hidden = (1 - u) * n + u * hidden
        steps.append(hidden)
    return _outputs(layer, States(_flipped(layer, np.stack(steps, 1)), hidden))


def gru_scales(layer: Layer, cell: int) -> list[tuple[Array, Array]]:
    """The six multipliers and shifts of a GRU, each one or one per channel."""
    scale, shift = layer.scale_shift()
    sizes = [1] * 6 if scale.size == 6 else [2 * cell, 2 * cell, cell, cell, 1, 1]
    if scale.size not in (6, sum(sizes)) or shift.size != scale.size:
        found = f"'scale_value' has {scale.size} values and 'shift_value' {shift.size}"
        raise LayerError(f"{found}, expected 6 or {sum(sizes)} each")
    ends = np.cumsum(sizes)[:-1]
    return list(zip(np.split(scale, ends), np.split(shift, ends), strict=True))


def quantised_gru(layer: Layer, x: Array, h: Array) -> list[Array]:
    """Of 16-bit layers the biases are shifted again at every step and batch element, as the definition has it."""
    bits = layer.input.integer.bits
    wx, wh, cell = split_weights(layer, 3)
    wx, wh = wx.astype(np.int64), wh.astype(np.int64)
    six = gru_scales(layer, cell)
    cells = _GruCell(layer, wx, wh, cell, six, bits)
    samples, hidden = _flipped(layer, x.astype(np.int64)), h.reshape(-1, cell).astype(np.int64)
    each = len(samples) if bits <= 8 else 1
    parts = [cells.steps(samples[i : i + each], hidden[i : i + each]) for i in range(0, len(samples), each)]
    found = np.concatenate(parts) if parts else np.zeros((*x.shape[:2], cell), np.int64)
    return _outputs(layer, States(_flipped(layer, found), found[:, -1]))


class _GruCell:
    """One step of a quantised GRU; of 16-bit layers it keeps the biases as the steps before left them."""

    def __init__(
        self, layer: Layer, wx: Array, wh: Array, cell: int, six: list[tuple[Array, Array]], bits: int
    ) -> None:
        self.first = layer.type == "GRUv1"
        self.wx, self.wh, self.cell, self.six, self.bits = wx, wh, cell, six, bits
        biases = layer.constant("biases").reshape(-1).astype(np.int64)
        self.gate_biases, self.biases = biases[: 2 * cell], biases[2 * cell : 3 * cell]
        self.hidden_biases = biases[3 * cell :]
        self.gates = layer.constant("lut_rt").reshape(-1)
        self.candidate = layer.constant("lut_ht").reshape(-1)
        self.remain = layer.integer("remain_shift", 10)
        self.own = (
            (layer.factor("hidden_scale_value", 1), layer.factor("hidden_shift_value", 0)) if self.first else (1, 0)
        )
        self.low, self.high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def steps(self, x: Array, hidden: Array) -> Array:
        """The hidden states [batch, time, cell] for [batch, time, features], of which `hidden` is the first."""
        found = []
        for xt in x.transpose(1, 0, 2):
            hidden = self._step(xt, hidden)
            found.append(hidden)
        return np.stack(found, 1)

    def _step(self, x: Array, h: Array) -> Array:
        two = 2 * self.cell
        from_x, from_h = _products(x, self.wx), _products(h, self.wh[:two])
        r, u = np.split(look_up(self._gate_sums(from_x[:, :two], from_h), self.gates, self.bits, True), 2, -1)
        if self.first:
            self._shift_hidden_biases()
            own = requantise(_products(h, self.wh[two:]) + self.hidden_biases, *self.own, 0, self.low, self.high)
            inner = r * own
        else:
            inner = _products(np.rint(r * h / float(1 << self.bits)).astype(np.int64), self.wh[two:])
        n = look_up(self._candidate_sums(from_x[:, two:], inner), self.candidate, self.bits, True)
        share = requantise((self.high - u) * n, *self.six[4], 0, *INT32)
        return requantise(share + u * h, *self.six[5], 0, self.low + 1, self.high)

    def _gate_sums(self, from_x: Array, from_h: Array) -> Array:
        (m0, n0), (m1, n1) = self.six[:2]
        if self.bits <= 8:
            total = from_x + requantise(from_h, m0, n0, 0, *INT32) + self.gate_biases
            return requantise(total, m1, n1, 0, self.low, self.high)
        p0, p1 = (np.maximum(n - self.remain, 0) for n in (n0, n1))
        q0, q1 = (np.minimum(self.remain, n) for n in (n0, n1))
        self.gate_biases = requantise(self.gate_biases, 1, p1, 0, *INT32)
        moved = requantise(requantise(from_h, 1, p0, 0, *INT32), m0, q0 + p1, 0, *INT32)
        total = requantise(from_x, 1, p1, 0, *INT32) + moved + self.gate_biases
        return requantise(total, m1, q1, 0, self.low, self.high)

    def _shift_hidden_biases(self) -> None:
        if self.bits > 8:
            self.hidden_biases = requantise(
                self.hidden_biases, 1, np.maximum(self.six[2][1] - self.remain, 0), 0, *INT32
            )

    def _candidate_sums(self, from_x: Array, inner: Array) -> Array:
        (m2, n2), (m3, n3) = self.six[2:4]
        if self.bits <= 8:
            total = from_x + requantise(inner, m2, n2, 0, *INT32) + self.biases
            return requantise(total, m3, n3, 0, self.low, self.high)
        p2, p3 = (np.maximum(n - self.remain, 0) for n in (n2, n3))
        q2, q3 = (np.minimum(self.remain, n) for n in (n2, n3))
        self.biases = requantise(self.biases, 1, p3, 0, *INT32)
        moved = requantise(requantise(inner, 1, p2, 0, *INT32), m2, q2 + p3, 0, *INT32)
        total = requantise(from_x, 1, p3, 0, *INT32) + moved + self.biases
        return requantise(total, m3, q3, 0, self.low, self.high)


def rnn(layer: Layer, x: Array, h: Array) -> list[Array]:
    wx, wh, cell = split_weights(layer, 1)
    wx, wh = wx.astype(np.float32), wh.astype(np.float32)
    biases = layer.constant("biases").reshape(-1).astype(np.float32)
    name, bound = layer.word("activations", "TANH"), bound_of(layer, "threshold")
    hidden, steps = h.reshape(-1, cell).astype(np.float32), []
    for xt in _flipped(layer, x.astype(np.float32)).transpose(1, 0, 2):
        u = _clip(xt @ wx.T + hidden @ wh.T + biases, bound)
        if name == "CLIP":
            hidden = limited(u, layer.number("clip_min"), layer.number("clip_max"))
        elif name in ACTIVATIONS:
            hidden = ACTIVATIONS[name](u).astype(np.float32)
        else:
            raise LayerError(f"'activations' is {name}, expected CLIP or one of {', '.join(ACTIVATIONS)}")
        steps.append(hidden)
    return [_flipped(layer, np.stack(steps, 1)), hidden][: len(layer.outputs)]


def quantised_rnn(layer: Layer, x: Array, h: Array) -> list[Array]:
    wx, wh, cell = split_weights(layer, 1)
    biases = layer.constant("biases").reshape(-1).astype(np.int64)
    scale, shift = (np.resize(v, 3) for v in layer.scale_shift(of=3))
    bits, out = layer.input.integer.bits, layer.output
    wide, name = INT32 if bits <= 8 else INT48, layer.word("activations", "TANH")
    hidden, steps = h.reshape(-1, cell).astype(np.int64), []
    for xt in _flipped(layer, x.astype(np.int64)).transpose(1, 0, 2):
        u: Array = requantise(_products(xt, wx.astype(np.int64)), scale[0], shift[0], 0, *wide)
        u = u + requantise(_products(hidden, wh.astype(np.int64)), scale[1], shift[1], 0, *wide) + biases
        if name in ("TANH", "SIGMOID"):
            at = requantise(u, scale[2], shift[2], 0, out.integer.low, out.integer.high)
            hidden = look_up(at, layer.constant("lut").reshape(-1), bits, True)
        elif name == "SIGN_BIT":
            hidden = (u < 0).astype(np.int64)
        elif name in ("RELU", "NONE", "CLIP"):
            limits: tuple[Number, Number] = (
                (layer.integer("clip_min"), layer.integer("clip_max")) if name == "CLIP" else wide
            )
            u = np.maximum(u, 0) if name == "RELU" else saturate(u, *limits)
            hidden = requantise_as(out.dtype, u, scale[2], shift[2], out.scalar_zero, out.low, out.high)
        else:
            raise LayerError(f"'activations' is {name}, which has no quantised form")
        steps.append(hidden)
    return [_flipped(layer, np.stack(steps, 1)), hidden][: len(layer.outputs)]
