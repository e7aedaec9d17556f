"""Recurrent layers: gates by tables, and a factor for each place where scales meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.values import Value
from compassc.layers.families.recurrent.reference import activation_name, bound_of, output_names, split_weights
from compassc.quantizer.job import MARKS, Job, NotQuantised, is_plain, scale_of
from compassc.quantizer.numbers import (
    RESTRICTED,
    Factor,
    Levels,
    cleared,
    exact_positions,
    extremes,
    factor,
    levels,
    positions,
    quantised_biases,
    real,
    sigmoid,
)
from compassc.quantizer.rules import rule

F32 = np.float32
LIMITS = {
    ("BasicLSTM", 8): (4.564205, 2.6293793), ("GRUv3", 8): (4.8, 2.8), ("GRUv1", 8): (4.564202, 2.629377),
}  # fmt: skip
"""Up to where tables of sigmoid and tanh reach, by type and bits."""
WIDE_LIMITS = (10.0, 6.0)
ITEMS_BITS = 8
ITEMS = 1 << ITEMS_BITS
"""Of a table."""
FINE = 8
"""Bits that sums keep more than the table's input has, of 8-bit layers."""
NARROW = 8
"""Bits of weights that are taken as they are."""
NO_REMAIN = 31
"""A remaining shift from which on nothing is shifted ahead, so that biases stay what they are from step to step."""


class Table(NamedTuple):
    """A table between the scale of sums and the scale of what it gives."""

    source: np.float32
    out: np.float32
    items: Array


def even(low: float, high: float, bits: int) -> Levels:
    """Scale of a state: the same on both sides."""
    return levels(low, high, RESTRICTED, bits, True)


def table(job: Job, sums: str, bits: int, function: Callable[[Array], Array], limit: float, middle: float) -> Table:
    """Of a function that lies evenly around `middle`, for sums in their range up to `limit`.

    What comes out has the scale of 1, so that one less it is the largest integer less its integer.
    """
    low, high = job.inside(sums)
    own = even(max(low, -limit), min(high, limit), bits)
    most = (1 << (bits - 1)) - 1
    at = table_entries(job, bits)
    source = Tensor("sums", at.shape, own.dtype, float(own.scale), 0, (own.low, own.high))
    values = function(real(at, source).astype(np.float64)).astype(F32) - F32(middle)
    items = np.rint(values * F32(most)) + np.rint(F32(middle * most))
    return Table(F32(own.scale), F32(most), np.clip(items, -most - 1, most).astype(own.dtype))


def table_entries(job: Job, bits: int) -> Array:
    """The integers of sums that a table has entries for: those of the lookup where the settings leave tables to the rules."""
    if not job.settings.table_bits and bits > 8:
        return exact_positions(-(1 << (bits - 1)), bits, ITEMS_BITS)
    most = (1 << (bits - 1)) - 1
    return np.append(F32(-most), positions(-most, most, ITEMS - 1))


def _checked(job: Job, expected: Sequence[str]) -> int:
    """Bits of the layer. NotQuantised for forms without integers."""
    layer, bits = job.layer, job.bits
    if bits not in (8, 16):
        raise NotQuantised(f"it has {bits} bits, expected 8 or 16")
    names = [activation_name(layer, i, default) for i, default in enumerate(expected)]
    if names != list(expected):
        raise NotQuantised(f"its activations are {', '.join(names)}")
    if np.isfinite(bound_of(layer, "threshold")) or np.isfinite(bound_of(layer, "cell_clip")):
        raise NotQuantised("it has a bound ('threshold' or 'cell_clip')")
    if job.input.integer.bits != bits:
        raise NotQuantised(f"its input has {job.input.integer.bits} bits, its states {bits}")
    return bits


def state(job: Job, index: int, bits: int, scale: np.float32 | None) -> tuple[Tensor, list[Layer]]:
    """A state that goes in as signed integers without a zero point, and the Cast to it: in the scale of the states, or
    in its own where `scale` is None."""
    given = job.inputs[index]
    own = scale_of(given) if scale is None or is_plain(given) and _is_zero(job, index) else scale
    high = (1 << (bits - 1)) - 1
    if given.integer.signed and given.integer.bits == bits and not given.zero and scale_of(given) == own:
        return given, []
    name = job.free(f"{given.name}_cast")
    made = Tensor(name, given.shape, f"int{bits}", float(own), 0, (-high - 1, high))
    attributes: dict[str, Value] = {"to_dtype": made.dtype, "clip_mode": "saturation", **MARKS}
    if scale_of(given) == own and not given.zero:
        attributes["ignore_scale_zp"] = True
    else:
        attributes |= {"ignore_scale_zp": False, **factor(own / scale_of(given), bits).attributes()}
    return made, [Layer(name, "Cast", (given,), (made,), attributes)]


