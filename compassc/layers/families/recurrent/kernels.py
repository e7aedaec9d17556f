"""Kernels of recurrent layers: what happens to the sums of a step; `frame` has the loops around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers import arithmetic
from compassc.layers.emit import look_up
from compassc.layers.families.activation.reference import METHODS
from compassc.layers.families.recurrent.frame import Gates, Recurrence
from compassc.layers.families.recurrent.reference import (
    ACTIVATIONS,
    INT32,
    LstmScales,
    activation_name,
    bound_of,
    gru_scales,
    output_names,
    split_weights,
)
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.operator_lanes import InLanes
from compassc.layers.requantise import (
    INT32_MAX,
    Pair,
    Sum,
    limited,
    requantise,
    rescaled,
    rescaled_pair,
    saturated,
    shifted_pair,
    total,
)
from compassc.layers.vectors import clamp, everywhere


def _frame(
    layer: Layer, phases: Sequence[Gates], keeps: Tensor | bool = False, tables: Sequence[Array] = ()
) -> Recurrence:
    """The loops of a layer, whose quantised form looks up its tables as often as they are given."""
    split_weights(layer, sum(map(len, phases)))
    h, x = layer.inputs[1], layer.input
    if layer.is_quantised:
        for t in (*layer.inputs[1:], *layer.outputs):
            if t.dtype != h.dtype or not t.integer.signed or t.integer.bits != x.integer.bits:
                raise LayerError(f"'{t.name}' is {t.dtype}; states must be signed integers of the input's width")
    elif any(t.is_integer for t in (*layer.inputs, *layer.outputs)) or layer.constant("weights").dtype.kind in "iu":
        raise LayerError("it mixes floats and integers")
    return Recurrence(layer, layer.constant("weights"), phases, keeps, sum(t.nbytes for t in tables))


def _outputs(layer: Layer, *wanted: str) -> list[Tensor | None]:
    names = output_names(layer)
    if len(set(names)) != len(names) or len(names) != len(layer.outputs):
        raise LayerError(f"'out_sequence' is {names}, but the layer has {len(layer.outputs)} outputs")
    return _of_shapes(layer, [layer.outputs[names.index(n)] if n in names else None for n in wanted])


def _of_shapes(layer: Layer, found: list[Tensor | None]) -> list[Tensor | None]:
    """The same outputs. LayerError where the first is no sequence of states, or another one no state."""
    steps, state = layer.input.shape[:2], layer.inputs[1].shape
    for i, t in enumerate(found):
        expected = state if i else (*steps, *state[1:])
        if t is not None and t.shape != expected:
            raise LayerError(f"'{t.name}' is declared as {list(t.shape)}, but the layer gives {list(expected)}")
    return found


def _table(f: Recurrence, value: Value, table: Array) -> Value:
    bits = f.layer.input.integer.bits
    found = look_up(f.k, f.k.shifted(value, 1 << (bits - 1)), table, bits)
    return found.within(int(table.min()), int(table.max()))


def _product(k: LayerKernel, a: Value, b: Value) -> Value:
    """The product of two values; it must fit int32."""
    largest = a.magnitude * b.magnitude
    if largest > INT32_MAX:
        raise LayerError(f"products of up to {largest} do not fit 32 bits, which no kernel here computes with")
    return k.let(a * b, -largest, largest)


def _whole(k: LayerKernel, sums: Sum, shift: Array) -> Value:
    """Sums over 2^shift, rounded and limited to 32 bits."""
    return shifted_pair(k, sums, shift) if isinstance(sums, Pair) else rescaled(k, sums, 1, shift)


def _of(numbers: Array, gate: int, cell: int) -> Array:
    return numbers if numbers.size == 1 else numbers[gate * cell : (gate + 1) * cell]


def _real(f: Recurrence, gate: int, of: str) -> Value:
    """A sum of real numbers, or of bytes."""
    found = f.sums[gate, of]
    assert isinstance(found, Value)
    return found


def _bounded(k: LayerKernel, value: Value, bound: float) -> Value:
    if not np.isfinite(bound):
        return value
    most = k.number(float(bound))
    return k.let(clamp(value, 0.0 - most, most))


def _activated(k: LayerKernel, name: str, value: Value) -> Value:
    if name in ("SIGMOID", "TANH"):
        return InLanes(k)(METHODS[name].operator, value)
    if name == "RELU":
        return k.let(S.max(value, 0.0))
    return k.let(S.vsel(value * 0.0 + 1.0, value * 0.0, value < 0.0)) if name == "SIGN_BIT" else value


# -- LSTM


@kernel("BasicLSTM")
def lstm(layer: Layer) -> Kernel:
    sequence, last, cell = _outputs(layer, "Y", "H", "C")
    tables = [layer.constant(f"lut_{n}") for n in ("it", "ft", "ct", "ot", "h")] if layer.is_quantised else []
    f = _frame(layer, [(0, 1, 2, 3)], layer.inputs[2], tables)
    with f.steps(), f.phase():
        hidden, state = _quantised_lstm(f) if layer.is_quantised else _float_lstm(f)
        f.hold(hidden)
        f.keep(state)
        f.give(hidden, sequence, last)
        f.give(state, None, cell)
    return f.k.kernel()


def _float_lstm(f: Recurrence) -> tuple[Value, Value]:
    layer, k = f.layer, f.k
    biases = layer.constant("biases").reshape(-1).astype(np.float64)
    biases[2 * f.cell : 3 * f.cell] += layer.number("forget_bias", 0)
    names = [activation_name(layer, n, d) for n, d in enumerate(("SIGMOID", "TANH", "TANH"))]
    gates = []
    for n, bias in enumerate(f.biases(biases[None])):
        s = k.let(_real(f, n, "x") + _real(f, n, "h") + bias)
        gates.append(_activated(k, names[int(n == 1)], _bounded(k, s, bound_of(layer, "threshold"))))
    i, g, forget, o = gates
    state = _bounded(k, k.let(forget * f.kept() + i * g), bound_of(layer, "cell_clip"))
    return k.let(o * _activated(k, names[2], state)), state


def _quantised_lstm(f: Recurrence) -> tuple[Value, Value]:
    layer, k, bits = f.layer, f.k, f.layer.input.integer.bits
    by = LstmScales.of(layer, f.cell, f.count)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    i, g, forget, o = _lstm_gates(f, by, bits, low, high)
    c0 = layer.inputs[2].integer
    (mp, np_), (ms, ns), drop = by.previous, by.stored, by.drop
    with k.one_of(f.t):
        old = rescaled(k, _product(k, forget, f.kept(c0.low, c0.high)), mp, np_ + drop)
        both = saturated(k, total(k, rescaled(k, _product(k, i, g), 1, drop), old))
        inner = requantise(k, both, by.cell[0], by.cell[1] - drop, 0, low + 1, high)
        state = requantise(k, both, ms, ns - drop, 0, low + 1, high)
    shown = _table(f, inner, by.tables[4])
    return requantise(k, _product(k, o, shown), *by.hidden, 0, low + 1, high), state


def _lstm_gates(f: Recurrence, by: LstmScales, bits: int, low: int, high: int) -> list[Value]:
    """i, g, f, o after their tables."""
    k, cell, m = f.k, f.cell, by.ahead
    (mw, nw), (ms, ns), (mt, nt) = by.recurrent, by.gates_at, by.candidate
    biases = f.layer.constant("biases").reshape(-1).astype(np.int64)
    if bits > 8:
        biases = arithmetic.requantise(biases, 1, ns - m, 0, *INT32)
    gates = []
    for gate, bias in enumerate(f.biases(biases[None])):
        own_m, own_n = _of(ms, gate, cell), _of(ns, gate, cell)
        if bits <= 8:
            u = total(k, _real(f, gate, "x"), rescaled(k, _real(f, gate, "h"), mw, nw), bias)
            factor = (mt, nt) if gate == 1 else (own_m, own_n)
        else:
            moved = rescaled(k, _whole(k, f.sums[gate, "h"], nw - m), mw, own_n)
            u = saturated(k, total(k, _whole(k, f.sums[gate, "x"], own_n - m), moved, bias))
            factor = (mt, nt - own_n + m) if gate == 1 else (own_m, np.asarray(m))
        gates.append(_table(f, requantise(k, u, *factor, 0, low, high), by.tables[(0, 2, 1, 3)[gate]]))
    return gates


# -- GRU


@kernel("GRUv1", "GRUv3")
def gru(layer: Layer) -> Kernel:
    first = layer.type == "GRUv1"
    sequence, last = _outputs(layer, "H", "HN")
    tables = [layer.constant(n) for n in ("lut_rt", "lut_rt", "lut_ht")] if layer.is_quantised else []
    f = _frame(layer, [(0, 1, 2)] if first else [(0, 1), (2,)], not first, tables)
    parts = _QuantisedGru(f) if layer.is_quantised else _FloatGru(f)
    with f.steps():
        with f.phase():
            reset, update = parts.gates()
            if first:
                parts.end(parts.candidate(reset), update, sequence, last)
            else:
                f.hand(parts.scaled_state(reset))
                f.keep(update)
        if not first:
            with f.phase(1):
                known = (update.low, update.high) if layer.is_quantised else ()
                parts.end(parts.candidate(None), f.kept(*known), sequence, last)
    return f.k.kernel()


class _Gru:
    """What all have: the end of a step."""

    f: Recurrence

    def end(self, candidate: Value, update: Value, sequence: Tensor | None, last: Tensor | None) -> None:
        hidden = self.state(candidate, update, self.f.before())
        self.f.hold(hidden)
        self.f.give(hidden, sequence, last)

    def state(self, candidate: Value, update: Value, h: Value) -> Value:
        raise NotImplementedError


class _FloatGru(_Gru):
    def __init__(self, frame: Recurrence) -> None:
        self.f, layer = frame, frame.layer
        self.rows = layer.constant("biases").reshape(1, -1).astype(np.float32)
        self.names = [activation_name(layer, n, d) for n, d in enumerate(("SIGMOID", "TANH"))]
        self.bound = bound_of(layer, "threshold")

    def gates(self) -> list[Value]:
        f, k, found = self.f, self.f.k, []
        for g, bias in enumerate(f.biases(self.rows[:, : 2 * f.cell])):
            s = k.let(_real(f, g, "x") + _real(f, g, "h") + bias)
            found.append(_activated(k, self.names[0], _bounded(k, s, self.bound)))
        return found

    def scaled_state(self, reset: Value) -> Value:
        return self.f.k.let(reset * self.f.before())

    def candidate(self, reset: Value | None) -> Value:
        f, k, biases = self.f, self.f.k, self.f.biases(self.rows[:, 2 * self.f.cell :])
        inner = _real(f, 2, "h")
        if reset is not None:
            inner = k.let(reset * (inner + biases[1]))
        s = k.let(_real(f, 2, "x") + biases[0] + inner)
        return _activated(k, self.names[1], _bounded(k, s, self.bound))

    def state(self, candidate: Value, update: Value, h: Value) -> Value:
        return self.f.k.let((everywhere(1.0, "float32") - update) * candidate + update * h)


def _repeated(biases: Array, shift: Array, steps: int) -> Array:
    """Biases as they are after each step's own shift, until they no longer change."""
    rows: list[Array] = []
    for _ in range(steps):
        biases = arithmetic.requantise(biases, 1, shift, 0, *INT32)
        if rows and (rows[-1] == biases).all():
            break
        rows.append(biases)
    return np.stack(rows)


