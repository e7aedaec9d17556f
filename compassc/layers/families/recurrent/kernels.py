"""Kernels of recurrent layers: what happens to the sums of a step; `frame` has the loops around it."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers import arithmetic
from compassc.layers.emit import look_up
from compassc.layers.exact import held_pair, limited, product, rescale, rescale_pair, shifted_limited, total, total_pair
from compassc.layers.families.activation.reference import METHODS
from compassc.layers.families.recurrent.frame import Phase, RecurrenceKernel, Sums
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
from compassc.layers.kernels import kernel
from compassc.layers.operator_lanes import InLanes
from compassc.layers.requantise import INT32_MAX, requantise, saturated
from compassc.layers.source import LANES, Kernel, KernelSource

LARGE = 1 << 17
"""Beyond the limits of every 16-bit number."""


def _frame(layer: Layer, gates: int) -> RecurrenceKernel:
    split_weights(layer, gates)
    h, x = layer.inputs[1], layer.input
    if layer.is_quantised:
        for t in (*layer.inputs[1:], *layer.outputs):
            if t.dtype != h.dtype or not t.integer.signed or t.integer.bits != x.integer.bits:
                raise LayerError(f"'{t.name}' is {t.dtype}; states must be signed integers of the input's width")
    elif any(t.is_integer for t in (*layer.inputs, *layer.outputs)) or layer.constant("weights").dtype.kind in "iu":
        raise LayerError("it mixes floats and integers")
    return RecurrenceKernel(layer, gates, layer.constant("weights"))


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


def _keep(f: RecurrenceKernel, hidden: Value) -> None:
    f.k.do(f'S.vstore(narrow({hidden.name}, "{f.state_type}"), ahead + cell)')


def _state(f: RecurrenceKernel) -> Value:
    """The hidden state of the block's cells before the step."""
    if f.kind == "float32":
        return f.k.let(f"S.vload(hs + cell, lanes={LANES})", "float32")
    t = f.layer.inputs[1]
    return f.k.let(f'wide(S.vload(hs + cell, lanes={LANES}), "{t.dtype}")', "int32", t.integer.low, t.integer.high)


def _cells(f: RecurrenceKernel) -> str:
    """The array of the cell state, filled with the initial one."""
    c0 = f.layer.inputs[2]
    f.arrays.append(("cells", f.padded, f.kind, "lsram"))
    pointer = f.k.tensor(c0)
    f.start.append(f'S.vstore(load({pointer} + image * {f.cell} + cell, mask, "{c0.dtype}", {LANES}), cells + cell)')
    return "cells"


def _table(f: RecurrenceKernel, value: Value, table: Array, bits: int) -> Value:
    f.tables += table.nbytes
    found = look_up(f.k, f.k.shifted(value, 1 << (bits - 1)), table, bits)
    return found.within(int(table.min()), int(table.max()))


def _whole(f: RecurrenceKernel, sums: Sums, shift: Array) -> Value:
    """Sums over 2^shift, rounded and limited to 32 bits; of 8-bit layers as they are."""
    if not sums.low:
        return rescale(f.k, sums.value, 1, shift, f.cells)
    return shifted_limited(f.k, *_pair(f.k, sums), shift, f.cells, sums.value.magnitude)


def _pair(k: KernelSource, sums: Sums) -> tuple[str, str]:
    """(high, low): variables of the sums high * 2^16 + low."""
    joined = k.let(f"{sums.value.name} + ({sums.low} >> 8)").name
    low = k.let(f"(({joined} & 255) << 8) | ({sums.low} & 255)").name
    return k.let(f"{joined} >> 8").name, low


def _of(numbers: Array, gate: int, cell: int) -> Array:
    return numbers if numbers.size == 1 else numbers[gate * cell : (gate + 1) * cell]


# -- LSTM


@kernel("BasicLSTM")
def lstm(layer: Layer) -> Kernel:
    f = _frame(layer, 4)
    sequence, last, cell = _outputs(layer, "Y", "H", "C")
    _cells(f)
    hidden, state = _quantised_lstm(f) if layer.is_quantised else _float_lstm(f)
    _keep(f, hidden)
    f.k.do(f"S.vstore({state.name}, cells + cell)")
    body = [*f.k.body, *f.states(hidden, sequence, last), *f.states(state, None, cell)]
    f.phases.append(Phase((0, 1, 2, 3), "h", body))
    return f.kernel()