def _is_zero(job: Job, index: int) -> bool:
    content = (job.integers or {}).get(job.layer.inputs[index].name)
    return content is not None and not content.any()


def widest(job: Job, fits: Callable[[int], bool]) -> int:
    """The bits that weights have: of those of the settings as many as fit."""
    most = job.settings.weight_bits
    return next((bits for bits in range(most, NARROW, -1) if fits(bits)), min(NARROW, most))


def in_words(job: Job, weights: Array, biases: Array, shift: int = 0) -> bool:
    """Whether sums of integers of the layer with these weights, shifted, and the biases, are whole numbers of 32 bits."""
    most = (1 << 31) - 1
    sums = (int(np.abs(weights.astype(np.int64)).sum(1).max(initial=0)) << (job.bits - 1)) >> shift
    return sums <= most and float(np.abs(biases).max(initial=0)) <= most


def fine(ratio: object, bits: int) -> Factor:
    """The factor into a table: of 8-bit layers with eight bits more, that shifts take off."""
    extra = FINE if bits <= 8 else 0
    made = factor(np.asarray(ratio, F32) * F32(1 << extra), bits)
    return replace(made, shift=made.shift + extra)


def outputs_of(job: Job, scales: dict[str, np.float32], bits: int) -> list[Tensor]:
    """The listed outputs in the scales that they are computed in."""
    high = (1 << (bits - 1)) - 1
    return [
        Tensor(t.name, t.shape, f"int{bits}", float(scales[name]), 0, (-high, high))
        for name, t in zip(output_names(job.layer), job.layer.outputs, strict=True)
    ]


def joined(factors: Sequence[Factor]) -> tuple[Array, Array]:
    """Multipliers and shifts one behind the other."""
    return (
        np.concatenate([np.atleast_1d(f.multiplier) for f in factors]),
        np.concatenate([np.atleast_1d(f.shift) for f in factors]),
    )


# -- LSTM


@rule("BasicLSTM")
def lstm(job: Job) -> list[Layer]:
    layer, bits = job.layer, _checked(job, ("SIGMOID", "TANH", "TANH"))
    wx, _, cell = split_weights(layer, 4)
    limits = LIMITS["BasicLSTM", 8] if bits <= 8 else WIDE_LIMITS
    gates = table(job, "gates", bits, sigmoid, limits[0], 0.5)
    candidates = table(job, "candidates", bits, np.tanh, limits[1], 0.0)
    cells = table(job, "cells", bits, np.tanh, limits[1], 0.0)
    hidden = F32(even(*job.inside("hidden"), bits).scale)
    h0, first = state(job, 1, bits, hidden)
    c0, second = state(job, 2, bits, None)
    weights, recurrent = layer.constant("weights"), factor(scale_of(job.input) / hidden, bits)

    def ahead_of(into_gates: Factor) -> int:
        """Bits that sums keep when they are shifted to be of 32 bits."""
        return 0 if bits <= 8 else min(int(np.min(recurrent.shift)), int(np.min(into_gates.shift)), 15)

    def shift_of(found: Levels) -> int:
        """By how much sums of the state are shifted to be of 32 bits."""
        into_gates = fine(gates.source / (scale_of(job.input) * np.asarray(found.scale, F32)), bits)
        return 0 if bits <= 8 else int(np.min(recurrent.shift)) - ahead_of(into_gates)

    found = _weight_levels(job, weights, shift_of)
    values = found.of(weights)
    sums = scale_of(job.input) * np.asarray(found.scale, F32)
    each = np.broadcast_to(sums, (4 * cell,)) if np.ndim(sums) else sums
    into_gates = fine(gates.source / each, bits)
    into_candidates = fine(candidates.source / (each[cell : 2 * cell] if np.ndim(each) else each), bits)
    head = [recurrent, into_gates, into_candidates,
            fine(cells.source / (gates.out * candidates.out), bits), factor(hidden / (gates.out * cells.out), bits)]  # fmt: skip
    steps, drops = _cell_factors(job, scale_of(c0), gates.out, candidates.out, head[3], bits)
    ahead = ahead_of(into_gates)
    scale, shift = joined([*head, *steps])
    biases = _lstm_biases(job, values, sums, wx.shape[1], into_gates, ahead)
    kind = "uint8" if bits <= 8 else "uint16"
    constants: dict[str, Array] = {
        "weights": values.astype(numpy_dtype(found.dtype)), "biases": biases.astype(np.int32),
        "scale": scale.astype(kind), "shift": shift.astype(np.int8), "diff_shifts": drops.astype(np.int8),
        **{f"lut_{k}": gates.items for k in ("it", "ft", "ot")}, "lut_ct": candidates.items, "lut_h": cells.items,
    }  # fmt: skip
    attributes: dict[str, Value] = {"lut_shift_value": ahead, "lut_shift_type": "int8"}
    _describe(found, sums, attributes, constants)
    last = F32(even(*_cell_range(job, layer.input.shape[1] - 1), bits).scale)
    made = job.made(outputs_of(job, {"Y": hidden, "H": hidden, "C": last}, bits), attributes, constants)
    return [*first, *second, replace(made, inputs=(job.input, h0, c0))]


