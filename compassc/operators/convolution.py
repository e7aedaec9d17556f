"""Convolutions: one and two dimensions, channels first or last, groups, dilation, depthwise, transposed.

What a convolution computes is said once; a `Layout` says where the channels of data and of kernels lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as tuples
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.operators.declare import check_known, number, numbers, operator, pair, positives, sample, sizes
from compassc.operators.elementwise import cast
from compassc.operators.linear import product, result, sum_type, wide_product
from compassc.operators.movement import pad
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from compassc.ir.expr_op import ExprOp
    from compassc.ir.exprs import Expr


def padding_of(padding: Any, kernel: Sequence[int], dilation: Sequence[int]) -> tuple[list[int], list[int]]:
    """Elements before and after each axis: of one number, one for each axis, one for each end, VALID, or SAME: as many as leave a
    plane's size at stride 1, where their number is odd one more before."""
    count = len(kernel)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [0] * count, [0] * count
        if padding.upper() != "SAME":
            raise ExpressionError(f"there is no padding '{padding}': numbers, VALID, SAME")
        whole = [(k - 1) * d for k, d in zip(kernel, dilation)]
        return [w - w // 2 for w in whole], [w // 2 for w in whole]
    given = list(padding) if isinstance(padding, (tuple, list)) else [padding]
    if len(given) == 1:
        given = given * count
    if len(given) == count:
        given = given * 2
    if len(given) != 2 * count:
        raise ExpressionError(f"padding {padding!r} does not go with {count} dimensions")
    return given[:count], given[count:]


_T = TypeVar("_T")


@dataclass(frozen=True)
class Layout:
    """Where channels lie: NC... by OI... (depthwise CM...), or N...C by ...IO (depthwise ...CM)."""

    last: bool

    def data(self, n: _T, channel: _T, space: Sequence[_T]) -> list[_T]:
        return [n, *space, channel] if self.last else [n, channel, *space]

    def parts(self, data: Sequence[_T]) -> tuple[_T, _T, list[_T]]:
        """What stands for the batch, the channel and the axes of space."""
        n, *rest = data
        return (n, rest[-1], list(rest[:-1])) if self.last else (n, rest[0], list(rest[1:]))

    def kernel(self, out: _T, own: _T, window: Sequence[_T]) -> list[_T]:
        return [*window, own, out] if self.last else [out, own, *window]

    def kernel_parts(self, kernel: Sequence[_T]) -> tuple[_T, _T, list[_T]]:
        """What stands for outputs, channels of a group and the axes of the window."""
        if self.last:
            return kernel[-1], kernel[-2], list(kernel[:-2])
        return kernel[0], kernel[1], list(kernel[2:])

    def pair_first(self, pair: Sequence[int | Expr], window: Sequence[te.IterVar]) -> list[int | ExprOp]:
        """The channel and its window of a depthwise kernel, in this order in both layouts."""
        return [*window, *pair] if self.last else [*pair, *window]

    def reference(self, of_first: Callable[..., Array], depthwise: bool = False) -> Callable[..., Array]:
        """A reference of NC... and OI... (CM...) for arrays in this layout."""
        if not self.last:
            return of_first

        def apply(x: Array, w: Array, *options: object, **named: object) -> Array:
            space = range(1, x.ndim - 1)
            channels = (w.ndim - 2, w.ndim - 1) if depthwise else (w.ndim - 1, w.ndim - 2)
            made = of_first(
                x.transpose(0, x.ndim - 1, *space), w.transpose(*channels, *range(w.ndim - 2)), *options, **named
            )
            return made.transpose(0, *range(2, x.ndim), 1)

        return apply


FIRST, LAST = Layout(False), Layout(True)


def convolved(x: Array, w: Any, strides: object, padding: object, dilation: object, groups: int = 1) -> Array:
    """The reference, of NC... and OI...."""
    x, w = wide_product(x), wide_product(w)
    rank = x.ndim - 2
    strides, dilation = pair(strides, rank), pair(dilation, rank)
    before, after = padding_of(padding, w.shape[2:], dilation)
    x = np.pad(x, [(0, 0), (0, 0), *zip(before, after)])
    out = [(d - (k - 1) * l - 1) // s + 1 for d, k, l, s in zip(x.shape[2:], w.shape[2:], dilation, strides)]
    made = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    own = w.shape[0] // groups
    for o in range(w.shape[0]):
        first = (o // own) * w.shape[1]
        for at in tuples(*map(range, w.shape[2:])):
            cut = tuple(slice(a * l, a * l + (n - 1) * s + 1, s) for a, l, n, s in zip(at, dilation, out, strides))
            part = x[(slice(None), slice(first, first + w.shape[1]), *cut)]
            made[:, o] += np.tensordot(part, w[(o, slice(None), *at)], (1, 0))
    return made


@dataclass(frozen=True)
class _Windows:
    """The windows of a convolution: padded data, the extents of the result, and where an element of a window lies."""

    padded: Tensor
    made: list[int]
    over: list[te.IterVar]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]

    def places(self, at: Sequence[Expr]) -> list[Expr]:
        return [p * s + r * l for p, s, r, l in zip(at, self.strides, self.over, self.dilation)]


def _windows(
    data: Tensor, layout: Layout, window: list[int], strides: object, padding: object, dilation: object
) -> _Windows:
    _, _, space = layout.parts(sizes(data))
    rank = len(space)
    if len(window) != rank:
        raise ExpressionError(f"a kernel with a window of {len(window)} dimensions does not go with {rank} of data")
    strides = positives(strides, "strides of convolutions", rank)
    dilation = positives(dilation, "dilations of convolutions", rank)
    before, after = padding_of(padding, window, dilation)
    padded = data
    if any((*before, *after)):
        padded = pad(data, layout.data(0, 0, before), layout.data(0, 0, after))
    made = [
        (d + b + a - (k - 1) * l - 1) // s + 1
        for d, b, a, k, l, s in zip(space, before, after, window, dilation, strides)
    ]
    over = [te.reduce_axis((0, k), name=f"r{'yxz'[i] if rank > 1 else 'x'}") for i, k in enumerate(window)]
    return _Windows(padded, made, over, strides, dilation)


def convolution(
    data: Tensor,
    kernel: Tensor,
    strides: object,
    padding: object,
    dilation: object,
    groups: int,
    out_dtype: str | None,
    tag: str,
    layout: Layout,
) -> Tensor:
    """A convolution of any number of dimensions."""
    n, channels, space = layout.parts(sizes(data))
    check_known((channels, *space), data, tag)
    out, own, window = layout.kernel_parts(numbers(kernel, tag))
    if channels != own * groups or out % groups:
        raise ExpressionError(
            f"topi.{tag}: {channels} channels in {groups} groups do not go with a kernel of {own}, for {out} outputs"
        )
    on = _windows(data, layout, window, strides, padding, dilation)
    rc = te.reduce_axis((0, own), name="rc")
    kind, each = sum_type(data.dtype, out_dtype), out // groups

    def element(b: Expr, *i: Expr) -> object:
        _, o, at = layout.parts((b, *i))
        channel = rc if groups == 1 else (o // each) * own + rc
        value = on.padded[tuple(layout.data(b, channel, on.places(at)))]
        weight = kernel[tuple(layout.kernel(o, rc, on.over))]
        return te.sum(product(value, weight, kind), axis=[*on.over, rc] if layout.last else [rc, *on.over])

    rank = len(window)
    names = [*("yxz"[:rank] if rank > 1 else "x"), "o"] if layout.last else ["o", *(f"i{d}" for d in range(rank))]
    shape = layout.data(n, out, on.made)
    return result(te.compute(shape, element, name=f"T_{tag}", tag=tag, varargs_names=names), data.dtype, out_dtype)


def depthwise_convolution(
    data: Tensor, kernel: Tensor, strides: object, padding: object, dilation: object, out_dtype: str | None, tag: str, layout: Layout
) -> Tensor:  # fmt: skip
    """A convolution of each channel by its own windows."""
    n, channels, space = layout.parts(sizes(data))
    check_known((channels, *space), data, tag)
    shape = numbers(kernel, tag)
    own, times = shape[-2:] if layout.last else shape[:2]
    if channels != own:
        raise ExpressionError(f"topi.{tag}: {channels} channels do not go with {own} windows")
    on = _windows(data, layout, shape[:-2] if layout.last else shape[2:], strides, padding, dilation)
    kind = sum_type(data.dtype, out_dtype)

    def element(b: Expr, *i: Expr) -> object:
        _, c, at = layout.parts((b, *i))
        channel, window = (c, 0) if times == 1 else (c // times, c % times)
        value = on.padded[tuple(layout.data(b, channel, on.places(at)))]
        return te.sum(product(value, kernel[tuple(layout.pair_first((channel, window), on.over))], kind), axis=on.over)

    names = layout.data("b", "c", "yx")[1:]
    made = layout.data(n, channels * times, on.made)
    total = te.compute(made, element, name="T_depthwise", tag=tag, varargs_names=names)
    return result(total, data.dtype, out_dtype)


# ------------------------------------------------------------------------------------------------------------ operators


@operator(
    PatternKind.ANCHOR,
    FIRST.reference(convolved),
    sample((1, 3, 6, 7), (4, 3, 3, 3), 1, 1, 1),
    sample((2, 2, 7, 7), (3, 2, 3, 2), [2, 1], [1, 0, 0, 2], 1),
    sample((1, 2, 9, 8), (2, 2, 3, 3), 1, "SAME", 2),
)
def conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: object, padding: object, dilation: object = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution of NCHW by OIHW. Bytes give int32."""
    return convolution(Input, Filter, stride, padding, dilation, 1, out_dtype, "conv2d_nchw", FIRST)


@operator(
    PatternKind.ANCHOR,
    LAST.reference(convolved),
    sample((1, 6, 7, 3), (3, 3, 3, 4), 1, 1, 1),
    sample((2, 7, 7, 2), (3, 2, 2, 8), [2, 1], "SAME", 2),
)
def conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: object, padding: object, dilation: object = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution of NHWC by HWIO. Bytes give int32."""
    return convolution(Input, Filter, stride, padding, dilation, 1, out_dtype, "conv2d_nhwc", LAST)


@operator(PatternKind.ANCHOR, FIRST.reference(convolved), sample((1, 4, 5, 6), (6, 2, 3, 3), 1, 1, 1, 2))
def group_conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of NCHW in groups of channels by OIHW, I the channels of a group."""
    return convolution(Input, Filter, stride, padding, dilation, groups, out_dtype, "group_conv2d_nchw", FIRST)


@operator(PatternKind.ANCHOR, LAST.reference(convolved), sample((1, 5, 6, 4), (3, 3, 2, 6), 1, 1, 1, 2))
def group_conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of NHWC in groups of channels by HWIO, I the channels of a group."""
    return convolution(Input, Filter, stride, padding, dilation, groups, out_dtype, "group_conv2d_nhwc", LAST)


@operator(
    PatternKind.ANCHOR,
    FIRST.reference(convolved),
    sample((2, 3, 12), (4, 3, 3), 2, 1, 1),
    sample((1, 2, 10), (2, 2, 3), 1, 0, 3),
    sample((1, 4, 9), (6, 2, 3), 1, 1, 1, groups=2),
)
def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: object = 1, padding: object = "VALID", dilation: object = 1, out_dtype: str | None = None,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """A convolution of NCW by OIW, I the channels of a group."""
    return convolution(data, kernel, strides, padding, dilation, groups, out_dtype, "conv1d_ncw", FIRST)


@operator(
    PatternKind.ANCHOR,
    LAST.reference(convolved),
    sample((2, 12, 3), (3, 3, 8), 2, 1, 1),
    sample((1, 10, 2), (3, 2, 2), 1, 0, 3),
    sample((1, 9, 4), (3, 2, 6), 1, 1, 1, groups=2),
)
def conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: object = 1, padding: object = "VALID", dilation: object = 1, out_dtype: str | None = None,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """A convolution of NWC by WIO, I the channels of a group."""
    return convolution(data, kernel, strides, padding, dilation, groups, out_dtype, "conv1d_nwc", LAST)


def _depthwise(x: Array, w: Array, stride: object, padding: object, dilation: object = 1) -> Array:
    channels, times = w.shape[:2]
    return convolved(x, w.reshape(channels * times, 1, *w.shape[2:]), stride, padding, dilation, channels)


@operator(
    PatternKind.ANCHOR,
    FIRST.reference(_depthwise, True),
    sample((1, 4, 6, 9), (4, 1, 3, 3), 1, 1),
    sample((2, 3, 7, 7), (3, 2, 3, 3), 2, 0, 2),
)
def depthwise_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: object, padding: object, dilation: object = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution of each channel of NCHW by its own windows: CMHW, M outputs for each channel."""
    return depthwise_convolution(Input, Filter, stride, padding, dilation, out_dtype, "depthwise_conv2d_nchw", FIRST)


@operator(
    PatternKind.ANCHOR,
    LAST.reference(_depthwise, True),
    sample((1, 6, 9, 8), (3, 3, 8, 1), 1, 1),
    sample((2, 7, 7, 3), (3, 3, 3, 2), 2, 0, 2),
)
def depthwise_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: object, padding: object, dilation: object = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution of each channel of NHWC by its own windows: HWCM, M outputs for each channel."""
    return depthwise_convolution(Input, Filter, stride, padding, dilation, out_dtype, "depthwise_conv2d_nhwc", LAST)


def transposed(
    x: Array,
    w: Any,
    strides: object,
    padding: object,
    output_padding: object = 0,
    dilation: object = 1,
    groups: int = 1,
) -> Array:
    """The reference of transposed convolutions, of NC... and IO..., O the channels of a group."""
    x, w = wide_product(x), wide_product(w)
    window, own = w.shape[2:], w.shape[1]
    rank, each = len(window), x.shape[1] // groups
    strides, dilation, more = pair(strides, rank), pair(dilation, rank), pair(output_padding, rank)
    before, after = padding_of(padding, window, dilation)
    full = [(n - 1) * s + (k - 1) * l + 1 for n, s, k, l in zip(x.shape[2:], strides, window, dilation)]
    made = np.zeros((x.shape[0], own * groups, *(n + m for n, m in zip(full, more))), x.dtype)
    for g, at in tuples(range(groups), tuples(*map(range, window))):
        cut = [slice(p * l, p * l + (n - 1) * s + 1, s) for p, l, n, s in zip(at, dilation, x.shape[2:], strides)]
        part, inputs = slice(g * own, (g + 1) * own), slice(g * each, (g + 1) * each)
        spread = np.tensordot(w[(inputs, slice(None), *at)], x[:, inputs], (0, 1))
        made[(slice(None), part, *cut)] += spread.swapaxes(0, 1)
    kept = [slice(b, d - a) for b, a, d in zip(before, after, made.shape[2:])]
    return made[(slice(None), slice(None), *kept)]


@dataclass(frozen=True)
class _Spread:
    """An axis of a transposed convolution: every `stride`-th result, of one phase, is an ordinary sum over `taps` neighbours of
    data, which lie `apart`, by every `stride`-th weight of the window."""

    space: int
    stride: int
    dilation: int
    window: int
    before: int
    made: int

    @property
    def apart(self) -> int:
        return self.dilation if self.stride == 1 else 1

    @property
    def last(self) -> int:
        """How far the last weight of the window is from the first."""
        return (self.window - 1) * self.dilation

    @property
    def taps(self) -> int:
        return self.window if self.stride == 1 else self.last // self.stride + 1

    @property
    def results(self) -> int:
        """How many each phase has."""
        return -(-self.made // self.stride)

    @property
    def first(self) -> int:
        """How many elements there are before the data, for the last tap of the first result."""
        return max((self.taps - 1) * self.apart - self.before // self.stride, 0)

    @property
    def behind(self) -> int:
        """How many there are behind the data, for the first tap of the last result."""
        return max((self.stride - 1 + self.before) // self.stride + self.results - self.space, 0)

    def place(self, at: Expr, phase: Expr, tap: Expr) -> Expr:
        """Where a tap finds its element, behind those before the data."""
        ahead = self.before if self.stride == 1 else (phase + self.before) // self.stride
        return at + (ahead + self.first - tap * self.apart)

    def weight(self, phase: Expr, tap: Expr) -> tuple[list[Expr], Expr]:
        """The place of a tap's weight in the window, and the conditions under which there is one."""
        if self.stride == 1:
            return [], tap
        far = (phase + self.before) % self.stride + tap * self.stride
        there = [far <= self.last] if self.taps * self.stride > self.last + 1 else []
        return (there, far) if self.dilation == 1 else ([*there, far % self.dilation == 0], far // self.dilation)


def transposed_convolution(
    data: Tensor, kernel: Tensor, strides: object, padding: object, dilation: object, groups: int, out_dtype: str | None,
    output_padding: object, tag: str,
) -> Tensor:  # fmt: skip
    """A transposed convolution of NC... by IO..., O the channels of a group.

    Of each phase of results (their places modulo the strides) it is a convolution by some of the weights, turned round.
    """
    (n, channels, *space), (own, out, *window) = numbers(data, tag), numbers(kernel, tag)
    rank, each, given = len(window), channels // groups, data.dtype
    if channels != own or channels % groups or len(space) != rank:
        raise ExpressionError(f"topi.{tag}: {channels} channels in {groups} groups do not go with a kernel of {own}")
    strides, dilation = positives(strides, "strides of convolutions", rank), positives(dilation, "dilations", rank)
    more = pair(output_padding, rank)
    before, after = padding_of(padding, window, dilation)
    made = [
        (d - 1) * s + (k - 1) * l + 1 + m - b - a
        for d, s, k, l, m, b, a in zip(space, strides, window, dilation, more, before, after)
    ]
    axes = [_Spread(*of) for of in zip(space, strides, dilation, window, before, made)]
    kind, apart = sum_type(given, out_dtype), any(s > 1 for s in strides)
    read = kind if apart and kind.is_floating else given  # what is read for several phases is converted once
    values = data if given is read else cast(data, str(read))
    padded = pad(values, [0, 0, *(a.first for a in axes)], [0, 0, *(a.behind for a in axes)])

    def weight(o: Expr, *i: Expr) -> Expr:
        phases, c, taps = i[:rank], i[rank], i[rank + 1 :]
        channel, to = (c, o) if groups == 1 else ((o // out) * each + c, o % out)
        found = [a.weight(p, t) for a, p, t in zip(axes, phases, taps)]
        tests = [t for there, _ in found for t in there]
        value: Expr = te.cast(kernel[(channel, to, *(place for _, place in found))], read)
        return te.if_then_else(te.all(*tests), value, number(0, read)) if tests else value

    rc = te.reduce_axis((0, each), name="rc")
    over = [te.reduce_axis((0, a.taps), name=f"r{'yxz'[d] if rank > 1 else 'x'}") for d, a in enumerate(axes)]
    of, by = [out * groups, *strides, each, *(a.taps for a in axes)], weight
    if apart:
        weights = te.compute(of, weight, name="T_phases", tag="injective")
        by = lambda *i: weights[i]

    def element(b: Expr, o: Expr, *i: Expr) -> object:
        phases, at = (i[:rank], i[rank:]) if apart else ((te.const(0),) * rank, i)
        channel = rc if groups == 1 else (o // out) * each + rc
        taps = [r.as_expr() for r in over]
        value = padded[(b, channel, *(a.place(v, p, t) for a, v, p, t in zip(axes, at, phases, taps)))]
        return te.sum(product(value, by(o, *phases, rc.as_expr(), *taps), kind), axis=[rc, *over])

    names = [*("yxz"[:rank] if rank > 1 else "x")]
    shape, named = (made, names)
    if apart:
        shape, named = [*strides, *(a.results for a in axes)], [*(f"p{v}" for v in names), *names]
    total = te.compute([n, out * groups, *shape], element, name="T_conv_transpose", tag=tag, varargs_names=named)
    return result(_in_turn(total, made, strides, tag) if apart else total, given, out_dtype)


def _in_turn(sums: Tensor, made: Sequence[int], strides: Sequence[int], tag: str) -> Tensor:
    """Results of all phases, where they lie."""

    def element(b: Expr, o: Expr, *i: Expr) -> Expr:
        found: Expr = sums[(b, o, *(v % s for v, s in zip(i, strides)), *(v // s for v, s in zip(i, strides)))]
        return found

    found: Tensor = te.compute([*sizes(sums)[:2], *made], element, name="T_in_turn", tag=tag)
    return found


@operator(
    PatternKind.ANCHOR,
    transposed,
    sample((1, 3, 4, 5), (3, 2, 3, 3), 2, 1, output_padding=1),
    sample((2, 2, 3, 3), (2, 3, 2, 3), [1, 2], 0),
    sample((1, 2, 4, 4), (2, 3, 3, 3), [2, 1], 3),
)
def conv2d_transpose_nchw(
    Input: Tensor,
    Filter: Tensor,
    strides: object,
    padding: object,
    out_dtype: str | None = None,
    output_padding: object = 0,
) -> Tensor:
    """What a convolution of NCHW by IOHW would be the gradient of: each element is spread over a window."""
    more = pair(output_padding)
    return transposed_convolution(Input, Filter, strides, padding, 1, 1, out_dtype, more, "conv2d_transpose_nchw")


def conv2d(
    data: Tensor, kernel: Tensor, strides: object = 1, padding: object = 0, dilation: object = 1, layout: str = "NCHW",
    out_dtype: str | None = None, groups: int = 1,
) -> Tensor:  # fmt: skip
    """A convolution by layout: NCHW by OIHW or NHWC by HWIO, both in groups, too."""
    found = {"NCHW": FIRST, "NHWC": LAST}.get(layout)
    if found is None:
        raise ExpressionError(f"topi.nn.conv2d has no layout '{layout}'", "NCHW, NHWC")
    return convolution(data, kernel, strides, padding, dilation, groups, out_dtype, f"conv2d_{layout.lower()}", found)


def conv1d(
    data: Tensor, kernel: Tensor, strides: object = 1, padding: object = "VALID", dilation: object = 1, data_layout: str = "NCW",
    out_dtype: str | None = None, groups: int = 1,
) -> Tensor:  # fmt: skip
    """A convolution of one dimension: NCW by OIW, or NWC by WIO, both in groups, too."""
    found = {"NCW": FIRST, "NWC": LAST}.get(data_layout)
    if found is None:
        raise ExpressionError(f"topi.nn.conv1d has no layout '{data_layout}'", "NCW, NWC")
    return convolution(
        data, kernel, strides, padding, dilation, groups, out_dtype, f"conv1d_{data_layout.lower()}", found
    )