def _float_lstm(f: RecurrenceKernel) -> tuple[Value, Value]:
    layer, k = f.layer, f.k
    biases = layer.constant("biases").reshape(-1).astype(np.float64)
    biases[2 * f.cell : 3 * f.cell] += layer.number("forget_bias", 0)
    names = [activation_name(layer, n, d) for n, d in enumerate(("SIGMOID", "TANH", "TANH"))]
    gates = []
    for n, bias in enumerate(f.biases(biases[None])):
        s = k.let(f"{f.sums(n, 'x').value.name} + {f.sums(n, 'h').value.name} + {bias.name}", "float32")
        gates.append(_activated(k, names[int(n == 1)], _bounded(k, s, bound_of(layer, "threshold"))))
    i, g, forget, o = gates
    new = k.let(f"{forget.name} * S.vload(cells + cell, lanes={LANES}) + {i.name} * {g.name}", "float32")
    state = _bounded(k, new, bound_of(layer, "cell_clip"))
    return k.let(f"{o.name} * {_activated(k, names[2], state).name}", "float32"), state


def _bounded(k: KernelSource, value: Value, bound: float) -> Value:
    if not np.isfinite(bound):
        return value
    name = k.scalar(float(bound))
    return k.let(f"clamp({value.name}, 0.0 - {name}, {name})", "float32")


def _activated(k: KernelSource, name: str, value: Value) -> Value:
    if name in ("SIGMOID", "TANH"):
        return InLanes(k)(METHODS[name].operator, value)
    v = value.name
    forms = {"NONE": v, "RELU": f"S.max({v}, 0.0)", "SIGN_BIT": f"S.vsel({v} * 0.0 + 1.0, {v} * 0.0, {v} < 0.0)"}
    return k.let(forms[name], "float32")


def _quantised_lstm(f: RecurrenceKernel) -> tuple[Value, Value]:
    layer, k, bits = f.layer, f.k, f.layer.input.integer.bits
    by = LstmScales.of(layer, f.cell, f.steps)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    i, g, forget, o = _lstm_gates(f, by, bits, low, high)
    c0 = layer.inputs[2].integer
    before = k.let(f"S.vload(cells + cell, lanes={LANES})", "int32", c0.low, c0.high)
    (mp, np_), (ms, ns), drop = by.previous, by.stored, by.drop
    kept = rescale(k, product(k, forget, before), mp, np_ + drop, f.times)
    both = total(k, rescale(k, product(k, i, g), 1, drop, f.times), kept)
    inner = limited(k, rescale(k, both, by.cell[0], by.cell[1] - drop, f.times, LARGE), low + 1, high)
    shown = _table(f, inner, by.tables[4], bits)
    hidden = limited(k, rescale(k, product(k, o, shown), *by.hidden, f.cells, LARGE), low + 1, high)
    return hidden, limited(k, rescale(k, both, ms, ns - drop, f.times, LARGE), low + 1, high)


def _lstm_gates(f: RecurrenceKernel, by: LstmScales, bits: int, low: int, high: int) -> list[Value]:
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
            moved = rescale(k, f.sums(gate, "h").value, mw, nw, f.cells)
            u = total(k, f.sums(gate, "x").value, moved, bias)
            factor = (mt, nt) if gate == 1 else (own_m, own_n)
        else:
            moved = rescale(k, _whole(f, f.sums(gate, "h"), nw - m), mw, own_n, f.cells, saturate=True)
            u = total(k, _whole(f, f.sums(gate, "x"), own_n - m), moved, bias, saturate=True)
            factor = (mt, nt - own_n + m) if gate == 1 else (own_m, np.asarray(m))
        at = limited(k, rescale(k, u, *factor, f.cells, LARGE), low, high)
        gates.append(_table(f, at, by.tables[(0, 2, 1, 3)[gate]], bits))
    return gates


# -- GRU


