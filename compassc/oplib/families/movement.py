"""Layers that move data without looking at it: Transpose, Concat, Split, and reshaping where a copy is needed.

Kernels are per element size; whatever the data type, they move integers of that size.
"""

from functools import cache

from compassc.dsl import script as S
from compassc.gbuilder.plugin_api import Tensor
from compassc.gbuilder.views import VIEWS
from compassc.oplib.layer import BITS, Choice, Layer, Unsupported, count, known, one_of, operator
from compassc.oplib.vector import LANES, SHORT, share

MOST = 8
"""Tensors that one Concat or Split can have."""


def bits(tensor: Tensor) -> str:
    """The integer type that moves a tensor's elements."""
    return BITS[one_of("data type", str(tensor.dtype), tuple(BITS))]


@cache
def _copy(dtype: str):
    lanes = LANES[dtype]

    @S.prim_func
    def copy(x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), n: S.i32):
        part = share(n, lanes)
        first = S.get_local_id() * part
        for at in range(first, S.min(first + part, n), lanes):
            mask = S.tail_mask(S.min(n - at, lanes), lanes)
            S.vstore(S.vload(x + at, mask), y + at, mask)

    return copy


@cache
def _permute(dtype: str, contiguous: bool):
    """y is a x b x c x n; its element (i, j, k, m) is x[i * sa + j * sb + k * sc + m * sn]."""
    lanes = LANES[dtype]

    @S.prim_func
    def transpose(
        x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), a: S.i32, b: S.i32, c: S.i32, n: S.i32,
        sa: S.i32, sb: S.i32, sc: S.i32, sn: S.i32,
    ):  # fmt: skip
        for r in range(S.get_local_id(), a * b * c, S.get_local_size()):
            start = x + (r / (b * c) * sa + r / c % b * sb + r % c * sc)
            for m in range(0, n, lanes):
                mask = S.tail_mask(S.min(n - m, lanes), lanes)
                if contiguous:
                    S.vstore(S.vload(start + m, mask), y + (r * n + m), mask)
                else:
                    S.vstore(S.vload(start + m * sn, mask, stride=sn), y + (r * n + m), mask)

    return transpose


def _runs(dtype: str):
    """A function that copies `n` elements, those from `first` in steps of `step`, from one place to another."""
    lanes = LANES[dtype]

    @S.prim_func
    def run(source: S.ptr(dtype, "global"), target: S.ptr(dtype, "global"), n: S.i32, first: S.i32, step: S.i32):
        for at in range(first, n, step):
            mask = S.tail_mask(S.min(n - at, lanes), lanes)
            S.vstore(S.vload(source + at, mask), target + at, mask)

    return run


@cache
def _joined(dtype: str, join: bool):
    """Rows of up to eight tensors, of w0 .. w7 elements, and rows of `whole`, in which they lie side by side.

    With few rows the TECs share each run, otherwise they share the rows.
    """
    lanes, run = LANES[dtype], _runs(dtype)

    @S.prim_func
    def move(
        whole: S.ptr(dtype, "global"), p0: S.ptr(dtype, "global"), p1: S.ptr(dtype, "global"),
        p2: S.ptr(dtype, "global"), p3: S.ptr(dtype, "global"), p4: S.ptr(dtype, "global"), p5: S.ptr(dtype, "global"),
        p6: S.ptr(dtype, "global"), p7: S.ptr(dtype, "global"), w0: S.i32, w1: S.i32, w2: S.i32, w3: S.i32, w4: S.i32,
        w5: S.i32, w6: S.i32, w7: S.i32, rows: S.i32, width: S.i32,
    ):  # fmt: skip
        few = rows < S.get_local_size()
        row = S.i32(0) if few else S.get_local_id()
        rows_at_once = S.i32(1) if few else S.get_local_size()
        first = S.get_local_id() * lanes if few else S.i32(0)
        step = S.get_local_size() * lanes if few else S.i32(lanes)
        for r in range(row, rows, rows_at_once):
            at = whole + r * width
            _side(run, join, at, p0 + r * w0, w0, first, step)
            at += w0
            _side(run, join, at, p1 + r * w1, w1, first, step)
            at += w1
            _side(run, join, at, p2 + r * w2, w2, first, step)
            at += w2
            _side(run, join, at, p3 + r * w3, w3, first, step)
            at += w3
            _side(run, join, at, p4 + r * w4, w4, first, step)
            at += w4
            _side(run, join, at, p5 + r * w5, w5, first, step)
            at += w5
            _side(run, join, at, p6 + r * w6, w6, first, step)
            at += w6
            _side(run, join, at, p7 + r * w7, w7, first, step)

    return move


