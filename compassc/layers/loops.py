"""The loops around element-wise steps: over tiles that DMA brings into LSRAM, or over rows where operands broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.broadcast import common_shape
from compassc.layers.byte_functions import runs
from compassc.layers.emit import wide_kind
from compassc.layers.kernels import compute
from compassc.layers.source import LANES, Kernel, KernelSource, Value, finish, last_cleared, loaded
from compassc.layers.vectors import WIDE

TILES_BYTES = 24576
"""LSRAM for the tiles of all operands."""
TABLE_BYTES = 6144
"""LSRAM for the tables of a kernel."""


class IterationSpace(NamedTuple):
    """Dimensions of the output, merged as far as all operands allow, and each operand's elements per step of them."""

    dims: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]


def space_of(out: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> IterationSpace:
    """The iteration space of operands that broadcast to `out`; a size that divides another one is repeated."""
    rank = len(out)
    wide = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    dims: list[int] = []
    strides: list[list[int]] = [[] for _ in shapes]
    steps = [1] * len(shapes)
    for axis in reversed(range(rank)):
        sizes = [s[axis] for s in wide]
        period = min((n for n in sizes if n > 1), default=out[axis])
        if any(n not in (1, period, out[axis]) for n in sizes):
            raise LayerError(f"operands of sizes {sorted(set(sizes))} repeat in different ways on one axis")
        # an operand that repeats makes two dimensions of one: its own size, and the repetitions
        inner = [step if n > 1 else 0 for n, step in zip(sizes, steps, strict=True)]
        outer = [step * period if n > period else 0 for n, step in zip(sizes, steps, strict=True)]
        for size, own in ((period, inner), (out[axis] // max(period, 1), outer)):
            if size > 1:
                _merge(dims, strides, size, own)
        steps = [step * s[axis] for s, step in zip(wide, steps, strict=True)]
    if not dims:
        _merge(dims, strides, 1, [0] * len(shapes))
    return IterationSpace(tuple(reversed(dims)), tuple(tuple(reversed(s)) for s in strides))


def _merge(dims: list[int], strides: list[list[int]], size: int, own: list[int]) -> None:
    """Adds a dimension outside of the others, or makes the outermost longer where all operands go on as they do."""
    if dims and all(o == s[-1] * dims[-1] for o, s in zip(own, strides, strict=True)):
        dims[-1] *= size
        return
    dims.append(size)
    for s, o in zip(strides, own, strict=True):
        s.append(o)


class Operand(NamedTuple):
    """A load of a pass: its variable, the tensor (or an array of the kernel), and the name of the pointer."""

    name: str
    tensor: Tensor
    pointer: str


class Result(NamedTuple):
    """A store of a pass: the tensor, the name of its pointer, and the expression of the lanes."""

    tensor: Tensor
    pointer: str
    stored: str


def elementwise_kernel(layers: Sequence[Layer]) -> Kernel:
    """One kernel for a chain of element-wise layers; each takes the output of the one before among its operands."""
    k, out = KernelSource(spread=[]), layers[-1].output
    operands = [Operand(f"x{i}", t, k.tensor(t)) for i, t in enumerate(_operands(layers))]
    for o in operands:
        if common_shape(o.tensor.shape, out.shape) != out.shape:
            raise LayerError(
                f"'{o.tensor.name}' of shape {list(o.tensor.shape)} does not broadcast to {list(out.shape)}"
            )
    values = {o.tensor.name: _value(o.name, o.tensor) for o in operands}
    _as_loaded(k, out, operands)
    for run in runs(layers):
        if any(t.shape != out.shape for layer in run for t in layer.outputs):
            raise LayerError(f"its outputs are {[list(t.shape) for t in run[-1].outputs]}, expected one shape")
        compute(k, run, values)
    operands += [
        Operand(name, Tensor(name, a.shape, a.dtype.name), k.constant(a.reshape(-1))) for name, a in k.spread or ()
    ]
    space = space_of(out.shape, [o.tensor.shape for o in operands])
    results = [Result(t, k.tensor(t), f'narrow({values[t.name].name}, "{t.dtype}")') for t in layers[-1].outputs]
    loop = _tiles if all(s in ((1,), (0,)) for s in space.strides) else _rows
    return finish(k, [*k.head, *loop(k, space, operands, results)])


def _as_loaded(k: KernelSource, out: Tensor, operands: list[Operand]) -> None:
    """Tells the stored lanes of operands that are loaded as vectors."""
    space = space_of(out.shape, [o.tensor.shape for o in operands])
    for o, strides in zip(operands, space.strides, strict=True):
        if strides[-1] and WIDE[o.tensor.dtype] != o.tensor.dtype != "bool":
            k.stored_forms[o.name, o.tensor.dtype] = f"{o.name}_raw"


def _operands(layers: Sequence[Layer]) -> list[Tensor]:
    """The operands from outside the chain, each tensor once."""
    made = {t.name for layer in layers for t in layer.outputs}
    found: dict[str, Tensor] = {}
    for layer in layers:
        for t in layer.inputs:
            if t.name not in made:
                found.setdefault(t.name, t)
    return list(found.values())


def _value(name: str, tensor: Tensor) -> Value:
    kind = wide_kind(tensor)
    return Value(name, kind) if kind == "float32" else Value(name, kind, tensor.low, tensor.high)


def _everywhere(name: str, pointer: str, dtype: str) -> str:
    """The statement that puts one element in every lane."""
    return f'{name} = S.vbcast(S.cast({pointer}[0], "{WIDE[dtype]}"), lanes={LANES})'


def _tiles(k: KernelSource, space: IterationSpace, operands: list[Operand], results: list[Result]) -> list[str]:
    """Contiguous shares of all elements, tile by tile through LSRAM."""
    from compassc.layers.vectors import pointee

    full = [s == (1,) for s in space.strides]
    sizes = [_bytes(t.dtype) for (_, t, _), f in zip(operands, full, strict=True) if f]
    sizes += [_bytes(r.tensor.dtype) for r in results]
    tile = TILES_BYTES // sum(sizes) // LANES * LANES
    n = k.scalar(space.dims[0])
    made = [f"tile_y{i or ''}" for i in range(len(results))]
    # lanes behind the last element do no harm where nothing is looked up by them
    masked = any("mask" in line for line in k.body)
    mask = "mask" if masked else ""
    lines = [
        f'{name} = S.alloc({tile + LANES}, "{pointee(r.tensor.dtype)}", scope="lsram")'
        for name, r in zip(made, results, strict=True)
    ]
    copies, loads = [], []
    for i, ((name, t, p), whole) in enumerate(zip(operands, full, strict=True)):
        if whole:
            lines.append(f'tile{i} = S.alloc({tile + LANES}, "{pointee(t.dtype)}", scope="lsram")')
            if not masked:
                copies.append(last_cleared(f"tile{i}", "now", t.dtype))
            copies.append(f"S.dma_copy(tile{i}, {p} + at, now)")
            loads += loaded(name, f"tile{i} + i", t.dtype, mask)
        else:
            lines.append(_everywhere(name, p, t.dtype))
    inner = [*(["mask = S.tail_mask(S.min(now - i, 32), 32)"] if masked else []), *loads, *k.body]
    store = ", mask" if masked else ""
    inner += [f"S.vstore({r.stored}, {name} + i{store})" for name, r in zip(made, results, strict=True)]
    return [
        *lines,
        f"part = shared_part({n}, {LANES})",
        "first = S.get_local_id() * part",
        f"last = S.min(first + part, {n})",
        f"for at in range(first, last, {tile}):",
        f"    now = S.min(last - at, {tile})",
        *(f"    {c}" for c in copies),
        f"    for i in range(0, now, {LANES}):",
        *(f"        {line}" for line in inner),
        *(f"    S.dma_copy({r.pointer} + at, {name}, now)" for name, r in zip(made, results, strict=True)),
    ]


def _rows(k: KernelSource, space: IterationSpace, operands: list[Operand], results: list[Result]) -> list[str]:
    """The innermost dimension is a row; a TEC takes every fourth. Operands lie in device memory."""
    *outer, cols = space.dims
    rows = 1
    for d in outer:
        rows *= d
    sizes = [k.scalar(d) for d in outer]
    width = k.scalar(cols)
    lines, loads = [], []
    for i, ((name, t, p), strides) in enumerate(zip(operands, space.strides, strict=True)):
        terms = [f"at{d} * {k.scalar(s)}" for d, s in enumerate(strides[:-1]) if s]
        lines.append(f"o{i} = {' + '.join(terms) or 'S.i32(0)'}")
        if strides[-1] == 1:
            loads += loaded(name, f"{p} + o{i} + i", t.dtype, "mask")
        else:
            lines.append(_everywhere(name, f"({p} + o{i})", t.dtype))
    indices = []
    for d in reversed(range(len(outer))):
        indices.append(f"at{d} = rest % {sizes[d]}" if d else "at0 = rest")
        if d:
            indices.append(f"rest = rest / {sizes[d]}")
    inner = [f"mask = S.tail_mask(S.min({width} - i, 32), 32)", *loads, *k.body]
    inner += [f"S.vstore({r.stored}, {r.pointer} + r * {width} + i, mask)" for r in results]
    return [
        f"for r in range(S.get_local_id(), {k.scalar(rows)}, S.get_local_size()):",
        *(["    rest = r + 0"] if indices else []),
        *(f"    {line}" for line in [*indices, *lines]),
        f"    for i in range(0, {width}, {LANES}):",
        *(f"        {line}" for line in inner),
    ]


def _bytes(dtype: str) -> int:
    return {"8": 1, "6": 2, "2": 4, "l": 1}[dtype[-1]]