@kernel("GRUv1", "GRUv3")
def gru(layer: Layer) -> Kernel:
    f = _frame(layer, 3)
    sequence, last = _outputs(layer, "H", "HN")
    parts = _QuantisedGru(f) if layer.is_quantised else _FloatGru(f)
    reset, update = parts.gates()
    h = _state(f)
    first = layer.type == "GRUv1"
    if not first:
        f.arrays += [
            ("rs", f.padded, f.state_type, "lsram"),
            ("r_shared", f.padded, f.state_type, "shared"),
            ("update", f.padded, f.kind, "lsram"),
        ]
        f.k.do(f'S.vstore(narrow({parts.scaled_state(reset, h).name}, "{f.state_type}"), r_shared + cell)')
        f.k.do(f"S.vstore({update.name}, update + cell)")
        f.phases.append(Phase((0, 1), "h", [*f.k.body]))
        f.k.body.clear()
        update = f.k.let(f"S.vload(update + cell, lanes={LANES})", update.kind, update.low, update.high)
        h = _state(f)
    hidden = parts.state(parts.candidate(reset if first else None), update, h)
    _keep(f, hidden)
    body = [*f.k.body, *f.states(hidden, sequence, last)]
    f.phases.append(Phase((0, 1, 2) if first else (2,), "h" if first else "r", body))
    return f.kernel()


class _FloatGru:
    def __init__(self, frame: RecurrenceKernel) -> None:
        self.f, layer = frame, frame.layer
        self.rows = layer.constant("biases").reshape(1, -1).astype(np.float32)
        self.names = [activation_name(layer, n, d) for n, d in enumerate(("SIGMOID", "TANH"))]
        self.bound = bound_of(layer, "threshold")

    def gates(self) -> list[Value]:
        k, found = self.f.k, []
        for g, bias in enumerate(self.f.biases(self.rows[:, : 2 * self.f.cell])):
            s = k.let(f"{self.f.sums(g, 'x').value.name} + {self.f.sums(g, 'h').value.name} + {bias.name}", "float32")
            found.append(_activated(k, self.names[0], _bounded(k, s, self.bound)))
        return found

    def scaled_state(self, reset: Value, h: Value) -> Value:
        return self.f.k.let(f"{reset.name} * {h.name}", "float32")

    def candidate(self, reset: Value | None) -> Value:
        k, biases = self.f.k, self.f.biases(self.rows[:, 2 * self.f.cell :])
        inner = self.f.sums(2, "h").value.name
        if reset is not None:
            inner = f"{reset.name} * ({inner} + {biases[1].name})"
        s = k.let(f"{self.f.sums(2, 'x').value.name} + {biases[0].name} + {inner}", "float32")
        return _activated(k, self.names[1], _bounded(k, s, self.bound))

    def state(self, candidate: Value, update: Value, h: Value) -> Value:
        u = update.name
        return self.f.k.let(f"(1.0 - {u}) * {candidate.name} + {u} * {h.name}", "float32")


def _repeated(biases: Array, shift: Array, steps: int) -> Array:
    """Biases as they are after each step's own shift, until they no longer change."""
    rows: list[Array] = []
    for _ in range(steps):
        biases = arithmetic.requantise(biases, 1, shift, 0, *INT32)
        if rows and (rows[-1] == biases).all():
            break
        rows.append(biases)
    return np.stack(rows)