def _weight_levels(job: Job, weights: Array, shift_of: Callable[[Levels], int]) -> Levels:
    (low, high), mode = extremes(weights), job.settings.weight_mode
    biases = np.abs(job.layer.constant("biases").reshape(-1)) + abs(job.layer.number("forget_bias", 0))

    def of(bits: int) -> Levels:
        if job.settings.per_channel:
            return levels(low, high, mode, bits, True)
        return levels(float(low.min()), float(high.max()), mode, bits, True)

    def fits(bits: int) -> bool:
        # the input's sums are shifted until they are as the table's input, the state's as their factor has a shift for it
        found = of(bits)
        sums = biases * np.asarray(found.scale, np.float64) * float(scale_of(job.input))
        return in_words(job, found.of(weights)[:, job.input.shape[-1] :], sums, shift_of(found))

    return of(widest(job, fits))


def _cell_range(job: Job, step: int) -> tuple[float, float]:
    return job.inside(f"cell_{step}")


def _cell_factors(
    job: Job, first: np.float32, gates: np.float32, candidates: np.float32, into: Factor, bits: int
) -> tuple[list[Factor], Array]:
    """Of each step: from the cell state before, and to the one after; and by how much sums are shifted."""
    before, made, drops = first, [], []
    for t in range(job.layer.input.shape[1]):
        after = F32(even(*_cell_range(job, t), bits).scale)
        previous, stored = factor(candidates / before, bits), factor(after / (gates * candidates), bits)
        made += [previous, stored]
        room = int(previous.shift)
        nothing = bits <= 8 or room >= 15
        drops.append(0 if nothing else min(15 - room, int(stored.shift), int(into.shift)))
        before = after
    return made, np.asarray(drops, np.int64)


def _lstm_biases(job: Job, values: Array, sums: Array, inputs: int, into_gates: Factor, ahead: int) -> Array:
    layer, settings = job.layer, job.settings
    biases = layer.constant("biases").reshape(-1).astype(F32)
    cell = len(biases) // 4
    biases[2 * cell : 3 * cell] += F32(layer.number("forget_bias", 0))
    absorbed = values[:, :inputs].sum(1) * job.input.scalar_zero
    whole = quantised_biases(biases, sums, 32, absorbed)
    if np.ndim(sums):
        return whole
    least = int(np.max(into_gates.shift)) - ahead if job.bits > 8 else 0
    effective = settings.bias_effective_bits or 32
    gates = np.r_[0:cell, 2 * cell : 4 * cell]
    whole[gates] = cleared(whole[gates], effective, least)
    whole[cell : 2 * cell] = cleared(whole[cell : 2 * cell], effective, least)
    return whole


def _describe(found: Levels, sums: Any, attributes: dict[str, Value], constants: dict[str, Array]) -> None:
    if np.ndim(found.scale) == 0:
        attributes |= {"weights_scale": float(found.scale), "weights_zp": 0, "biases_scale": float(sums),
                       "biases_zp": 0}  # fmt: skip
    else:
        constants |= {"weights_scale": found.scale.astype(F32), "biases_scale": np.asarray(sums, F32)}


# -- GRU