def _side(run, join, whole, part, n, first, step):
    """The copy between a row of one tensor and its place in the whole."""
    source, target = (part, whole) if join else (whole, part)
    return run(source, target, n, first, step)


@operator(*sorted(VIEWS))
def reshape(layer: Layer) -> Choice:
    x, y = layer.input(), layer.output
    if count(x.shape) != count(y.shape) or str(x.dtype) != str(y.dtype):
        raise Unsupported(f"{list(x.shape)} {x.dtype} and {list(y.shape)} {y.dtype} are not the same data")
    return Choice(_copy(bits(x)), f"copy_{SHORT[bits(x)]}", [x, y, count(x.shape)])


@operator("Transpose", "Permute")
def transpose_layer(layer: Layer) -> Choice:
    x, y, perm = layer.input(), layer.output, layer.wholes("perm")
    if sorted(perm) != list(range(len(x.shape))) or [x.shape[p] for p in perm] != list(y.shape):
        raise Unsupported(f"perm {perm} does not take {list(x.shape)} to {list(y.shape)}")
    strides = [count(x.shape[i + 1 :]) for i in range(len(x.shape))]
    dims: list[tuple[int, int]] = []  # sizes of the output with the strides of the input, merged where they can be
    for size, stride in ((x.shape[p], strides[p]) for p in perm):
        if size == 1:
            continue
        if dims and dims[-1][1] == size * stride:
            dims[-1] = dims[-1][0] * size, stride
        else:
            dims.append((size, stride))
    if len(dims) > 4:
        raise Unsupported(f"perm {perm} moves more than four groups of dimensions")
    dims = dims or [(1, 1)]
    dims = [(1, 0)] * (4 - len(dims)) + dims
    contiguous = dims[-1][1] == 1
    name = f"transpose_{SHORT[bits(x)]}" + ("_rows" if contiguous else "")
    return Choice(_permute(bits(x), contiguous), name, [x, y, *(d[0] for d in dims), *(d[1] for d in dims)])


def _parts(layer: Layer, whole: Tensor, parts: list[Tensor], axis: int, join: bool) -> Choice:
    if not 1 <= len(parts) <= MOST:
        raise Unsupported(f"{len(parts)} tensors; 1 to {MOST} can be joined or split at once")
    if sum(t.shape[axis] for t in parts) != whole.shape[axis] or any(
        len(t.shape) != len(whole.shape) or str(t.dtype) != str(whole.dtype) for t in parts
    ):
        raise Unsupported("the shapes or data types of the parts do not make up the whole")
    inner, rows = count(whole.shape[axis + 1 :]), count(whole.shape[:axis])
    widths = [t.shape[axis] * inner for t in parts]
    tensors = [*parts, *[parts[0]] * (MOST - len(parts))]
    name = f"{'concat' if join else 'split'}_{SHORT[bits(whole)]}"
    sizes = [*widths, *[0] * (MOST - len(parts)), rows, sum(widths)]
    return Choice(_joined(bits(whole), join), name, [whole, *tensors, *sizes])


@operator("Concat")
def concat(layer: Layer) -> Choice:
    layer.input()
    return _parts(layer, layer.output, [known(t) for t in layer.inputs], layer.axes()[0], True)


@operator("Split")
def split(layer: Layer) -> Choice:
    return _parts(layer, layer.input(), [known(t) for t in layer.outputs], layer.axes()[0], False)
