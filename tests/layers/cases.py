"""Layers as test cases: tensors in short, random inputs with extreme values, and a kernel held against its reference."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import BOUNDS, evaluate
from compassc.layers.kernels import kernel_of
from tests.layers.harness import expect

Array = np.ndarray[Any, Any]
SIZES = ("int8", "float16", "float32")
"""Types of each element size, floats and integers."""
TYPES = ("int8", "uint8", "bool", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32")
"""All types whose elements kernels move."""


def tensor(name: str, shape: tuple[int, ...], dtype: str, scale: float = 1.0, zero: int = 0) -> Tensor:
    return Tensor(name, tuple(int(n) for n in shape), dtype, scale, zero)


def drawn(source: np.random.Generator, t: Tensor, narrow: bool = False) -> Array:
    """Random values, the type's smallest and largest among them; `narrow`: few different ones, so that many are equal."""
    if narrow:
        return source.integers(0 if t.is_integer and t.low == 0 else -2, 4, t.shape).astype(numpy_dtype(t.dtype))
    if t.dtype == "bool":
        return source.integers(0, 2, t.shape).astype(bool)
    if t.is_integer:
        values = source.integers(t.low, t.high + 1, t.shape)
        values.reshape(-1)[:2] = (t.low, t.high)[: values.size]
        return np.asarray(values).astype(numpy_dtype(t.dtype))
    return np.asarray(source.normal(0, 2, t.shape)).astype(numpy_dtype(t.dtype))


def layer_of(
    kind: str,
    inputs: list[Tensor],
    dtype: str,
    attributes: dict[str, Any],
    shapes: Any,
    zero: int = 0,
    **constants: Array,
) -> Layer:
    """A layer with outputs of these shapes."""
    outputs = [tensor(f"y{i}", s, dtype, 1.0, zero) for i, s in enumerate(shapes)]
    return Layer("layer", kind, inputs, outputs, attributes, constants)


def same(layer: Layer, inputs: list[Array], folder: Path, relative: float = 0, target: str = "X2_1204") -> None:
    """The kernel gives what the reference gives, for floats within `relative` of the largest magnitude."""
    want, label = evaluate(layer, inputs), label_of(layer)

    def compare(outputs: list[Array]) -> None:
        for got, wanted in zip(outputs, want, strict=True):
            if relative and got.dtype.kind not in "iub":
                a, b = got.astype("f8"), wanted.astype("f8")
                np.testing.assert_allclose(a, b, rtol=relative, atol=relative, err_msg=label)
            else:
                np.testing.assert_array_equal(
                    got.view(f"u{got.dtype.itemsize}"), wanted.view(f"u{got.dtype.itemsize}"), label
                )

    expect(kernel_of([layer]), layer, inputs, folder, compare, target)


def check(layer: Layer, source: np.random.Generator, folder: Path, rounds: int = 1, narrow: bool = False) -> None:
    """The kernel gives what the reference gives for drawn inputs: integers exactly, floats within `BOUNDS`."""
    kernel, label = kernel_of([layer]), label_of(layer)

    def compare(outputs: list[Array], want: list[Array]) -> None:
        for got, wanted, t in zip(outputs, want, layer.outputs, strict=True):
            if t.is_integer:
                np.testing.assert_array_equal(got, wanted, label)
            else:
                limit = BOUNDS[t.dtype]
                wide, other = got.astype("f8"), wanted.astype("f8")
                np.testing.assert_allclose(wide, other, rtol=limit, atol=limit, err_msg=label)

    for _ in range(rounds):
        inputs = [drawn(source, t, narrow) for t in layer.inputs]
        expect(kernel, layer, inputs, folder, partial(compare, want=evaluate(layer, inputs)))


def label_of(layer: Layer) -> str:
    """What a failure says of a layer."""
    return f"{layer.type} {[(t.dtype, t.shape) for t in (*layer.inputs, *layer.outputs)]} {dict(layer.attributes)}"