class _QuantisedGru:
    def __init__(self, frame: RecurrenceKernel) -> None:
        self.f, layer = frame, frame.layer
        self.bits = layer.input.integer.bits
        self.six = gru_scales(layer, frame.cell)
        self.low, self.high = -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        self.remain = layer.integer("remain_shift", 10)
        self.biases = layer.constant("biases").reshape(-1).astype(np.int64)
        self.luts = [layer.constant(n).reshape(-1) for n in ("lut_rt", "lut_ht")]

    def _early(self, n: Array) -> Array:
        return np.maximum(n - self.remain, 0)

    def _late(self, n: Array) -> Array:
        return np.minimum(self.remain, n)

    def _rows(self, biases: Array, shift: Array) -> list[Value]:
        """Of 16-bit layers the biases are shifted again at every step, of every batch element."""
        if self.bits <= 8:
            return self.f.biases(biases[None])
        return self.f.biases(_repeated(biases, self._early(shift), self.f.batch * self.f.steps))

    def _sum(
        self, gate: int, inner: Value | Sums, bias: Value, first: tuple[Array, Array], second: tuple[Array, Array]
    ) -> Value:
        """The index of the gate's table."""
        k, f, (m0, n0), (m1, n1) = self.f.k, self.f, first, second
        own = f.sums(gate, "x")
        if self.bits <= 8:
            value = inner.value if isinstance(inner, Sums) else inner
            s = total(k, own.value, rescale(k, value, m0, n0, f.cells), bias)
            at = rescale(k, s, m1, n1, f.cells, LARGE)
        else:
            p0, p1 = self._early(n0), self._early(n1)
            value = _whole(f, inner, p0) if isinstance(inner, Sums) else rescale(k, inner, 1, p0, f.cells)
            moved = rescale(k, value, m0, self._late(n0) + p1, f.cells, saturate=True)
            parts = (_whole(f, own, p1), moved, bias)
            if sum(v.magnitude for v in parts) > INT32_MAX:
                span, late = total_pair(k, *parts), self._late(n1)
                return requantise(k, held_pair(span), m1, late, 0, self.low, self.high)
            at = rescale(k, total(k, *parts), m1, self._late(n1), f.cells, LARGE)
        return limited(k, at, self.low, self.high)

    def gates(self) -> list[Value]:
        cell, (first, second) = self.f.cell, self.six[:2]
        found = []
        for g, bias in enumerate(self._rows(self.biases[: 2 * cell], second[1])):
            (m0, n0), (m1, n1) = ((_of(m, g, cell), _of(n, g, cell)) for m, n in (first, second))
            at = self._sum(g, self.f.sums(g, "h"), bias, (m0, n0), (m1, n1))
            found.append(_table(self.f, at, self.luts[0], self.bits))
        return found

    def scaled_state(self, reset: Value, h: Value) -> Value:
        if reset.magnitude > 1 << self.bits:
            raise LayerError("the entries of 'lut_rt' do not fit the type of the state")
        return rescale(self.f.k, product(self.f.k, reset, h), 1, self.bits, self.f.cells)

    def candidate(self, reset: Value | None) -> Value:
        k, f, cell = self.f.k, self.f, self.f.cell
        bias = self._rows(self.biases[2 * cell : 3 * cell], self.six[3][1])[0]
        inner: Value | Sums = f.sums(2, "h")
        if reset is not None:
            inner = product(k, reset, self._own(f.sums(2, "h")))
        at = self._sum(2, inner, bias, self.six[2], self.six[3])
        return _table(f, at, self.luts[1], self.bits)

    def _own(self, sums: Sums) -> Value:
        """The state's sums of GRUv1 with their biases, before the reset gate."""
        k, f, layer = self.f.k, self.f, self.f.layer
        bias = self._rows(self.biases[3 * f.cell :], self.six[2][1])[0]
        scale = np.asarray(layer.factor("hidden_scale_value", 1))
        shift = np.asarray(layer.factor("hidden_shift_value", 0))
        if not sums.low:
            value = total(k, sums.value, bias)
            return limited(k, rescale(k, value, scale, shift, f.cells, LARGE), self.low, self.high)
        return self._own_wide(sums, bias, scale, shift)

    def _own_wide(self, sums: Sums, bias: Value, scale: Array, shift: Array) -> Value:
        k = self.f.k
        most = sums.value.magnitude + bias.magnitude
        top, bottom = _pair(k, sums)
        k.do(f"low = {bottom} + ({bias.name} & 65535)")
        k.do(f"high = {top} + ({bias.name} >> 16) + (low >> 16)")
        k.do("low = low & 65535")
        return requantise(k, held_pair((-most, most)), scale, shift, 0, self.low, self.high)

    def state(self, candidate: Value, update: Value, h: Value) -> Value:
        k, f = self.f.k, self.f
        rest = k.let(f"{k.scalar(self.high)} - {update.name}", "int32", self.high - update.high, self.high - update.low)
        share = rescale(k, product(k, rest, candidate), *self.six[4], f.cells)
        ratio = int(self.six[4][0].max()) / 2.0 ** int(self.six[4][1].min())
        # the two shares are not large together
        most = max(
            abs(self.high - u) * candidate.magnitude * ratio + abs(u) * h.magnitude
            for u in (update.low, update.high, min(max(0, update.low), update.high))
        )
        if most + 1 >= 2**31:
            raise LayerError(f"sums of up to {most:.0f} do not fit 32 bits, which no kernel here computes with")
        both = k.let(f"{share.name} + {product(k, update, h).name}", "int32", -int(most) - 1, int(most) + 1)
        return limited(k, rescale(k, both, *self.six[5], f.cells, LARGE), self.low + 1, self.high)


# -- RNN


