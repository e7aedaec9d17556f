"""Products and convolutions on memory that is packed for vectors of the host.

The right side of a product, or the data of a convolution, is copied so that COLUMNS elements which vectors take at once lie
together (the stage with the tag PACKED). Sums of products are over whole groups of columns (the tag PRODUCTS); what does not
belong to the result is left out when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compass_core.dataclass import dataclass
from compassc import te
from compassc.ir.dtypes import DataType
from compassc.ir.exprs import Expr
from compassc.operators.convolution import padding_of
from compassc.operators.declare import number, pair, sizes
from compassc.operators.implementations import HOSTS, implementation
from compassc.operators.linear import product, result, sum_type
from compassc.te.tensor import Tensor

COLUMNS, ROWS, LANES = 32, 8, 16
PACKED, PRODUCTS = "packed", "products"
TOGETHER = "columns_together"
"""The attribute of sums that says how many columns lie together, where these are not all."""
Element = Callable[..., Expr]


def up_to(extent: int, by: int) -> int:
    """The next multiple of a number."""
    return -(-extent // by) * by


def _tall(rows: int) -> int:
    """How many rows are computed: such that they can be taken several at a time."""
    return rows if rows < ROWS or any(rows % n == 0 for n in (8, 6, 7, 5)) else up_to(rows, ROWS)


def _known(*tensors: Tensor) -> bool:
    return all(isinstance(d, int) for t in tensors for d in sizes(t))


# ------------------------------------------------------------------------------------------------------------- convolutions


@dataclass(frozen=True)
class _Plane:
    """Data of convolutions as planes whose rows follow each other: output `y, x` is column `y * pitch + x`, and the elements
    that an element of the window meets are as far from each other. Strides split each plane into one for each phase."""

    space: Sequence[int]
    window: Sequence[int]
    strides: Sequence[int]
    dilation: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]

    @property
    def made(self) -> list[int]:
        """The extents of the result."""
        return [
            (d + b + a - (k - 1) * l - 1) // s + 1
            for d, b, a, k, l, s in zip(
                self.space, self.before, self.after, self.window, self.dilation, self.strides, strict=True
            )
        ]

    @property
    def pitch(self) -> int:
        return -(-(self.space[1] + self.before[1] + self.after[1]) // self.strides[1])

    @property
    def columns(self) -> int:
        height, width = self.made
        return up_to((height - 1) * self.pitch + width, COLUMNS)

    def phases(self, axis: int) -> int:
        """How many phases of an axis the window meets."""
        return 1 + max(k * self.dilation[axis] % self.strides[axis] for k in range(self.window[axis]))

    @property
    def rows(self) -> int:
        """Rows of each plane, so many that all columns can be read."""
        far = [(k - 1) * l // s for k, l, s in zip(self.window, self.dilation, self.strides, strict=True)]
        return (self.columns - 1 + far[0] * self.pitch + far[1]) // self.pitch + 1

    def packed(self, data: Tensor, kind: DataType) -> Tensor:
        """The planes of all channels, in the type of sums."""
        (n, c), (height, width), (top, left) = sizes(data)[:2], self.space, self.before

        def element(b: Expr, channel: Expr, v: Expr, u: Expr, row: Expr, column: Expr) -> Expr:
            y, x = row * self.strides[0] + v - top, column * self.strides[1] + u - left
            inside = te.all(y >= 0, y < height, x >= 0, x < width)
            return te.if_then_else(inside, te.cast(data[b, channel, y, x], kind), number(0, kind))

        shape = (n, c, self.phases(0), self.phases(1), self.rows, self.pitch)
        made: Tensor = te.compute(shape, element, name="T_planes", tag=PACKED)
        return made

    def read(self, planes: Tensor, b: Expr, channel: Expr, column: Expr, over: Sequence[te.IterVar]) -> Expr:
        """The element of a plane for a column, at a place of the window."""
        (y, x), (s, t) = (r * l for r, l in zip(over, self.dilation, strict=True)), self.strides
        at = column + y // s * self.pitch + x // t
        found: Expr = planes[b, channel, y % s, x % t, at // self.pitch, at % self.pitch]
        return found


def _plane(data: Tensor, window: Sequence[int], strides: object, padding: object, dilation: object) -> _Plane:
    dilation = pair(dilation)
    return _Plane(sizes(data)[2:], window, pair(strides), dilation, *padding_of(padding, window, dilation))


def _convolution(
    data: Tensor, kernel: Tensor, plane: _Plane, groups: int, own: int, out_dtype: str | None, weight: Element, tag: str
) -> Tensor:  # fmt: skip
    """Sums over windows of planes. `own`: channels of a group, `weight`: of a group, an output in it, a channel in it and a
    place of the window."""
    n, outputs = sizes(data)[0], sizes(kernel)[0] * (sizes(kernel)[1] if own == 1 and groups > 1 else 1)
    each, kind = outputs // groups, sum_type(data.dtype, out_dtype)
    planes = plane.packed(data, kind)
    rc = te.reduce_axis((0, own), name="rc")
    over = [te.reduce_axis((0, k), name=f"r{a}") for a, k in zip("yx", plane.window, strict=True)]

    def sums(b: Expr, g: Expr, o: Expr, q: Expr) -> Expr:
        last = o if _tall(each) == each else te.min(o, each - 1)
        value = plane.read(planes, b, g * own + rc, q, over)
        found: Expr = te.sum(product(value, weight(g, last, rc, over), kind), axis=[rc, *over])
        return found

    total = te.compute([n, groups, _tall(each), plane.columns], sums, name="T_sums", tag=PRODUCTS)
    made = te.compute(
        [n, outputs, *plane.made], lambda b, o, y, x: total[b, o // each, o % each, y * plane.pitch + x],
        name=f"T_{tag}", tag=tag,
    )  # fmt: skip
    return result(made, data.dtype, out_dtype)


def _constant_sizes(data: Tensor, kernel: Tensor, *options: object, **named: object) -> bool:
    return _known(data, kernel)


@implementation("conv2d_nchw", HOSTS, _constant_sizes)
def planes_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: object, padding: object, dilation: object = 1, out_dtype: str | None = None
) -> Tensor:
    """`conv2d_nchw` on planes."""
    return planes_group_conv2d_nchw(Input, Filter, stride, padding, dilation, 1, out_dtype)


@implementation("group_conv2d_nchw", HOSTS, _constant_sizes)
def planes_group_conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """`group_conv2d_nchw` on planes."""
    outputs, own, *window = sizes(Filter)
    plane, each = _plane(Input, window, stride, padding, dilation), outputs // groups
    weight = lambda g, o, rc, over: Filter[(g * each + o, rc, *over)]
    tag = "conv2d_nchw" if groups == 1 else "group_conv2d_nchw"
    return _convolution(Input, Filter, plane, groups, own, out_dtype, weight, tag)


@implementation("depthwise_conv2d_nchw", HOSTS, _constant_sizes)
def planes_depthwise_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: object, padding: object, dilation: object = 1, out_dtype: str | None = None
) -> Tensor:
    """`depthwise_conv2d_nchw` on planes."""
    channels, _, *window = sizes(Filter)
    plane = _plane(Input, window, stride, padding, dilation)
    weight = lambda g, o, rc, over: Filter[(g, o, *over)]
    return _convolution(Input, Filter, plane, channels, 1, out_dtype, weight, "depthwise_conv2d_nchw")


# ----------------------------------------------------------------------------------------------------------------- products


@dataclass(frozen=True)
class _Product:
    """A product of matrices, or of as many as a batch has: its sizes, elements of both sides as functions of batch, place in the
    result and place in the sum, and whether the right side lies along the sum."""

    batch: int
    rows: int
    columns: int
    depth: int
    left: Element
    right: Element
    turned: bool
    kind: DataType

    @property
    def few(self) -> bool:
        """Whether there are too few rows for copying the right side, and sums lie along both sides."""
        return self.rows < ROWS and self.turned and self.depth >= LANES

    def sums(self) -> Element:
        """The elements of the result, as a function of batch, row and column."""
        return self._along() if self.few else self._panels()

    def _along(self) -> Element:
        """Sums of LANES parts each, which are added up; and of what is left over."""
        whole, rest = divmod(self.depth, LANES)
        k, lane = te.reduce_axis((0, whole), name="k"), te.reduce_axis((0, LANES), name="lane")

        def part(b: Expr, i: Expr, j: Expr, l: Expr) -> Expr:
            at = k * LANES + l
            found: Expr = te.sum(product(self.left(b, i, at), self.right(b, j, at), self.kind), axis=k)
            return found

        shape = [self.batch, self.rows, self.columns]
        parts = te.compute([*shape, LANES], part, name="T_parts", tag=PRODUCTS)
        total = te.compute(shape, lambda b, i, j: te.sum(parts[b, i, j, lane], axis=lane), name="T_total")
        if not rest:
            return lambda b, i, j: total[b, i, j]
        over = te.reduce_axis((whole * LANES, self.depth), name="rest")
        last = te.compute(
            shape,
            lambda b, i, j: te.sum(product(self.left(b, i, over), self.right(b, j, over), self.kind), axis=over),
            name="T_rest",
        )
        return lambda b, i, j: total[b, i, j] + last[b, i, j]

    def _panels(self) -> Element:
        """Sums by columns that lie together."""
        wide = up_to(self.columns, COLUMNS)

        def element(b: Expr, panel: Expr, at: Expr, l: Expr) -> Expr:
            j = panel * COLUMNS + l
            value = te.cast(self.right(b, j, at), self.kind)
            return value if wide == self.columns else te.if_then_else(j < self.columns, value, number(0, self.kind))

        panels = te.compute([self.batch, wide // COLUMNS, self.depth, COLUMNS], element, name="T_panels", tag=PACKED)
        return self.by(lambda *at: panels[at])

    def by(self, panels: Element) -> Element:
        """The elements of the result by those of panels: batch, panel, place in the sum and column in the panel."""
        wide, tall = up_to(self.columns, COLUMNS), _tall(self.rows)
        k = te.reduce_axis((0, self.depth), name="k")

        def one(b: Expr, i: Expr, j: Expr) -> Expr:
            row = i if tall == self.rows else te.min(i, self.rows - 1)
            found: Expr = te.sum(
                product(self.left(b, row, k), panels(b, j // COLUMNS, k, j % COLUMNS), self.kind), axis=k
            )
            return found

        total = te.compute([self.batch, tall, wide], one, name="T_sums", tag=PRODUCTS, attrs={TOGETHER: COLUMNS})
        return lambda b, i, j: total[b, i, j]


def _matmul(
    a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False, out_dtype: str | None = None
) -> _Product:
    (rows, depth), (_, columns) = sizes(a)[:: -1 if transp_a else 1], sizes(b)[:: -1 if transp_b else 1]
    return _Product(
        1, rows, columns, depth,
        lambda _, i, k: a[k, i] if transp_a else a[i, k], lambda _, j, k: b[j, k] if transp_b else b[k, j],
        transp_b, sum_type(a.dtype, out_dtype),
    )  # fmt: skip


def _batch_matmul(
    x: Tensor, y: Tensor, transpose_a: bool = False, transpose_b: bool = True, out_dtype: str | None = None
) -> _Product:
    (bx, *sx), (by, *sy) = sizes(x), sizes(y)
    (rows, depth), (_, columns) = sx[:: -1 if transpose_a else 1], sy[:: -1 if transpose_b else 1]

    def one_of(count: int, b: Expr) -> Expr | int:
        """The matrix, out of as many, that a place of the batch takes."""
        return 0 if count == 1 else b

    return _Product(
        max(bx, by), rows, columns, depth,
        lambda b, i, k: x[one_of(bx, b), k, i] if transpose_a else x[one_of(bx, b), i, k],
        lambda b, j, k: y[one_of(by, b), j, k] if transpose_b else y[one_of(by, b), k, j],
        transpose_b, sum_type(x.dtype, out_dtype),
    )  # fmt: skip


def _gains(form: Callable[..., _Product]) -> Callable[..., bool]:
    """Whether a product is better off packed: its right side lies along the sum, or has no whole vectors of columns."""

    def applies(a: Tensor, b: Tensor, *options: object, **named: object) -> bool:
        if not _known(a, b):
            return False
        made = form(a, b, *options, **named)
        return made.few or made.rows >= ROWS and (made.turned or made.columns % LANES > 0)

    return applies


@implementation("matmul", HOSTS, _gains(_matmul))
def packed_matmul(
    a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False, out_dtype: str | None = None
) -> Tensor:
    """`matmul` by panels of the right side, or along the sum."""
    made = _matmul(a, b, transp_a, transp_b, out_dtype)
    sums = made.sums()
    total = te.compute([made.rows, made.columns], lambda i, j: sums(0, i, j), name="T_matmul", tag="matmul")
    return result(total, a.dtype, out_dtype)


@implementation("batch_matmul", HOSTS, _gains(_batch_matmul))
def packed_batch_matmul(
    x: Tensor, y: Tensor, transpose_a: bool = False, transpose_b: bool = True, out_dtype: str | None = None
) -> Tensor:
    """`batch_matmul` by panels of the right sides, or along the sums."""
    made = _batch_matmul(x, y, transpose_a, transpose_b, out_dtype)
    shape = [made.batch, made.rows, made.columns]
    return result(te.compute(shape, made.sums(), name="T_batch_matmul", tag="batch_matmul"), x.dtype, out_dtype)


def panels_matmul(a: Tensor, panels: Tensor, out_dtype: str | None = None) -> Tensor:
    """The product of a matrix by one that is given in panels, [columns / COLUMNS, extent of the sum, COLUMNS]."""
    (rows, depth), columns = sizes(a), sizes(panels)[0] * COLUMNS
    made = _Product(
        1, rows, columns, depth, lambda _, i, k: a[i, k], lambda _, j, k: panels[j // COLUMNS, k, j % COLUMNS],
        True, sum_type(a.dtype, out_dtype),
    )  # fmt: skip
    sums = made.by(lambda _, *at: panels[at])
    total = te.compute([rows, columns], lambda i, j: sums(0, i, j), name="T_matmul", tag="matmul")
    return result(total, a.dtype, out_dtype)