@rule("GRUv1", "GRUv3")
def gru(job: Job) -> list[Layer]:
    """Weights in four parts: of the gates and the candidate, by what they are multiplied with."""
    layer, bits = job.layer, _checked(job, ("SIGMOID", "TANH"))
    wx, wh, cell = split_weights(layer, 3)
    limits = LIMITS[layer.type, 8] if bits <= 8 else WIDE_LIMITS
    gates = table(job, "gates", bits, sigmoid, limits[0], 0.5)
    candidates = table(job, "candidates", bits, np.tanh, limits[1], 0.0)
    hidden = F32(even(*job.inside("hidden"), bits).scale)
    h0, first = state(job, 1, bits, hidden)
    two = 2 * cell
    own = scale_of(job.input)
    parts = [wx[:two], wh[:two], wx[two:], wh[two:]]
    given = np.split(layer.constant("biases").reshape(-1), [two, 3 * cell])

    found = _gru_levels(job, parts, (own, hidden, own, hidden), (given[0], given[0][:0], *given[1:]))
    whole = [one.of(p) for one, p in zip(found, parts, strict=True)]
    values = np.concatenate([np.concatenate(whole[:2], 1), np.concatenate(whole[2:], 1)])
    scales = [F32(one.scale) for one in found]
    six, inner = _gru_factors(job, [own * scales[0], hidden * scales[1], own * scales[2], hidden * scales[3]], gates,
                              candidates, hidden)  # fmt: skip
    biases = _gru_biases(job, values[:, : wx.shape[1]], own * scales[0], own * scales[2], hidden * scales[3], cell)
    constants = {
        "weights": values.astype(numpy_dtype(found[0].dtype)), "biases": biases.astype(np.int32), "lut_rt": gates.items,
        "lut_zt": gates.items, "lut_ht": candidates.items, "weights_scale": np.asarray(scales, F32),
        "weights_zp": np.zeros(4, np.int32), "biases_scale": np.asarray([own * scales[0], own * scales[2]], F32),
    }  # fmt: skip
    attributes: dict[str, Value] = {
        "scale_value": [int(f.multiplier) for f in six], "scale_type": [f.type for f in six],
        "shift_value": [int(f.shift) for f in six], "shift_type": ["int8"] * 6,
    }  # fmt: skip
    if inner is not None:
        attributes |= inner.attributes("hidden_")
    if bits > 8:
        attributes["remain_shift"] = NO_REMAIN
    made = job.made(outputs_of(job, {"H": hidden, "HN": hidden}, bits), attributes, constants)
    return [*first, replace(made, inputs=(job.input, h0))]


def _gru_levels(
    job: Job, parts: Sequence[Array], scales: Sequence[np.float32], biases: Sequence[Array]
) -> list[Levels]:
    """Of the gates' and the candidate's weights, for the input and for the state: each as many bits as its own sums have room
    for. Those of the input have the state's added to them, in their scale. The state's of the candidate go from any width to
    that of the state before they meet others in GRUv1; in GRUv3 the state was halved with the gate."""
    most, zero = 1 << (job.bits - 1), abs(float(job.input.scalar_zero))
    reach = [
        float(np.abs(p).sum(1).max(initial=0)) * (most + zero * (i % 2 == 0)) / float(scale)
        for i, (p, scale) in enumerate(zip(parts, scales, strict=True))
    ]

    def part(i: int) -> Levels:
        p, scale, bias = parts[i], float(scales[i]), biases[i]

        def of(bits: int) -> Levels:
            return levels(float(p.min()), float(p.max()), job.settings.weight_mode, bits, True)

        def fits(bits: int) -> bool:
            found = of(bits)
            unit = float(found.scale) * scale
            if i % 2 == 0:
                return (reach[i] + reach[i + 1] + float(np.abs(bias).max(initial=0))) * unit < (1 << 31) - 1
            shift = 0 if i == 1 else job.bits - 1 if job.layer.type == "GRUv1" else 1
            return in_words(job, found.of(p), bias * unit, shift)

        return of(widest(job, fits))

    return [part(i) for i in range(len(parts))]


def _gru_factors(
    job: Job, sums: list[np.float32], gates: Table, candidates: Table, hidden: np.float32
) -> tuple[list[Factor], Factor | None]:
    """The six factors of a step, and that of the state's part of the candidate."""
    bits = job.bits
    from_x, from_h, candidate_x, candidate_h = sums
    if job.layer.type == "GRUv1":
        recurrent = F32(even(*job.inside("recurrent"), bits).scale)
        inner: Factor | None = factor(recurrent / candidate_h, bits)
        second = candidate_x / (recurrent * gates.out)
    else:
        inner = None
        second = F32(1 << bits) * candidate_x / (candidate_h * gates.out)
    return [
        factor(from_x / from_h, bits),
        fine(gates.source / from_x, bits),
        factor(second, bits),
        fine(candidates.source / candidate_x, bits),
        factor(hidden / candidates.out, bits),
        factor(F32(1) / gates.out, bits),
    ], inner


