"""The loops around element-wise steps: over tiles that DMA brings into LSRAM, or over rows where operands broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import lcm

from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Line, Pointer, Value, invariant
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.ir.dtypes import INT32
from compassc.layers.broadcast import common_shape
from compassc.layers.byte_functions import runs
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import compute
from compassc.layers.layer_kernel import Lanes, LayerKernel, tail
from compassc.layers.machine import Share
from compassc.layers.streams import Stream, Streams, Transfer, Turn, bytes_of
from compassc.layers.vectors import LANE_KINDS, LANES, narrow, pointee, shared_part


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
    """What a pass reads: its lanes, the tensor (or an array of the kernel), and its address."""

    lanes: Lanes
    tensor: Tensor
    pointer: Pointer


class Result(NamedTuple):
    """What a pass stores: the tensor, its address, and the lanes."""

    tensor: Tensor
    pointer: Pointer
    stored: Expression


def elementwise_kernel(layers: Sequence[Layer]) -> Kernel:
    """One kernel for a chain of element-wise layers; each takes the output of the one before among its operands."""
    k, out = LayerKernel(spreads=True), layers[-1].output
    with k.active():
        operands = [Operand(Lanes(k, f"x{i}", t.dtype), t, k.tensor(t)) for i, t in enumerate(_operands(layers))]
        for o in operands:
            if common_shape(o.tensor.shape, out.shape) != out.shape:
                raise LayerError(
                    f"'{o.tensor.name}' of shape {list(o.tensor.shape)} does not broadcast to {list(out.shape)}"
                )
        values = {o.tensor.name: _value(o.lanes, o.tensor) for o in operands}
        _as_loaded(k, out, operands)
        with k.apart() as steps:
            for run in runs(layers):
                if any(t.shape != out.shape for layer in run for t in layer.outputs):
                    raise LayerError(f"its outputs are {[list(t.shape) for t in run[-1].outputs]}, expected one shape")
                compute(k, run, values)
        operands += [
            Operand(lanes, Tensor(str(lanes.value), a.shape, a.dtype.name), k.pointer(a.reshape(-1)))
            for lanes, a in k.spread
        ]
        results = [Result(t, k.tensor(t), _stored(k, values[t.name], t)) for t in layers[-1].outputs]
        nest = Nest(k, space_of(out.shape, [o.tensor.shape for o in operands]), operands, results, steps)
        if not (period_of(nest.space) and _tiles(nest)):
            _rows(nest)
        return k.kernel()


def _stored(k: LayerKernel, value: Value, out: Tensor) -> Expression:
    """The lanes as the output stores them."""
    if out.dtype == value.kind == "uint32":
        return value
    known = k.stored_forms.get((value.name, out.dtype))
    lanes: Expression = narrow(value, out.dtype) if known is None else known
    return lanes


def _as_loaded(k: LayerKernel, out: Tensor, operands: list[Operand]) -> None:
    """Tells the stored lanes of operands that are loaded as vectors."""
    space = space_of(out.shape, [o.tensor.shape for o in operands])
    for o, strides in zip(operands, space.strides, strict=True):
        if strides[-1] and LANE_KINDS[o.tensor.dtype] != o.tensor.dtype != "bool":
            k.stored_forms[o.lanes.value.name, o.tensor.dtype] = o.lanes.stored


def _operands(layers: Sequence[Layer]) -> list[Tensor]:
    """The operands from outside the chain, each tensor once."""
    made = {t.name for layer in layers for t in layer.outputs}
    found: dict[str, Tensor] = {}
    for layer in layers:
        for t in layer.inputs:
            if t.name not in made:
                found.setdefault(t.name, t)
    return list(found.values())


def _value(lanes: Lanes, tensor: Tensor) -> Value:
    return lanes.value.within(tensor.low, tensor.high) if tensor.is_integer else lanes.value


PERIOD = 128
"""Elements that operands that repeat along the others are repeated to."""
LONGEST_PERIOD = 1024
"""Elements that such an operand may come to for whole vectors."""
REPEATED = Share(2)
"""LSRAM for such operands."""


class Nest(NamedTuple):
    """What the loops around steps are made of; the steps stand apart until a loop takes them."""

    k: LayerKernel
    space: IterationSpace
    operands: list[Operand]
    results: list[Result]
    steps: list[Line]


def period_of(space: IterationSpace) -> int:
    """Elements after which all operands that are not as long as the output begin again: 1 where these are single elements,
    0 where they are not only repeated."""
    if all(s in ((1,), (0,)) for s in space.strides):
        return 1
    if len(space.dims) != 2 or any(s not in ((space.dims[1], 1), (0, 1), (0, 0)) for s in space.strides):
        return 0
    return space.dims[1]


def _tiles(nest: Nest) -> bool:
    """Contiguous shares of all elements, tile by tile through LSRAM: the next tile comes while one is computed with, and
    the last one goes. Operands that repeat along the last axis stay there. False where they are too large."""
    k, space, operands, results, _ = nest
    period = period_of(space)
    full = [o for o, s in zip(operands, space.strides, strict=True) if s in ((1,), (period, 1))]
    again = [o for o, s in zip(operands, space.strides, strict=True) if s == (0, 1)]
    each = sum(bytes_of(o.tensor.dtype) for o in again)
    several = _repetitions(period, each) if again else 1
    taken = each * (period * several + LANES)
    if taken > REPEATED.size:
        return False
    step, count = period * several, space.dims[0] * (period if len(space.dims) > 1 else 1)
    paired = bool(again) and step % LANES == 0 and step <= PAIRED
    read, written = ([Stream(x.pointer, x.tensor.dtype) for x in side] for side in (full, results))
    streams = Streams(read, written, taken, step if paired else 0, k.table_bytes)
    tile = streams.tile(count, 2 * step if paired and count >= COLUMN * step else step)
    if not tile:
        return False
    held: list[tuple[Operand, Pointer]] = []
    with_first: list[Transfer] = []
    for o in operands:
        if o in again and several == 1 and full:
            held.append((o, _held(k, o, period)))
            with_first.append(Transfer(held[-1][1], o.pointer, k.number(period)))
        elif o in again:
            held.append((o, _held(k, o, period * several, _Repeated(period, several))))
        elif o not in full:
            o.lanes.fill(k, o.pointer)
    width = k.number(step) if period > 1 else None
    total = k.number(count)
    part = k.held("part", shared_part(total, LANES if width is None else width))
    first = k.held("first", S.get_local_id() * part)
    last = k.held("last", S.min(first + part, total))
    if width is not None and paired and tile >= COLUMN * step:
        body = partial(_by_columns, nest, full, held, width)
    else:
        body = partial(_by_rows, nest, full, held, width)
    streams.loop(k, (first, last), k.number(tile), body, with_first)
    return True


COLUMN = 4
"""Vectors of a tile that an operand that repeats should be of use for to be loaded once for all of them."""
PAIRED = 512
"""Elements of such an operand up to which two of these vectors are taken in a pass, of which one may lie behind the tile."""


def _tail(k: LayerKernel, left: Expression) -> None:
    k.define(k.lanes_mask, tail(left))


def _pass(nest: Nest, full: Sequence[Operand], turn: Turn, place: Expression) -> None:
    """What is done with a vector of a tile."""
    k = nest.k
    # lanes behind the last element do no harm where nothing is looked up by them
    mask = (k.lanes_mask,) if k.masked else ()
    for o, tile in zip(full, turn.here, strict=True):
        o.lanes.load(k, tile + place, *mask)
    k.splice(nest.steps)
    for r, tile in zip(nest.results, turn.there, strict=True):
        S.vstore(r.stored, tile + place, *mask)


def _by_rows(
    nest: Nest, full: Sequence[Operand], held: Sequence[tuple[Operand, Pointer]], width: Value | None, turn: Turn
) -> None:
    """The loops over the elements of a tile in their order; operands that are `held` repeat after `width` elements."""
    k, now = nest.k, turn.now
    if width is None:
        with k.for_range(0, now, LANES, "place") as place:
            if k.masked:
                _tail(k, now - place)
            _pass(nest, full, turn, place)
        return
    with k.for_range(0, now, width, "r") as r:
        left = S.min(width, now - r)
        with k.for_range(0, left, LANES, "i") as i:
            at = k.held("place", r + i)
            if k.masked:
                _tail(k, left - i)
            for o, array in held:
                o.lanes.load(k, array + i)
            _pass(nest, full, turn, at)


def _by_columns(
    nest: Nest, full: Sequence[Operand], held: Sequence[tuple[Operand, Pointer]], width: Value, turn: Turn
) -> None:
    """The same with a vector of the operands that repeat, and what follows from it alone, for all vectors it meets, which
    are taken in pairs."""
    k, now = nest.k, turn.now
    place = k.variable("place", INT32)
    with k.for_range(0, width, LANES, "i") as i:
        with k.apart() as lines:
            for o, array in held:
                o.lanes.load(k, array + i)
            _pass(nest, full, turn, place)
        shared, inner = invariant(lines, (place, k.lanes_mask))
        k.splice(shared)
        with k.for_range(i, now, width * 2, "pair") as pair, k.for_range(0, 2, name="u", kind="unroll") as u:
            k.define(place, pair + u * width)
            if k.masked:
                _tail(k, now - place)
            k.splice(inner)


def _repetitions(period: int, each: int) -> int:
    """How often operands of `period` elements, of `each` bytes together, are repeated: to whole vectors, if they can be."""
    whole = lcm(period, LANES)
    if whole > LONGEST_PERIOD or each * (whole + LANES) > REPEATED.size:
        return 1
    most = min(PERIOD, REPEATED.size // each - LANES)
    return max(1, most // whole) * whole // period


class _Repeated(NamedTuple):
    """An operand of `period` elements, so many times."""

    period: int
    several: int


def _held(k: LayerKernel, operand: Operand, size: int, filled: _Repeated | None = None) -> Pointer:
    """An array in LSRAM for an operand that repeats, filled or not; what lies behind it is 0."""
    dtype = pointee(operand.tensor.dtype)
    array = k.alloc(size + LANES, dtype, f"again_{operand.lanes.value}")
    if filled is not None:
        _repeat(k, array, operand.pointer, filled)
    S.vstore(S.vbcast(S.cast(0, dtype), lanes=LANES), array + k.number(size))
    return array


def _repeat(k: LayerKernel, array: Pointer, source: Pointer, r: _Repeated) -> None:
    """Fills an array with an operand, several times."""
    size, whole = k.number(r.period), k.number(r.period * r.several)
    S.dma_copy(array, source, size)
    if r.several > 1:
        # a vector that goes beyond one repetition is covered by the next
        with k.for_range(size, whole, size, "e") as e, k.for_range(0, size, LANES, "j") as j:
            S.vstore(S.vload(array + j, lanes=LANES), array + e + j)


def _rows(nest: Nest) -> None:
    """The innermost dimension is a row; a TEC takes every fourth. Operands lie in device memory."""
    k, space, operands, results, steps = nest
    *outer, cols = space.dims
    rows = 1
    for d in outer:
        rows *= d
    sizes = [k.number(d) for d in outer]
    width = k.number(cols)
    with k.for_range(S.get_local_id(), k.number(rows), S.get_local_size(), "r") as r:
        at = _indices(k, r, sizes)
        loads: list[tuple[Operand, Address]] = []
        for i, (o, strides) in enumerate(zip(operands, space.strides, strict=True)):
            terms = [at[d] * k.number(s) for d, s in enumerate(strides[:-1]) if s]
            offset = k.held(f"o{i}", sum(terms[1:], terms[0]) if terms else S.i32(0))
            if strides[-1] == 1:
                loads.append((o, o.pointer + offset))
            else:
                o.lanes.fill(k, o.pointer + offset)
        with k.for_range(0, width, LANES, "i") as i:
            k.define(k.lanes_mask, tail(width - i))
            for o, place in loads:
                o.lanes.load(k, place + i, k.lanes_mask)
            k.splice(steps)
            for result in results:
                S.vstore(result.stored, result.pointer + r * width + i, k.lanes_mask)


def _indices(k: LayerKernel, r: Value, sizes: Sequence[Value]) -> list[Value]:
    """The indices of row `r`, the outermost first."""
    if not sizes:
        return []
    rest = k.held("rest", r + 0)
    found: dict[int, Value] = {}
    for d in reversed(range(len(sizes))):
        found[d] = k.held(f"at{d}", rest % sizes[d] if d else rest)
        if d:
            k.assign(rest, rest / sizes[d])
    return [found[d] for d in range(len(sizes))]
