"""Pooling of one to three dimensions: the largest or the mean of windows, of whole pictures, of even shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.exprs import Expr as Element
from compassc.operators.arrays import largest_of, mean_of_sum
from compassc.operators.calls import CallOperator, References, X
from compassc.operators.declare import largest, least, mean_of, number, sample, summed
from compassc.operators.expressions import define
from compassc.relay import layouts
from compassc.relay.attributes import RECORDS, Attrs
from compassc.relay.builders import BUILDERS, build
from compassc.relay.ops.convolution import SPACE, above_0, both_ends, exact, several
from compassc.relay.ops.declare import ANCHOR, Evaluate, Express, Meanings, Prepare, Rule, declare, record
from compassc.relay.ops.relations import of, require, shaped
from compassc.relay.ops.shapes import extents
from compassc.relay.types import Dim, TensorType, Type
from compassc.te.tensor import Tensor


def _ordered(a: Attrs, x: TensorType, rank: int) -> tuple[str, list[Dim]]:
    plain = "NC" + SPACE[rank]
    require(layouts.convertible(a.layout, plain), lambda: f"pool{rank}d takes layouts that are convertible to {plain}, not {a.layout}")  # fmt: skip
    require(len(x.shape) == len(layouts.layout(a.layout)), lambda: f"the data {x} has no layout {a.layout}")
    return plain, layouts.converted(x.shape, a.layout, plain)


def count(size: int, before: int, after: int, window: int, stride: int, dilation: int, ceil: bool) -> int:
    """How many windows an axis has."""
    return (size + before + after - (window - 1) * dilation - 1 + (stride - 1 if ceil else 0)) // stride + 1


D = TypeVar("D", int, Dim)
Counts = tuple[int, ...]


def _pool_options(a: Attrs, rank: int) -> tuple[Counts, Counts, Counts, tuple[Counts, Counts]]:
    pads = both_ends(a.padding, rank)
    window, strides, dilation = (above_0(n, a[n], rank) for n in ("pool_size", "strides", "dilation"))
    return window, strides, dilation, (pads[:rank], pads[rank:])


def pool_rule(rank: int) -> Rule:
    """The type rule of pooling."""

    def rule(a: Attrs, x: TensorType) -> Type:
        plain, (n, c, *space) = _ordered(a, x, rank)
        made: list[Dim] = [n, c]
        for size, k, s, l, b, e in zip(space, *_pool_options(a, rank)[:3], *_pool_options(a, rank)[3]):
            extent = of(lambda m: count(m, b, e, k, s, l, a.ceil_mode), size)  # noqa: B023
            require(not isinstance(extent, int) or extent > 0, lambda: f"a window of {k} is larger than {size} of {x}")  # noqa: B023
            made.append(extent)
        return shaped(x, layouts.converted(made, plain, a.out_layout or a.layout))

    return rule


def _best(part: Array, kind: str, number: int, of: np.dtype[np.generic]) -> Array:
    """The largest or the mean of all but the first two axes; `number`: over how many elements, `of`: of which type."""
    axes = tuple(range(2, part.ndim))
    return largest_of(part, axes) if kind == "max" else mean_of_sum(part.sum(axes), number, of)


def _windows(many: int, size: int, low: int, high: int, k: int, s: int, l: int) -> list[tuple[Array, int]]:
    """For each window along an axis the places in the array, and how many with those of the padding."""
    made = []
    for i in range(many):
        places = i * s - low + l * np.arange(k)
        made.append((places[(places >= 0) & (places < size)], int((places < size + high).sum())))
    return made


def pooled(x: Array, kind: str, a: Attrs, rank: int) -> Array:
    """Pooling of an array NC...."""
    window, strides, dilation, (before, after) = _pool_options(a, rank)
    spans = list(zip(x.shape[2:], before, after, window, strides, dilation))
    wide = exact(x)
    made = np.zeros(
        (*x.shape[:2], *(count(n, low, high, k, s, l, a.ceil_mode) for n, low, high, k, s, l in spans)), wide.dtype
    )
    least = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    windows = [_windows(n, *span) for n, span in zip(made.shape[2:], spans)]
    padded = getattr(a, "count_include_pad", False)
    for at in np.ndindex(made.shape[2:]):
        seen = [windows[d][i] for d, i in enumerate(at)]
        inside = [real for real, _ in seen]
        index = (slice(None), slice(None), *at)
        if all(map(len, inside)):
            number = math.prod(with_pad if padded else len(real) for real, with_pad in seen)
            made[index] = _best(wide[(slice(None), slice(None), *np.ix_(*inside))], kind, max(number, 1), x.dtype)
        elif kind == "max":
            made[index] = least
    return made


def _in_layout(call: CallOperator[X], a: Attrs, x: X, rank: int, function: Callable[[X], X]) -> X:
    plain = "NC" + SPACE[rank]
    made = function(layouts.transform(call, x, extents(x), a.layout, plain))
    return layouts.transform(call, made, extents(made), plain, a.out_layout or a.layout)


def _windows_value(kind: str, a: Attrs, x: Tensor) -> Tensor:
    """Pooling of a tensor NC... of any number of dimensions, by tests of what lies inside."""
    n, c, *space = extents(x)
    window, strides, dilation, (before, after) = _pool_options(a, len(space))
    spans = list(zip(space, before, after, window, strides, dilation))
    made = [count(m, low, high, k, s, l, a.ceil_mode) for m, low, high, k, s, l in spans]
    over = [te.reduce_axis((0, k), name=f"r{d}") for d, k in enumerate(window)]
    kind_of_sum = summed(x.dtype)
    include = bool(getattr(a, "count_include_pad", False))

    def places(i: Sequence[Element]) -> list[Element]:
        return [v * s - low + r * l for v, r, (_, low, _, _, s, l) in zip(i, over, spans)]

    def element(b: Element, o: Element, *i: Element) -> Element:
        at = places(i)
        inside = te.all(*(t for p, m in zip(at, space) for t in (p >= 0, p < m)))
        own = x[(b, o, *at)]
        found: Element
        if kind == "max":
            found = largest(te.if_then_else(inside, own, least(x.dtype)), axis=over)
        else:
            found = te.sum(te.if_then_else(inside, te.cast(own, kind_of_sum), number(0, kind_of_sum)), axis=over)
        return found

    total: Tensor = te.compute([n, c, *made], element, name=f"T_pool_{kind}", tag=f"pool_{kind}")
    if kind == "max":
        return total

    def counted(b: Element, o: Element, *i: Element) -> Element:
        ends = zip(places(i), spans)
        tests = [t for p, (m, _, high, *_) in ends for t in ([p < m + high] if include else [p >= 0, p < m])]
        made: Element = te.sum(te.Select(te.all(*tests), te.const(1), te.const(0)), axis=over)
        return made

    number_of = te.compute([n, c, *made], counted, name="T_pool_count", tag="comm_reduce")
    found: Tensor = te.compute(
        [n, c, *made],
        lambda *i: mean_of(total[i], te.max(number_of[i], 1), x.dtype),
        name="T_pool_mean",
        tag="elemwise",
    )
    return found


def _pool_value(kind: str, rank: int) -> Express:
    def express(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
        window, strides, dilation, (before, after) = _pool_options(a, rank)
        include = bool(getattr(a, "count_include_pad", False))
        if rank == 3 or include and a.ceil_mode:
            return _in_layout(define, a, x, rank, lambda y: _windows_value(kind, a, y))
        ones, zeros = ((1,), (0,)) if rank == 1 else ((), ())
        given = ([*ones, *window], [*ones, *strides], [*ones, *dilation], [*zeros, *before, *zeros, *after])
        name = f"{kind}_pool2d"
        if rank == 2 and a.layout == "NHWC" and (a.out_layout or a.layout) == a.layout:
            return define(name, x, *given, kind, a.ceil_mode, "NHWC", include)

        def one(y: Tensor) -> Tensor:
            n, c, *space = extents(y)
            flat = define("reshape", y, [n, c, 1, *space]) if rank == 1 else y
            made = define(name, flat, *given, kind, a.ceil_mode, "NCHW", include)
            return define("reshape", made, [*extents(made)[:2], *extents(made)[3:]]) if rank == 1 else made

        return _in_layout(define, a, x, rank, one)

    return express


def _pool_reference(kind: str, rank: int) -> Evaluate:
    return lambda a, t, x: _in_layout(References(), a, x, rank, lambda y: pooled(y, kind, a, rank))


def _prepare(rank: int) -> Prepare:
    def prepare(values: dict[str, object]) -> None:
        for name in ("pool_size", "strides", "dilation"):
            values[name] = several(values[name], rank)
        values["padding"] = both_ends(values["padding"], rank)

    return prepare


_SIZES: dict[int, tuple[int, ...]] = {1: (2, 3, 9), 2: (1, 3, 7, 8), 3: (1, 2, 4, 5, 4)}
for _rank in SPACE:
    _ones, _zeros, _plain = (1,) * _rank, (0,) * _rank, "NC" + SPACE[_rank]
    for _kind in ("max", "avg"):
        _more = {"count_include_pad": False} if _kind == "avg" else {}
        _last = "".join(f", {k}={v}" for k, v in _more.items())
        _fields = {"pool_size": ..., "strides": _ones, "dilation": _ones, "padding": _zeros, "layout": _plain, "out_layout": "", "ceil_mode": False}  # fmt: skip
        declare(
            f"nn.{_kind}_pool{_rank}d",
            f'data, pool_size={_ones}, strides={_ones}, dilation={_ones}, padding={_zeros}, layout="{_plain}", out_layout="", ceil_mode=False{_last}',
            pool_rule(_rank), ANCHOR, sample(_SIZES[_rank], pool_size=(3,) * _rank, strides=(2,) * _rank, padding=(1,) * _rank),
            sample(_SIZES[_rank], pool_size=(2,) * _rank, strides=(2,) * _rank, ceil_mode=True),
            *([sample(_SIZES[_rank], pool_size=(3,) * _rank, padding=(1,) * _rank, count_include_pad=True),
               sample(_SIZES[_rank], pool_size=(3,) * _rank, strides=(2,) * _rank, count_include_pad=True, ceil_mode=True)] if _more else []),
            record=record(f"{_kind.title()}Pool{_rank}DAttrs", **_fields, **_more), prepare=_prepare(_rank),
            reference=_pool_reference(_kind, _rank), compute=_pool_value(_kind, _rank), level=2,
            types=("float32", "int8"),
        )  # fmt: skip


# ------------------------------------------------------------------------------------------------ whole pictures, and shares


def _adapted_rule(rank: int) -> Rule:
    def rule(a: Attrs, x: TensorType) -> Type:
        plain, (n, c, *space) = _ordered(a, x, rank)
        sizes = _share_sizes(a, space, rank)
        return shaped(x, layouts.converted([n, c, *sizes], plain, a.out_layout or a.layout))

    return rule


def _share_sizes(a: Attrs, space: Sequence[D], rank: int) -> list[D | int]:
    given = several(a.output_size, rank) if a.output_size not in (None, ()) else (None,) * rank
    require(len(given) == rank, lambda: f"output_size {a.output_size} does not go with {rank} dimensions")
    return [n if g is None else g for g, n in zip(given, space)]


def adapted(x: Array, kind: str, sizes: Sequence[int]) -> Array:
    """Windows of an array NC... that share each axis out evenly."""
    wide = exact(x)
    made = np.zeros((*x.shape[:2], *sizes), wide.dtype)
    for at in np.ndindex(*sizes):
        cut = [slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(at, x.shape[2:], sizes)]
        part = wide[(slice(None), slice(None), *cut)]
        made[(slice(None), slice(None), *at)] = _best(part, kind, int(np.prod(part.shape[2:])), x.dtype)
    return made


def _adapted_value(kind: str, rank: int) -> Express:
    def express(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
        def one(y: Tensor) -> Tensor:
            n, c, *space = extents(y)
            flat = define("reshape", y, [n, c, 1, *space]) if rank == 1 else y
            made = define("adaptive_pool", flat, [*[1] * (rank == 1), *_share_sizes(a, space, rank)], kind)
            return define("reshape", made, [*extents(made)[:2], *extents(made)[3:]]) if rank == 1 else made

        return _in_layout(define, a, x, rank, one)

    return express


def _adapted_reference(kind: str, rank: int) -> Evaluate:
    return lambda a, t, x: _in_layout(
        References(), a, x, rank, lambda y: adapted(y, kind, _share_sizes(a, y.shape[2:], rank))
    )


def _size_list(rank: int) -> Prepare:
    def prepare(values: dict[str, object]) -> None:
        size = values["output_size"]
        values["output_size"] = () if size is None else several(size, rank)

    return prepare


for _rank in SPACE:
    _plain = "NC" + SPACE[_rank]
    _adaptive = record(f"AdaptivePool{_rank}DAttrs", output_size=(), layout=_plain, out_layout="")
    for _kind in ("max", "avg"):
        declare(
            f"nn.adaptive_{_kind}_pool{_rank}d", f'data, output_size=None, layout="{_plain}", out_layout=""', _adapted_rule(_rank),
            ANCHOR, sample(_SIZES[_rank], output_size=(3,) * _rank), record=_adaptive, prepare=_size_list(_rank),
            reference=_adapted_reference(_kind, _rank), compute=_adapted_value(_kind, _rank) if _rank < 3 else None, level=10,
        )  # fmt: skip
        if _rank != 2:
            BUILDERS[f"nn.global_{_kind}_pool{_rank}d"] = (
                lambda data, layout=_plain, out_layout="", name=f"nn.adaptive_{_kind}_pool{_rank}d", rank=_rank: build(
                    name, data, [1] * rank, layout, out_layout
                )
            )


def _global_rule(a: Attrs, x: TensorType) -> Type:
    plain, (n, c, *_) = _ordered(a, x, 2)
    return shaped(x, layouts.converted([n, c, 1, 1], plain, a.out_layout or a.layout))


def _global(kind: str) -> Meanings:
    def reference(a: Attrs, t: TensorType, x: Array) -> Array:
        return _in_layout(References(), a, x, 2, lambda y: adapted(y, kind, (1, 1)))

    def compute(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
        if a.layout in ("NCHW", "NHWC") and (a.out_layout or a.layout) == a.layout:
            return define("global_pool", x, kind, a.layout)
        return _in_layout(define, a, x, 2, lambda y: define("global_pool", y, kind))

    return {"reference": reference, "compute": compute}


_global_attrs = record("GlobalPool2DAttrs", layout="NCHW", out_layout="")
for _kind in ("max", "avg"):
    declare(f"nn.global_{_kind}_pool2d", 'data, layout="NCHW", out_layout=""', _global_rule, ANCHOR, sample((2, 3, 4, 5)),
            sample((2, 4, 5, 3), layout="NHWC"), record=_global_attrs, level=2, types=("float32", "int8"), **_global(_kind))  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- gradients


def _gradient(kind: str) -> Evaluate:
    def evaluate(a: Attrs, t: TensorType, grad: Array, x: Array) -> Array:
        call = References()
        g, y = (layouts.transform(call, exact(v), v.shape, a.layout, "NCHW") for v in (grad, x))
        window, strides, dilation, (before, after) = _pool_options(a, 2)
        made = np.zeros_like(y)
        for at in np.ndindex(*g.shape):
            inside, number = [], 1
            for i, size, low, high, k, s, l in zip(at[2:], y.shape[2:], before, after, window, strides, dilation):
                places = i * s - low + l * np.arange(k)
                inside.append(places[(places >= 0) & (places < size)])
                number *= len(places[places < size + high] if getattr(a, "count_include_pad", False) else inside[-1])
            cut = (*at[:2], *np.ix_(*inside))
            if kind == "avg":
                made[cut] += g[at] / max(number, 1)
            else:
                part = y[cut]
                n, m = np.unravel_index(part.argmax(), part.shape)
                made[(*at[:2], inside[0][n], inside[1][m])] += g[at]
        return layouts.transform(call, made, made.shape, "NCHW", a.layout)

    return evaluate


for _kind, _number in (("max", 0), ("avg", 1)):
    _attrs = RECORDS[f"relay.attrs.{_kind.title()}Pool2DAttrs"]
    declare(
        f"nn.{_kind}_pool2d_grad",
        'out_grad, data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout="NCHW", out_layout="", ceil_mode=False'
        + ", count_include_pad=False" * _number,
        lambda a, g, x: x, ANCHOR, sample((1, 2, 3, 3), (1, 2, 6, 6), pool_size=(2, 2), strides=(2, 2)), record=_attrs, level=2,
        prepare=lambda v: v.update(pool_size=several(v["pool_size"], 2), strides=several(v["strides"], 2), padding=both_ends(v["padding"], 2)),
        reference=_gradient(_kind),
    )  # fmt: skip