class _QuantisedGru(_Gru):
    def __init__(self, frame: Recurrence) -> None:
        self.f, layer = frame, frame.layer
        self.bits = layer.input.integer.bits
        self.six = gru_scales(layer, frame.cell)
        self.low, self.high = -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        self.remain = layer.integer("remain_shift", 10)
        self.biases = layer.constant("biases").reshape(-1).astype(np.int64)
        self.luts = [layer.constant(n).reshape(-1) for n in ("lut_rt", "lut_ht")]

    def _early(self, n: Array) -> Array:
        found: Array = np.maximum(n - self.remain, 0)
        return found

    def _late(self, n: Array) -> Array:
        return np.minimum(n, self.remain)

    def _rows(self, biases: Array, shift: Array) -> list[Value]:
        """Of 16-bit layers the biases are shifted again at every step, of every batch element."""
        if self.bits <= 8:
            return self.f.biases(biases[None])
        return self.f.biases(_repeated(biases, self._early(shift), self.f.batch * self.f.count))

    def _sum(
        self, gate: int, inner: Sum, bias: Value, first: tuple[Array, Array], second: tuple[Array, Array]
    ) -> Value:
        """The index of the gate's table."""
        k, own, (m0, n0), (m1, n1) = self.f.k, self.f.sums[gate, "x"], first, second
        if self.bits <= 8:
            assert isinstance(inner, Value)
            parts, late = (own, rescaled(k, inner, m0, n0), bias), n1
        else:
            p1, late = self._early(n1), self._late(n1)
            moved = rescaled(k, _whole(k, inner, self._early(n0)), m0, self._late(n0) + p1)
            parts = (_whole(k, own, p1), moved, bias)
        return requantise(k, total(k, *parts), m1, late, 0, self.low, self.high)

    def gates(self) -> list[Value]:
        cell, (first, second) = self.f.cell, self.six[:2]
        found = []
        for g, bias in enumerate(self._rows(self.biases[: 2 * cell], second[1])):
            (m0, n0), (m1, n1) = ((_of(m, g, cell), _of(n, g, cell)) for m, n in (first, second))
            at = self._sum(g, self.f.sums[g, "h"], bias, (m0, n0), (m1, n1))
            found.append(_table(self.f, at, self.luts[0]))
        return found

    def scaled_state(self, reset: Value) -> Value:
        if reset.magnitude > 1 << self.bits:
            raise LayerError("the entries of 'lut_rt' do not fit the type of the state")
        return rescaled(self.f.k, _product(self.f.k, reset, self.f.before()), 1, self.bits)

    def candidate(self, reset: Value | None) -> Value:
        k, f, cell = self.f.k, self.f, self.f.cell
        bias = self._rows(self.biases[2 * cell : 3 * cell], self.six[3][1])[0]
        inner = f.sums[2, "h"]
        if reset is not None:
            inner = _product(k, reset, self._own(inner))
        return _table(f, self._sum(2, inner, bias, self.six[2], self.six[3]), self.luts[1])

    def _own(self, sums: Sum) -> Value:
        """The state's sums of GRUv1 with their biases, before the reset gate."""
        f, layer = self.f, self.f.layer
        bias = self._rows(self.biases[3 * f.cell :], self.six[2][1])[0]
        scale, shift = layer.factor("hidden_scale_value", 1), layer.factor("hidden_shift_value", 0)
        return requantise(f.k, total(f.k, sums, bias), scale, shift, 0, self.low, self.high)

    def state(self, candidate: Value, update: Value, h: Value) -> Value:
        k = self.f.k
        rest = k.let(k.number(self.high) - update, self.high - update.high, self.high - update.low)
        share = rescaled(k, _product(k, rest, candidate), *self.six[4])
        ratio = int(self.six[4][0].max()) / 2.0 ** int(self.six[4][1].min())
        # the two shares are not large together
        most = max(
            abs(self.high - u) * candidate.magnitude * ratio + abs(u) * h.magnitude
            for u in (update.low, update.high, min(max(0, update.low), update.high))
        )
        if most + 1 >= 2**31:
            raise LayerError(f"sums of up to {most:.0f} do not fit 32 bits, which no kernel here computes with")
        both = k.let(share + _product(k, update, h), -int(most) - 1, int(most) + 1)
        return requantise(k, both, *self.six[5], 0, self.low + 1, self.high)