def _gru_biases(
    job: Job, from_x: Array, gates: np.float32, candidates: np.float32, recurrent: np.float32, cell: int
) -> Array:
    biases = job.layer.constant("biases").reshape(-1).astype(F32)
    absorbed = from_x.sum(1) * job.input.scalar_zero
    two, three = 2 * cell, 3 * cell
    made = [
        quantised_biases(biases[:two], gates, 32, absorbed[:two]),
        quantised_biases(biases[two:three], candidates, 32, absorbed[two:]),
    ]
    if job.layer.type == "GRUv1":
        made.append(quantised_biases(biases[three:], recurrent, 32))
    return np.concatenate(made)


# -- RNN

CURVES: dict[str, tuple[Callable[[Array], Array], int]] = {"TANH": (np.tanh, 1), "SIGMOID": (sigmoid, 0)}
"""Activations that are tables, and which of the limits is theirs."""
STRAIGHT = ("RELU", "NONE", "CLIP")


@rule("RNN")
def rnn(job: Job) -> list[Layer]:
    """Both products are brought to the coarser one of their scales, and from there to the states'."""
    layer, name = job.layer, job.layer.word("activations", "TANH")
    if name not in (*CURVES, *STRAIGHT):
        raise NotQuantised(f"its activation is {name}")
    bits = _checked(job, ())
    wx, wh, _ = split_weights(layer, 1)
    hidden = F32(even(*job.inside("hidden"), bits).scale)
    h0, first = state(job, 1, bits, hidden)
    mode, wide = job.settings.weight_mode, job.settings.weight_bits
    found = [levels(float(w.min()), float(w.max()), mode, wide, True) for w in (wx, wh)]
    whole = [own.of(w) for own, w in zip(found, (wx, wh), strict=True)]
    own_sums, state_sums = scale_of(job.input) * F32(found[0].scale), hidden * F32(found[1].scale)
    common = min(own_sums, state_sums)
    into = [factor(common / s, job.settings.factor_bits) for s in (own_sums, state_sums)]
    biases = quantised_biases(layer.constant("biases").reshape(-1), common, 32)
    absorbed = whole[0].sum(1) * job.input.scalar_zero * float(common / own_sums)
    attributes: dict[str, Value] = {}
    constants: dict[str, Array] = {
        "weights": np.concatenate(whole, 1).astype(numpy_dtype(found[0].dtype)),
        "biases": np.clip(biases + np.rint(absorbed), -(2**31), 2**31 - 1).astype(np.int32),
        "weights_scale": np.asarray([own.scale for own in found], F32), "weights_zp": np.zeros(2, np.int32),
        "biases_scale": np.asarray([common], F32),
    }  # fmt: skip
    if name in CURVES:
        function, limit = CURVES[name]
        limits = LIMITS["BasicLSTM", 8] if bits <= 8 else WIDE_LIMITS
        source, constants["lut"] = _curve(job, bits, function, limits[limit], hidden)
    else:
        source = hidden
        if name == "CLIP":
            attributes |= {key: int(layer.number(key) * float(common)) for key in ("clip_min", "clip_max")}
    three = [*into, factor(source / common, job.settings.factor_bits)]
    attributes |= {
        "scale_value": [int(f.multiplier) for f in three], "scale_type": [f.type for f in three],
        "shift_value": [int(f.shift) for f in three], "shift_type": ["int8"] * 3,
    }  # fmt: skip
    high = (1 << (bits - 1)) - 1
    outputs = [Tensor(t.name, t.shape, f"int{bits}", float(hidden), 0, (-high, high)) for t in layer.outputs]
    return [*first, replace(job.made(outputs, attributes, constants), inputs=(job.input, h0))]


def _curve(
    job: Job, bits: int, function: Callable[[Array], Array], limit: float, hidden: np.float32
) -> tuple[np.float32, Array]:
    """(the scale of the sums that a table is taken at, the table of states)."""
    low, high = job.inside("sums")
    own, most = even(max(low, -limit), min(high, limit), bits), (1 << (bits - 1)) - 1
    at = table_entries(job, bits).astype(np.float64) / float(own.scale)
    items = np.clip(np.rint(function(at) * float(hidden)), -most, most)
    return F32(own.scale), items.astype(own.dtype)
