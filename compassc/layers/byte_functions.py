"""Runs of layers that make of one byte another one: a table of 256 entries in registers, filled by their references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate
from compassc.layers.kernels import is_step
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import LANES, WIDE, entries_of_bytes, pointee

BYTES = ("int8", "uint8")
ENTRIES = 256


def is_byte_function(layer: Layer) -> bool:
    """Whether each element of the output follows from the byte at its place alone, and has 8 or 16 bits."""
    if not is_step(layer.type) or len(layer.inputs) != 1 or len(layer.outputs) != 1 or not layer.is_quantised:
        return False
    x, y = layer.input, layer.output
    known = x.dtype in BYTES and y.dtype in (*BYTES, "int16", "uint16") and x.shape == y.shape
    return known and all(a.size == 1 or key == "lut" for key, a in layer.constants.items())


def runs(layers: Sequence[Layer]) -> Iterator[tuple[Layer, ...]]:
    """The layers in order: those that make a function of bytes together, the others one by one."""
    run: list[Layer] = []
    for layer in layers:
        if run and not (is_byte_function(layer) and layer.input.name == run[-1].output.name):
            yield tuple(run)
            run = []
        if is_byte_function(layer):
            run.append(layer)
        else:
            yield (layer,)
    if run:
        yield tuple(run)


def table_of(layers: Sequence[Layer]) -> Array | None:
    """What a run gives for the bytes 0 to 255; None where it is no function of bytes or refuses some."""
    if not is_byte_function(layers[0]):
        return None
    values = all_bytes(layers[0].input)
    for layer in layers:
        flat = replace(layer, inputs=(_flat(layer.input),), outputs=(_flat(layer.output),))
        try:
            (values,) = evaluate(flat, [values])
        except LayerError:
            return None
    return values


def _flat(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(ENTRIES,))


def looked_up(k: LayerKernel, layers: Sequence[Layer], x: Value) -> Value | None:
    """The value after a run of layers on `x`, by their table; None where there is none."""
    table = table_of(layers)
    return None if table is None else widened_of(k, entries(k, x, layers[0].input.dtype, table), table)


def looked_up_apart(k: LayerKernel, layer: Layer, method: str, given: Sequence[Value]) -> Value | None:
    """The maximum or minimum that a layer makes of two bytes, where it is that of a function of each.

    All pairs are tried: results of other layers, and of those whose rounding is not monotonic, are None.
    """
    if any(t.dtype not in BYTES for t in (*layer.inputs, *layer.outputs)):
        return None
    if any((v.name, t.dtype) not in k.stored_forms for v, t in zip(given, layer.inputs, strict=True)):
        return None
    square = (ENTRIES, ENTRIES)
    flat = replace(
        layer,
        inputs=tuple(replace(t, shape=square) for t in layer.inputs),
        outputs=(replace(layer.output, shape=square),),
    )
    first, second = (all_bytes(t) for t in layer.inputs)
    try:
        (pairs,) = evaluate(flat, list(np.broadcast_arrays(first[:, None], second)))
    except LayerError:
        return None
    apart, both = (np.min, np.maximum) if method == "MAX" else (np.max, np.minimum)
    tables = [apart(pairs, axis=axis) for axis in (1, 0)]
    if not np.array_equal(both.outer(*tables), pairs):
        return None
    found = [entries(k, v, t.dtype, table) for v, t, table in zip(given, layer.inputs, tables, strict=True)]
    return widened_of(k, k.let((S.max if method == "MAX" else S.min)(*found)), pairs)


def all_bytes(tensor: Tensor) -> Array:
    """The bytes 0 to 255 as elements of a tensor."""
    return np.arange(ENTRIES).astype(np.uint8).view(numpy_dtype(tensor.dtype))


def entries(k: LayerKernel, x: Value, dtype: str, table: Array) -> Value:
    """The variable with the entries of a table at the bytes of a value, as they are stored."""
    at = k.let(k.stored(x, dtype))
    halves = table.reshape(-1, 1).view(np.uint8).T
    found = [k.let(entries_of_bytes(at, *registers_of(k, half))) for half in halves]
    whole = found[0] if len(found) == 1 else S.vzip(found[0], found[1])
    return k.let(S.reinterpret(whole, f"{table.dtype.name}x{LANES}"))


def widened_of(k: LayerKernel, held: Value, table: Array) -> Value:
    """Stored lanes, which are among those of a table, as a value. Each step has a name, so that it is done once."""
    dtype, value = table.dtype.name, k.let(held)
    if dtype in BYTES:
        value = k.let(S.cast(value, pointee(dtype).replace("8", "16")))
    value = k.let(S.cast(value, WIDE[dtype]), low=int(table.min()), high=int(table.max()))
    k.stored_forms[value.name, dtype] = held
    return value


def registers_of(k: LayerKernel, table: Array, size: int = ENTRIES) -> list[Value]:
    """The variables that hold the first `size` bytes of a table."""
    pointer = k.pointer(np.ascontiguousarray(table[:size]))
    return [k.once(S.vload(pointer + i * LANES, lanes=LANES)) for i in range(size // LANES)]