# -- RNN


@kernel("RNN")
def rnn(layer: Layer) -> Kernel:
    name = layer.word("activations", "TANH", (*ACTIVATIONS, "CLIP"))
    sequence, last = _of_shapes(layer, [*layer.outputs, None])[:2]
    looks_up = layer.is_quantised and name in ("TANH", "SIGMOID")
    f = _frame(layer, [(0,)], False, [layer.constant("lut")] if looks_up else [])
    with f.steps(), f.phase():
        hidden = _quantised_rnn(f, name) if layer.is_quantised else _float_rnn(f, name)
        f.hold(hidden)
        f.give(hidden, sequence, last)
    return f.k.kernel()


def _float_rnn(f: Recurrence, name: str) -> Value:
    k, layer = f.k, f.layer
    bias = f.biases(layer.constant("biases").reshape(1, -1))[0]
    s = k.let(_real(f, 0, "x") + _real(f, 0, "h") + bias)
    s = _bounded(k, s, bound_of(layer, "threshold"))
    if name == "CLIP":
        return k.let(clamp(s, *(k.number(layer.number(key)) for key in ("clip_min", "clip_max"))))
    return _activated(k, name, s)


def _quantised_rnn(f: Recurrence, name: str) -> Value:
    k, layer, out = f.k, f.layer, f.layer.output
    scale, shift = (np.resize(v, 3) for v in layer.scale_shift(of=3))
    biases = layer.constant("biases").reshape(1, -1).astype(np.int64)
    if np.abs(biases).max() >= 2**31:
        raise LayerError(f"'biases' has values of up to {np.abs(biases).max()}, which kernels take in 32 bits")
    parts = [_scaled(k, f.sums[0, of], int(scale[i]), int(shift[i])) for i, of in enumerate("xh")]
    u = total(k, *parts, f.biases(biases)[0])
    if name in ("TANH", "SIGMOID"):
        at = requantise(k, u, scale[2], shift[2], 0, out.integer.low, out.integer.high)
        return _table(f, at, layer.constant("lut").reshape(-1))
    if name == "SIGN_BIT":
        return k.let(0 - ((u.high if isinstance(u, Pair) else u) >> 31), 0, 1)
    if name == "RELU":
        u = positive(k, u)
    elif name == "CLIP":
        u = limited(k, saturated(k, u), layer.integer("clip_min"), layer.integer("clip_max"))
    elif f.form == "dot":
        u = saturated(k, u)
    return requantise(k, u, scale[2], shift[2], out.scalar_zero, out.low, out.high)


def _scaled(k: LayerKernel, sums: Sum, scale: int, shift: int) -> Sum:
    """Sums times scale / 2^shift, of bytes in 32 bits, of others in 48."""
    return rescaled_pair(k, sums, scale, shift, 48) if isinstance(sums, Pair) else rescaled(k, sums, scale, shift)


def positive(k: LayerKernel, value: Sum) -> Sum:
    """The larger of a sum and 0."""
    if not isinstance(value, Pair):
        return k.let(S.max(value, 0), 0, max(value.high, 0))
    low = k.let(S.vsel(value.low, everywhere(0), value.high >= 0))
    return Pair(k.let(S.max(value.high, 0)), low, 0, max(value.most, 0))
