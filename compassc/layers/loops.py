"""The loops around element-wise steps: over tiles that DMA brings into LSRAM, or over rows where operands broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import NamedTuple

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.broadcast import common_shape
from compassc.layers.byte_functions import runs
from compassc.layers.emit import wide_kind
from compassc.layers.kernels import compute
from compassc.layers.machine import Share
from compassc.layers.source import LANES, Kernel, KernelSource, Value, finish, invariant, loaded
from compassc.layers.streams import Streams, bytes_of
from compassc.layers.vectors import LANE_KINDS, pointee


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
    results = [Result(t, k.tensor(t), _stored(values[t.name], t)) for t in layers[-1].outputs]
    loop = _tiles(k, space, operands, results) if period_of(space) else None
    return finish(k, [*k.head, *(loop or _rows(k, space, operands, results))])


def _stored(value: Value, out: Tensor) -> str:
    """The lanes as the output stores them."""
    return value.name if out.dtype == value.kind == "uint32" else f'narrow({value.name}, "{out.dtype}")'


def _as_loaded(k: KernelSource, out: Tensor, operands: list[Operand]) -> None:
    """Tells the stored lanes of operands that are loaded as vectors."""
    space = space_of(out.shape, [o.tensor.shape for o in operands])
    for o, strides in zip(operands, space.strides, strict=True):
        if strides[-1] and LANE_KINDS[o.tensor.dtype] != o.tensor.dtype != "bool":
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
    kind = tensor.dtype if tensor.dtype == "uint32" else wide_kind(tensor)
    return Value(name, kind) if kind == "float32" else Value(name, kind, tensor.low, tensor.high)


def _everywhere(name: str, pointer: str, dtype: str) -> list[str]:
    """The statements that put one element in every lane, as it is stored and in its wide form."""
    kind = LANE_KINDS[dtype]
    wide = f'{name} = S.vbcast(S.cast({pointer}[0], "{kind}"), lanes={LANES})'
    return [f"{name}_raw = S.vbcast({pointer}[0], lanes={LANES})", wide] if kind != dtype else [wide]


PERIOD = 128
"""Elements that operands that repeat along the others are repeated to."""
LONGEST_PERIOD = 1024
"""Elements that such an operand may come to for whole vectors."""
REPEATED = Share(2)
"""LSRAM for such operands."""


def period_of(space: IterationSpace) -> int:
    """Elements after which all operands that are not as long as the output begin again: 1 where these are single elements,
    0 where they are not only repeated."""
    if all(s in ((1,), (0,)) for s in space.strides):
        return 1
    if len(space.dims) != 2 or any(s not in ((space.dims[1], 1), (0, 1), (0, 0)) for s in space.strides):
        return 0
    return space.dims[1]


def _tiles(k: KernelSource, space: IterationSpace, operands: list[Operand], results: list[Result]) -> list[str] | None:
    """Contiguous shares of all elements, tile by tile through LSRAM: the next tile comes while one is computed with, and
    the last one goes. Operands that repeat along the last axis stay there. None where they are too large."""
    period = period_of(space)
    full = [o for o, s in zip(operands, space.strides, strict=True) if s in ((1,), (period, 1))]
    again = [o for o, s in zip(operands, space.strides, strict=True) if s == (0, 1)]
    each = sum(bytes_of(o.tensor.dtype) for o in again)
    several = _repetitions(period, each) if again else 1
    held = each * (period * several + LANES)
    if held > REPEATED.size:
        return None
    step, count = period * several, space.dims[0] * (period if len(space.dims) > 1 else 1)
    paired = bool(again) and step % LANES == 0 and step <= PAIRED
    read, written = [(o.pointer, o.tensor) for o in full], [(r.pointer, r.tensor) for r in results]
    streams = Streams(read, written, held, step if paired else 0, k.table_bytes)
    tile = streams.tile(count, 2 * step if paired and count >= COLUMN * step else step)
    if not tile:
        return None
    lines: list[str] = []
    with_first: list[str] = []
    for o in operands:
        if o in again and several == 1 and full:
            lines += _held(k, o, period)
            with_first.append(f"again_{o.name}, {o.pointer}, {k.scalar(period)}")
        elif o in again:
            lines += _held(k, o, period * several, _repeated(k, o, period, several))
        elif o not in full:
            lines += _everywhere(o.name, o.pointer, o.tensor.dtype)
    # lanes behind the last element do no harm where nothing is looked up by them
    masked = any("mask" in line for line in k.body)
    mask, store = ("mask", ", mask") if masked else ("", "")
    loads = [line for o in again for line in loaded(o.name, f"again_{o.name} + i", o.tensor.dtype)]
    body = [
        line
        for o, t in zip(full, streams.here, strict=True)
        for line in loaded(o.name, f"{t} + place", o.tensor.dtype, mask)
    ]
    body += k.body
    body += [f"S.vstore({r.stored}, {t} + place{store})" for r, t in zip(results, streams.there, strict=True)]
    width = k.scalar(step) if period > 1 else ""
    by = _by_columns if paired and tile >= COLUMN * step else _by_rows
    return [
        *lines,
        f"part = shared_part({k.scalar(count)}, {width or LANES})",
        "first = S.get_local_id() * part",
        f"last = S.min(first + part, {k.scalar(count)})",
        *streams.loop(k.scalar(tile), by(loads, body, width, masked), with_first),
    ]


COLUMN = 4
"""Vectors of a tile that an operand that repeats should be of use for to be loaded once for all of them."""
PAIRED = 512
"""Elements of such an operand up to which two of these vectors are taken in a pass, of which one may lie behind the tile."""


def _tail(left: str) -> str:
    return f"mask = S.tail_mask(S.min({left}, {LANES}), {LANES})"


def _by_rows(loads: list[str], body: list[str], width: str, masked: bool) -> list[str]:
    """The loops over the `now` elements of a tile in their order, `place` is the first of a vector; `loads` are those of
    operands that repeat after `width` elements."""
    if not width:
        inner = [*([_tail("now - place")] if masked else []), *loads, *body]
        return [f"for place in range(0, now, {LANES}):", *("    " + line for line in inner)]
    left = f"S.min({width}, now - r)"
    inner = ["place = r + i", *([_tail(f"{left} - i")] if masked else []), *loads, *body]
    return [
        f"for r in range(0, now, {width}):",
        f"    for i in range(0, {left}, {LANES}):",
        *("        " + line for line in inner),
    ]


def _by_columns(loads: list[str], body: list[str], width: str, masked: bool) -> list[str]:
    """The same with a vector of the operands that repeat, and what follows from it alone, for all vectors it meets, which
    are taken in pairs."""
    shared, inner = invariant([*loads, *body], ("place", "mask"))
    return [
        f"for i in range(0, {width}, {LANES}):",
        *("    " + line for line in shared),
        f"    for pair in range(i, now, {width} * 2):",
        "        for u in S.unroll(2):",
        f"            place = pair + u * {width}",
        *("            " + line for line in [*([_tail("now - place")] if masked else []), *inner]),
    ]


def _repetitions(period: int, each: int) -> int:
    """How often operands of `period` elements, of `each` bytes together, are repeated: to whole vectors, if they can be."""
    whole = lcm(period, LANES)
    if whole > LONGEST_PERIOD or each * (whole + LANES) > REPEATED.size:
        return 1
    most = min(PERIOD, REPEATED.size // each - LANES)
    return max(1, most // whole) * whole // period


def _held(k: KernelSource, operand: Operand, size: int, filled: Sequence[str] = ()) -> list[str]:
    """An array in LSRAM for an operand that repeats, and the lines that fill it; what lies behind it is 0."""
    name, dtype = f"again_{operand.name}", operand.tensor.dtype
    zeros = f'S.vbcast(S.cast(0, "{pointee(dtype)}"), lanes={LANES})'
    return [
        f'{name} = S.alloc({size + LANES}, "{pointee(dtype)}", scope="lsram")',
        *filled,
        f"S.vstore({zeros}, {name} + {k.scalar(size)})",
    ]


def _repeated(k: KernelSource, operand: Operand, period: int, several: int) -> list[str]:
    """The operand of `period` elements in its array, several times."""
    name, size, whole = f"again_{operand.name}", k.scalar(period), k.scalar(period * several)
    lines = [f"S.dma_copy({name}, {operand.pointer}, {size})"]
    if several > 1:
        # a vector that goes beyond one repetition is covered by the next
        copied = f"S.vload({name} + j, lanes={LANES})"
        lines += [
            f"for e in range({size}, {whole}, {size}):",
            f"    for j in range(0, {size}, {LANES}):",
            f"        S.vstore({copied}, {name} + e + j)",
        ]
    return lines


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
            lines += _everywhere(name, f"({p} + o{i})", t.dtype)
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
