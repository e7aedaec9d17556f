"""Recurrent kernels against their references: odd sizes, several blocks of cells, weights beyond LSRAM, both directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import requantise
from compassc.layers.declare import evaluate
from compassc.layers.families.recurrent.kernels import positive
from compassc.layers.kernels import kernel_of
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import Pair, shifted_pair
from tests.choosing import some
from tests.layers.harness import run

SIZES = [(2, 3, 5, 7, "forward"), (1, 2, 33, 40, "reverse"), (3, 2, 70, 200, "forward"), (2, 1, 1, 1, "reverse")]
"""Batch, steps, features, cells, direction."""
MANY = [(1, 9, 512, 72, "forward"), (1, 9, 512, 72, "reverse")]
"""Weights beyond LSRAM, and more inputs than are taken at once."""
KINDS = {"BasicLSTM": 4, "GRUv1": 3, "GRUv3": 3, "RNN": 1}
OUTPUTS = {"BasicLSTM": ["Y", "H", "C"], "GRUv1": ["H", "Hn"], "GRUv3": ["Hn", "H"], "RNN": ["Y", "H"]}


def layer_of(source: np.random.Generator, kind: str, size: tuple[Any, ...], dtype: str, each: bool = False) -> Layer:
    n, steps, features, cell, direction = size
    gates, whole = KINDS[kind], dtype.startswith("int")
    sequence = kind == "BasicLSTM"
    inputs = [Tensor("x", (n, steps, features), dtype), Tensor("h", (n, cell), dtype)]
    inputs += [Tensor("c", (n, cell), dtype)] if sequence else []
    last = {"Y": True, "H": kind.startswith("GRU")}
    outputs = [Tensor(f"o{o}", (n, steps, cell) if last.get(o) else (n, cell), dtype) for o in OUTPUTS[kind]]
    given: dict[str, Any] = {"direction": direction, "out_sequence": OUTPUTS[kind]}
    if kind == "RNN":
        given["activations"] = "TANH"
    biases = 4 if kind == "GRUv1" else gates
    if not whole:
        weights = source.normal(0, 0.3, (gates * cell, features + cell)).astype(dtype)
        constants = {"weights": weights, "biases": source.normal(0, 0.3, biases * cell).astype("float32")}
        return Layer("r", kind, inputs, outputs, {**given, "threshold": 2.0}, constants)
    constants = {
        "weights": source.integers(-128, 128, (gates * cell, features + cell)).astype("int8"),
        "biases": source.integers(-5000, 5000, biases * cell).astype("int32"),
    }
    wide = dtype == "int16"
    low, high = (-32767, 32768) if wide else (-127, 128)
    for name in ("lut_it", "lut_ft", "lut_ct", "lut_ot", "lut_h", "lut_rt", "lut_ht", "lut"):
        ends = (0, high) if name in ("lut_it", "lut_ft", "lut_ot", "lut_rt") else (low, high)
        constants[name] = np.sort(source.integers(*ends, 256)).astype(dtype)
    numbers(source, kind, size, wide, each, given, constants)
    return Layer("r", kind, inputs, outputs, given, constants)


def numbers(
    source: np.random.Generator,
    kind: str,
    size: tuple[Any, ...],
    wide: bool,
    each: bool,
    given: dict[str, Any],
    constants: dict[str, np.ndarray],
) -> None:
    """Multipliers and shifts such that the gates take all their values."""
    _, steps, features, cell, _ = size
    grow = 8 if wide else 0
    width = int(np.log2((features + cell) ** 0.5 * 40)) + grow // 8
    if kind == "BasicLSTM":
        gates = [7 + width, 7 + width, 15, 14]
        shift = [17, 23, 23, 30, 28, *([15, 29] * steps)] if wide else [9, *gates, *([7, 15] * steps)]
        counts = [1, 4 * cell, cell, 1, 1, *[1] * 2 * steps] if each else [1] * len(shift)
        top = 32768 if wide else 256
        listed = np.repeat(shift, counts)
        if each:
            listed[1 : 1 + 5 * cell] -= source.integers(0, 2, 5 * cell)
        constants["shift"] = listed.astype("int8")
        constants["scale"] = source.integers(top // 2, top, listed.size).astype("uint16")
        constants["diff_shifts"] = np.array(([1, 0, 2] if wide else [0]) * steps, "int8")[:steps]
        given["lut_shift_value"] = 15 if wide else 0
        return
    if kind == "RNN":
        given |= {"scale_value": [200, 150, 180], "shift_value": [7, 8, 7 + width]}
        if wide:
            given |= {"scale_value": [30000, 21000, 17000], "shift_value": [15, 14, 15 + width]}
        return
    shift = [8 + grow, 7 + width + grow, 8 + grow, 7 + width + grow, 7, 15]
    top = 32768 if wide else 256
    scale = [int(v) for v in source.integers(top // 2, top, 6)]
    if wide:
        shift = [17, 23, 22, 23, 15, 30]
    if each:
        counts = [2 * cell, 2 * cell, cell, cell, 1, 1]
        constants["scale"] = source.integers(top // 2, top, sum(counts)).astype("uint16")
        constants["shift"] = (np.repeat(shift, counts) - source.integers(0, 2, sum(counts))).astype("int8")
        constants["shift"][-2:] = shift[-2:]
    else:
        given |= {"scale_value": scale, "shift_value": shift}
    given |= {"remain_shift": 12, "hidden_scale_value": top - 5, "hidden_shift_value": 24 if wide else 8 + width}


FORMS = ["int8", "int8 each", "int16", "int16 each", "float32", "float16"]
CASES = [(k, f) for k in KINDS for f in FORMS if k != "RNN" or f in ("int8", "int16", "float32")]


@pytest.mark.parametrize(("place", "kind", "dtype"), [(i, *c) for i, c in enumerate(CASES)])
def test_recurrent(tmp_path, place, kind, dtype):
    dtype, _, each = dtype.partition(" ")
    source = np.random.default_rng(5)
    for size in some((MANY[place % 2], SIZES[place % 2], SIZES[2 + place % 2])[: 2 + (place % 3 == 0)]):
        layer = layer_of(source, kind, size, dtype, bool(each))
        ends = (-32768, 32768) if dtype == "int16" else (-128, 128)
        whole = dtype.startswith("int")
        inputs = [
            source.integers(*ends, t.shape).astype(dtype) if whole else source.normal(0, 1, t.shape).astype(dtype)
            for t in layer.inputs
        ]
        wanted = evaluate(layer, inputs)
        assert size[1] == 1 or all(len(np.unique(w)) > 3 for w in wanted), size
        for got, want in zip(run(kernel_of([layer]), layer, inputs, tmp_path), wanted, strict=True):
            if whole:
                np.testing.assert_array_equal(got, want, f"{kind} {size}")
            else:
                limit = 1e-5 if dtype == "float32" else 2e-3
                np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=limit, atol=limit)


@pytest.mark.parametrize("change", ["state", "weights", "scale", "rank"])
def test_contradicting_shapes_are_refused(change):
    source = np.random.default_rng(7)
    layer = layer_of(source, "BasicLSTM", (2, 3, 5, 7, "forward"), "int8")
    inputs, constants = list(layer.inputs), dict(layer.constants)
    if change == "state":
        inputs[1] = Tensor("h", (2, 8), "int8")
    elif change == "rank":
        inputs[0] = Tensor("x", (6, 5), "int8")
    elif change == "weights":
        constants["weights"] = constants["weights"][:, 1:]
    else:
        constants["scale"] = constants["scale"][1:]
    with pytest.raises(LayerError, match=r"\d"):
        kernel_of([Layer("r", layer.type, inputs, layer.outputs, layer.attributes, constants)])


@pytest.mark.parametrize("kind", ["BasicLSTM", "GRUv1", "GRUv3"])
@pytest.mark.parametrize("large", [False, True], ids=["within", "limited"])
def test_weights_of_16_bits_whose_sums_are_limited_to_32_bits(kind, large, tmp_path):
    """Of the sums of 48 bits those that 32 bits do not hold are limited, after each step that says so."""
    source, size = np.random.default_rng(6), (2, 3, 9, 33, "forward")
    layer = layer_of(source, kind, size, "int16")
    constants, given = dict(layer.constants), dict(layer.attributes)
    high = 32767 if large else 3000
    constants["weights"] = source.integers(-high, high + 1, constants["weights"].shape).astype("int16")
    constants["biases"] = source.integers(-(2**31), 2**31, constants["biases"].shape).astype("int32")
    if kind == "BasicLSTM":
        shift = constants["shift"].astype(int)
        shift[0], shift[1:3] = (15, 25) if large else (17, 27)
        constants["shift"] = shift.astype("int8")
    else:
        given |= {"shift_value": [15, 29, 26, 29, 15, 30], "remain_shift": 31, "hidden_shift_value": 30}
        if large:
            given |= {"scale_value": [32767] * 6, "shift_value": [14, 30, 25, 30, 15, 30], "remain_shift": 29}
    layer = Layer("r", kind, layer.inputs, layer.outputs, given, constants)
    inputs = [source.integers(-32768, 32768, t.shape).astype("int16") for t in layer.inputs]
    inputs[0][0] = 32767  # rows of weights of one sign reach the limits
    wanted = evaluate(layer, inputs)
    for got, want in some(zip(run(kernel_of([layer]), layer, inputs, tmp_path), wanted, strict=True)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["TANH", "RELU", "NONE", "CLIP", "SIGN_BIT"])
def test_plain_recurrences_of_16_bits_sum_48(name, tmp_path):
    source, size = np.random.default_rng(9), (2, 3, 9, 33, "reverse")
    layer = layer_of(source, "RNN", size, "int16")
    constants, given = dict(layer.constants), dict(layer.attributes) | {"activations": name}
    constants["weights"] = source.integers(-32767, 32768, constants["weights"].shape).astype("int16")
    constants["biases"] = source.integers(-(2**31), 2**31, constants["biases"].shape).astype("int32")
    given |= {"scale_value": [32767, 16384, 20011], "shift_value": [15, 14, 31]}
    given |= {"clip_min": -(2**30), "clip_max": 2**31 - 1}
    out: dict[str, Any] = {"scale": 3.0, "zero": 0 if name == "TANH" else 7, "limits": (-32000, 32767)}
    layer = Layer("r", "RNN", layer.inputs, [replace(t, **out) for t in layer.outputs], given, constants)
    inputs = [source.integers(-32768, 32768, t.shape).astype("int16") for t in layer.inputs]
    wanted = evaluate(layer, inputs)
    assert len(np.unique(wanted[0])) > (1 if name == "SIGN_BIT" else 50)
    for got, want in zip(run(kernel_of([layer]), layer, inputs, tmp_path), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


SHIFTS = [np.asarray(n) for n in (1, 9, 16, 17, 30)] + [np.asarray([3, 20, 16] * 10 + [40, 0])]


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda s: str(s.reshape(-1)[0]) if s.size == 1 else "mixed")
def test_numbers_of_48_bits_are_rounded_and_limited_to_32(shift, tmp_path):
    exact, got = rounded(shift, lambda k, pair: pair, tmp_path)
    np.testing.assert_array_equal(got, requantise(exact, 1, np.resize(shift, 320), 0, -(2**31), 2**31 - 1))


def test_the_larger_of_0_and_a_number_of_48_bits_is_exact(tmp_path):
    exact, got = rounded(np.asarray(16), positive, tmp_path)
    np.testing.assert_array_equal(got, requantise(np.maximum(exact, 0), 1, 16, 0, 0, 2**31 - 1))


def rounded(shift: np.ndarray, change: Callable[..., Any], folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of 47 bits, and what a kernel gives that shifts them after a change."""
    source, bound = np.random.default_rng(8), 1 << 46
    exact = source.integers(-bound, bound, 320) >> source.integers(0, 40, 320)
    edges = np.asarray(
        [(2**31 - 1 << 16) + d for d in range(-40000, 40000, 1000)] + [-(2**31) * 2**n for n in range(15)]
    )
    exact[: edges.size] = np.clip(edges, -bound, bound - 1)
    x, low, y = (Tensor(n, (320,), "int32") for n in ("high", "low", "y"))
    k = LayerKernel()
    k.lanes_of = lambda numbers: S.vload(k.pointer(numbers), lanes=32)
    with k.active():
        *words, made = (k.tensor(t) for t in (x, low, y))
        with k.for_range(0, 320, 32) as i:
            pair = Pair(*(k.let(S.vload(word + i, lanes=32)) for word in words), -bound, bound)
            S.vstore(shifted_pair(k, change(k, pair), shift), made + i)
    layer = Layer("l", "Pair", [x, low], [y])
    inputs = [(exact >> 16).astype("int32"), (exact & 65535).astype("int32")]
    return exact, run(k.kernel(), layer, inputs, folder)[0]
