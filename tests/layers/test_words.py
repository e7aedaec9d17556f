"""Element-wise layers of uint32: all 32 bits count, also the first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compassc.graph import LayerError
from compassc.layers.families.eltwise.reference import LOGICAL, METHODS
from compassc.layers.kernels import STEPS, WORD_STEPS, kernel_of, load_kernels
from tests.choosing import some
from tests.layers.cases import Array, drawn, layer_of, same, tensor

SHAPES = [((3, 45), (3, 45)), ((2, 1, 33), (1, 5, 33)), ((4, 7), (1,)), ((5, 6), (5, 1))]
FORMS: dict[str, list[dict[str, Any]]] = {
    "Eltwise": [{"method": m} for m in METHODS],
    "Add": [{}],
    "Bitwise": [{"method": m} for m in ("AND", "OR", "XOR", "NOT")],
    "BitShift": [{"direction": d} for d in ("LEFT", "RIGHT")],
    "Logical": [{"method": m} for m in LOGICAL],
    "DivMod": [{"mode": m} for m in ("FLOOR", "TRUNC")],
    "Where": [{}],
}
EDGES = np.array([0, 1, 2, 31, 32, 33, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF], "uint32")


def operands(source: np.random.Generator, *shapes: tuple[int, ...]) -> list[Array]:
    """Words of any size, edges among them, often equal."""
    return [
        np.where(source.integers(0, 2, s), source.choice(EDGES, s), drawn(source, tensor("x", s, "uint32"))).astype(
            "u4"
        )
        for s in shapes
    ]


@pytest.mark.parametrize("kind", FORMS)
def test_all_bits_count(tmp_path, kind):
    source = np.random.default_rng(5)
    for i, given in enumerate(some(FORMS[kind])):
        a, b = SHAPES[i % len(SHAPES)]
        out = np.broadcast_shapes(a, b)
        inputs, arrays = [tensor("a", a, "uint32"), tensor("b", b, "uint32")], operands(source, a, b)
        if given.get("method") == "NOT":
            inputs, arrays, out = inputs[:1], arrays[:1], a
        if kind == "Where":
            inputs.insert(0, tensor("c", out, "bool"))
            arrays.insert(0, drawn(source, inputs[0]))
        dtype = "uint8" if kind == "Logical" else "uint32"
        same(layer_of(kind, inputs, dtype, given, [out] * (2 if kind == "DivMod" else 1)), arrays, tmp_path)


@pytest.mark.parametrize("mode", ["SATURATION", "TRUNCATION"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32", "bfloat16", "bool"])
def test_they_become_other_numbers_and_back(tmp_path, mode, dtype):
    source, (word, other) = np.random.default_rng(6), (tensor("x", (90,), d) for d in ("uint32", dtype))
    same(layer_of("Cast", [word], dtype, {"clip_mode": mode}, [(90,)]), operands(source, (90,)), tmp_path)
    back = layer_of("Cast", [other], "uint32", {"clip_mode": mode}, [(90,)])
    given = drawn(source, other)
    if other.is_integer:
        same(back, [given], tmp_path)
    elif mode == "SATURATION":
        edges = [np.nan, np.inf, -np.inf, -1, 0.99, 4294967040, 4294967296, 1e30, 3e9]
        same(back, [np.concatenate([np.array(edges, given.dtype), given[len(edges) :]])], tmp_path)


@pytest.mark.parametrize(
    "types", [("float32", "int32"), ("uint32", "float32"), ("float16", "int16"), ("int8", "uint8")]
)
def test_bits_are_read_as_another_type(tmp_path, types):
    x = tensor("x", (90,), types[0])
    given = np.random.default_rng(3).integers(0, 256, 90 * np.dtype(types[0]).itemsize).astype("u1").view(types[0])
    layer = layer_of("Cast", [x], types[1], {"clip_mode": "BITS"}, [(90,)])
    if types[1] == "float32":
        given[np.isnan(given.view("f4"))] = 0  # of the NaNs only some bits are kept
    same(layer, [given], tmp_path)
    with pytest.raises(LayerError, match="sizes differ"):
        kernel_of([layer_of("Cast", [x], "int8" if types[1] != "uint8" else "int16", {"clip_mode": "BITS"}, [(90,)])])


def test_every_step_has_a_test_or_is_another_name_of_one():
    load_kernels()
    steps = {WORD_STEPS[kind] for kind in (*FORMS, "Cast")}
    assert {kind for kind, step in WORD_STEPS.items() if step not in steps} == set()


def test_what_has_no_step_is_refused():
    load_kernels()
    x = tensor("x", (7,), "uint32")
    for kind in some(sorted(STEPS.keys() - WORD_STEPS.keys())):
        with pytest.raises(LayerError):
            kernel_of([layer_of(kind, [x], "uint32", {}, [(7,)])])


def test_scales_are_refused():
    x, y = (replace(tensor(n, (7,), "uint32"), scale=s) for n, s in (("x", 2.0), ("y", 1.0)))
    layer = layer_of("Eltwise", [x, y], "uint32", {"method": "ADD", "scale_value": [3, 1, 1], "shift_value": 1}, [(7,)])
    with pytest.raises(LayerError, match="do not rescale uint32"):
        kernel_of([layer])
