"""Kernels of layers that move elements."""

from __future__ import annotations

from compassc.layers.emit import requantise_to, wide_kind
from compassc.layers.kernels import kernel
from compassc.layers.layer import Layer, LayerError, TensorType
from compassc.layers.moving import BITS, Copy, rows, strides_of
from compassc.layers.source import LANES, Kernel, KernelSource, Value, finish


def _raw(tensor: TensorType) -> tuple[str, str, str]:
    """(pointer cast, load, store) that move elements unchanged."""
    bits = BITS[tensor.dtype]
    load = f"raw = S.vload({{at}}, mask, lanes={LANES}{{stride}})"
    return f'.as_ptr("{bits}")', load, "S.vstore(raw, {at}, mask{stride})"


@kernel("Concat")
def concat(layer: Layer) -> Kernel:
    """Each branch is copied to its place, after being brought to the output's scale."""
    k, y, axis = KernelSource(), layer.output, layer.axis()
    target, strides = k.tensor(y), strides_of(y.shape)
    scale, shift = layer.scale_shift()
    lines: list[str] = []
    first = 0
    for i, x in enumerate(layer.inputs):
        place = Copy(x.shape, 0, strides_of(x.shape), first * strides[axis], strides)
        first += x.shape[axis]
        pointer = k.tensor(x)
        m, n = (v.reshape(-1)[i % v.size].reshape(()) for v in (scale, shift))
        plain = not layer.is_quantised or (
            (int(m) == 1 and not int(n)) and x.scalar_zero == y.scalar_zero and y.low <= x.low and x.high <= y.high
        )
        if plain and x.dtype == y.dtype:
            cast, load, store = _raw(x)
            lines += rows(k, place, f"{pointer}{cast}", f"{target}{cast}", load, [], store, str(i))
            continue
        wide_kind(x)
        k.body = []
        value = k.shifted(Value("x", "int32", x.low, x.high), x.scalar_zero)
        result = requantise_to(k, value, m, n, y)
        load = f'x = wide(S.vload({{at}}, mask, lanes={LANES}{{stride}}), "{x.dtype}")'
        store = f'S.vstore(narrow({result.name}, "{y.dtype}"), {{at}}, mask{{stride}})'
        lines += rows(k, place, pointer, target, load, k.body, store, str(i))
    return finish(k, lines)


@kernel("Pad")
def pad(layer: Layer) -> Kernel:
    """The border first, then the input in its place; only constant borders."""
    if layer.word("mode", "CONSTANT") != "CONSTANT":
        raise LayerError(f"'mode' is {layer.word('mode')}, for which there is no kernel")
    k, x, y = KernelSource(), layer.input, layer.output
    pads = layer.pairs("pads")
    if min(min(p) for p in pads) < 0:
        raise LayerError(f"'pads' is {pads}; negative pads have no kernel")
    bits = BITS[y.dtype]
    import numpy as np

    from compassc.layers.storage import numpy_dtype

    value = np.full(1, layer.number("constant_value", 0)).astype(numpy_dtype(y.dtype))
    word = int(value.view({1: "uint8", 2: "uint16", 4: "int32"}[value.itemsize])[0])
    source, target = f'{k.tensor(x)}.as_ptr("{bits}")', f'{k.tensor(y)}.as_ptr("{bits}")'
    strides = strides_of(y.shape)
    first = sum(before * s for (before, _), s in zip(pads, strides, strict=True))
    fill = [
        f'border = S.vbcast(S.cast({k.scalar(word)}, "{bits}"), lanes={LANES})',
        f"for j in range(S.get_local_id() * {LANES}, {k.scalar(y.count)}, S.get_local_size() * {LANES}):",
        f"    S.vstore(border, {target} + j, S.tail_mask(S.min({k.scalar(y.count)} - j, {LANES}), {LANES}))",
        "S.barrier()",
    ]
    _, load, store = _raw(x)
    place = Copy(x.shape, 0, strides_of(x.shape), first, strides)
    return finish(k, fill + rows(k, place, source, target, load, [], store, "0"))