@kernel("RNN")
def rnn(layer: Layer) -> Kernel:
    f = _frame(layer, 1)
    name = layer.word("activations", "TANH", (*ACTIVATIONS, "CLIP"))
    hidden = _quantised_rnn(f, name) if layer.is_quantised else _float_rnn(f, name)
    _keep(f, hidden)
    outputs = _of_shapes(layer, [*layer.outputs, None])
    f.phases.append(Phase((0,), "h", [*f.k.body, *f.states(hidden, outputs[0], outputs[1])]))
    return f.kernel()


def _float_rnn(f: RecurrenceKernel, name: str) -> Value:
    k, layer = f.k, f.layer
    bias = f.biases(layer.constant("biases").reshape(1, -1))[0]
    s = k.let(f"{f.sums(0, 'x').value.name} + {f.sums(0, 'h').value.name} + {bias.name}", "float32")
    s = _bounded(k, s, bound_of(layer, "threshold"))
    if name == "CLIP":
        low, high = (k.scalar(layer.number(key)) for key in ("clip_min", "clip_max"))
        return k.let(f"clamp({s.name}, {low}, {high})", "float32")
    return _activated(k, name, s)


def _quantised_rnn(f: RecurrenceKernel, name: str) -> Value:
    k, layer, out = f.k, f.layer, f.layer.output
    scale, shift = (np.resize(v, 3) for v in layer.scale_shift(of=3))
    biases = layer.constant("biases").reshape(1, -1).astype(np.int64)
    if np.abs(biases).max() >= 2**31:
        raise LayerError(f"'biases' has values of up to {np.abs(biases).max()}, which kernels take in 32 bits")
    bias = f.biases(biases)[0]
    if f.form != "dot":
        return _wide_rnn(f, name, bias, scale, shift)
    parts = [rescale(k, f.sums(0, of).value, scale[i], shift[i], f.cells) for i, of in enumerate("xh")]
    u = total(k, *parts, bias)
    if name in ("TANH", "SIGMOID"):
        at = limited(k, rescale(k, u, scale[2], shift[2], f.cells, LARGE), out.integer.low, out.integer.high)
        return _table(f, at, layer.constant("lut").reshape(-1), layer.input.integer.bits)
    if name == "SIGN_BIT":
        return k.let(f"S.max(S.min(0 - {u.name}, 1), 0)", "int32", 0, 1)
    if name == "RELU":
        u = k.let(f"S.max({u.name}, 0)", "int32", 0, max(u.high, 0))
    elif name == "CLIP":
        u = limited(k, u, layer.integer("clip_min"), layer.integer("clip_max"))
    moved = k.shifted(rescale(k, u, scale[2], shift[2], f.cells, LARGE), -out.scalar_zero)
    return limited(k, moved, out.low, out.high)


def _wide_rnn(f: RecurrenceKernel, name: str, bias: Value, scale: Array, shift: Array) -> Value:
    """The new state of a layer of 16 bits: its sums have up to 48."""
    k, layer, out = f.k, f.layer, f.layer.output
    most, words = bias.magnitude, [(f"({bias.name} >> 16)", f"({bias.name} & 65535)")]
    for i, of in enumerate("xh"):
        sums = f.sums(0, of)
        words.append(_pair(k, sums))
        most += rescale_pair(k, *words[-1], sums.value.magnitude, int(scale[i]), int(shift[i]), 48)
    if most >= 2**47:
        raise LayerError(f"sums of up to {most} do not fit 48 bits")
    k.do(f"low = {' + '.join(low for _, low in words)}")
    k.do(f"high = {' + '.join(high for high, _ in words)} + (low >> 16)")
    k.do("low = low & 65535")
    if name == "SIGN_BIT":
        return k.let("0 - (high >> 31)", "int32", 0, 1)
    if name == "CLIP":
        u = limited(k, saturated(k, held_pair()), layer.integer("clip_min"), layer.integer("clip_max"))
        moved = k.shifted(rescale(k, u, scale[2], shift[2], f.cells, LARGE), -out.scalar_zero)
        return limited(k, moved, out.low, out.high)
    if name == "RELU":
        k.do("positive_pair(high, low)")
    span, last = (0 if name == "RELU" else -most, most), (scale[2:], shift[2:])
    if name in ("TANH", "SIGMOID"):
        at = requantise(k, held_pair(span), *last, 0, out.integer.low, out.integer.high)
        return _table(f, at, layer.constant("lut").reshape(-1), layer.input.integer.bits)
    return requantise(k, held_pair(span), *last, out.scalar_zero, out.low, out.high)
