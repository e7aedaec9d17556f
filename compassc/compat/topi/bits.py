"""`tvm.topi.nn`: products of numbers of few bits, which lie packed in words."""

from __future__ import annotations

from ... import te
from ...ir.errors import ExpressionError
from ...ir.exprs import Expr
from ...operators.convolution import padding_of
from ...operators.declare import axis_of, number, numbers
from ...te.tensor import Tensor
from .calls import Pads, Sizes, per_axis

__all__ = [
    "binarize_pack", "binary_dense", "bitpack", "bitserial_conv2d_nchw", "bitserial_conv2d_nhwc", "bitserial_dense",
]  # fmt: skip
_WIDTHS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def binarize_pack(data: Tensor, axis: int | None = None, name: str = "PackedInput") -> Tensor:
    """The signs of 32 elements on an axis (by default the last) as the bits of a word: 1 for those that are not negative, the
    first element in the highest bit. ExpressionError unless 32 divides the axis."""
    shape = numbers(data, "binarize_pack")
    at = axis_of(-1 if axis is None else axis, data.ndim, "binarize_pack")
    if shape[at] % 32:
        raise ExpressionError(f"binarize_pack takes axes that 32 divides, axis {at} has {shape[at]} elements")
    made = [n // 32 if d == at else n for d, n in enumerate(shape)]

    def word(*i: te.Var) -> Expr:
        bits = [_bit(data, i, at, 32, k) for k in range(32)]
        return _joined([te.cast(te.Select(b >= 0, 1, 0), "uint32") for b in bits], "uint32")

    found: Tensor = te.compute(made, word, name=name, tag="binarize_pack")
    return found


def _bit(data: Tensor, i: tuple[te.Var, ...], axis: int, width: int, k: int) -> Expr:
    made: Expr = data[tuple(v * width + k if d == axis else v for d, v in enumerate(i))]
    return made


def _joined(bits: list[Expr], kind: str) -> Expr:
    found = bits[0]
    for bit in bits[1:]:
        found = (found << te.const(1, kind)) | bit
    return found


def binary_dense(data: Tensor, weight: Tensor) -> Tensor:
    """The product of packed signs (rows by words) and packed weights (outputs by words), as real numbers."""
    (rows, words), (outputs, others) = numbers(data, "binary_dense"), numbers(weight, "binary_dense")
    if words != others:
        raise ExpressionError(f"binary_dense: rows of {words} and {others} words differ")
    k = te.reduce_axis((0, words), name="k")
    differ: Tensor = te.compute(
        (rows, outputs),
        lambda i, j: te.sum(te.cast(te.popcount(data[i, k] ^ weight[j, k]), "int32"), axis=k),
        name="T_differ",
        tag="binary_dense",
    )
    whole = words * 32
    made: Tensor = te.compute(
        (rows, outputs),
        lambda i, j: te.cast(whole - 2 * differ[i, j], "float32"),
        name="T_binary_dense",
        tag="elemwise",
    )
    return made


def bitpack(
    data: Tensor, bits: int, pack_axis: int, bit_axis: int, pack_type: str, name: str = "QuantizeInput"
) -> Tensor:
    """Numbers of `bits` bits as words of single bits: the elements on `pack_axis` lie in the bits of words, the first one
    in the highest, and the bits of the numbers on a new axis `bit_axis`, the lowest first."""
    if pack_type not in _WIDTHS:
        raise ExpressionError(f"bitpack has no words of {pack_type}", ", ".join(_WIDTHS))
    width, shape = _WIDTHS[pack_type], numbers(data, "bitpack")
    if shape[pack_axis] % width:
        raise ExpressionError(
            f"bitpack takes axes that {width} divides, axis {pack_axis} has {shape[pack_axis]} elements"
        )
    made = [n // width if d == pack_axis else n for d, n in enumerate(shape)]
    made.insert(bit_axis, bits)

    def word(*i: te.Var) -> Expr:
        level, own = i[bit_axis], (*i[:bit_axis], *i[bit_axis + 1 :])
        one = te.const(1, pack_type)
        given = [te.cast(_bit(data, own, pack_axis, width, k), pack_type) for k in range(width)]
        return _joined([(g >> te.cast(level, pack_type)) & one for g in given], pack_type)

    found: Tensor = te.compute(made, word, name=name, tag="bitpack")
    return found


def _product(a: Expr, w: Expr, unipolar: bool, kind: str) -> Expr:
    """Of words of bits: how many bits of the data are set where those of the weight are, less where they are not."""
    both = te.cast(te.popcount(a & w), kind)
    return both - te.cast(te.popcount(a & ~w), kind) if unipolar else both


def _levels(activation_bits: int, weight_bits: int) -> tuple[te.IterVar, te.IterVar]:
    return te.reduce_axis((0, activation_bits), name="b1"), te.reduce_axis((0, weight_bits), name="b2")


def bitserial_dense(
    data: Tensor, weight: Tensor, data_bits: int, weight_bits: int, pack_dtype: str = "uint32", out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """data @ weight.T of numbers of few bits. `unipolar`: bits of weights are 1 and -1, else 1 and 0. Weights are (outputs,
    inputs), or packed (outputs, bits, words)."""
    a = bitpack(data, data_bits, 1, 1, pack_dtype)
    w = weight if weight.ndim == 3 else bitpack(weight, weight_bits, 1, 1, pack_dtype)
    (rows, _, words), (outputs, *_) = numbers(a, "bitserial_dense"), numbers(w, "bitserial_dense")
    (b1, b2), k = _levels(data_bits, weight_bits), te.reduce_axis((0, words), name="k")

    def element(i: te.Var, j: te.Var) -> Expr:
        value = _product(a[i, b1, k], w[j, b2, k], unipolar, out_dtype)
        made: Expr = te.sum(value << te.cast(b1 + b2, out_dtype), axis=[b1, b2, k])
        return made

    made: Tensor = te.compute((rows, outputs), element, name="T_bitserial_dense", tag="bitserial_dense")
    return made


def _convolved(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Pads, bits: tuple[int, int], kinds: tuple[str, str], unipolar: bool, last: bool
) -> Tensor:  # fmt: skip
    (pack_dtype, out_dtype), channel = kinds, 3 if last else 1
    a = bitpack(data, bits[0], channel, 4 if last else 2, pack_dtype)
    if kernel.ndim == 4:
        kernel = bitpack(kernel, bits[1], 2 if last else 1, 4 if last else 2, pack_dtype)
    shape, weights = numbers(a, "bitserial_conv2d"), numbers(kernel, "bitserial_conv2d")
    n, height, width, words = (shape[d] for d in ((0, 1, 2, 3) if last else (0, 3, 4, 1)))
    kh, kw, outputs = (weights[d] for d in ((0, 1, 3) if last else (3, 4, 0)))
    (top, left), (bottom, right) = padding_of(padding, [kh, kw], [1, 1])
    sy, sx = per_axis(stride, 2)
    made = [(height + top + bottom - kh) // sy + 1, (width + left + right - kw) // sx + 1]
    (b1, b2), rc = _levels(*bits), te.reduce_axis((0, words), name="rc")
    ry, rx = te.reduce_axis((0, kh), name="ry"), te.reduce_axis((0, kw), name="rx")

    def element(b: te.Var, *i: te.Var) -> Expr:
        (v, u, o) = i if last else (i[1], i[2], i[0])
        y, x = v * sy + ry - top, u * sx + rx - left
        inside = te.all(y >= 0, y < height, x >= 0, x < width)
        at = (b, y, x, rc, b1) if last else (b, rc, b1, y, x)
        weight = kernel[(ry, rx, rc, o, b2) if last else (o, rc, b2, ry, rx)]
        value = _product(te.if_then_else(inside, a[at], number(0, pack_dtype)), weight, unipolar, out_dtype)
        made: Expr = te.sum(value << te.cast(b1 + b2, out_dtype), axis=[rc, ry, rx, b1, b2])
        return made

    layout = "nhwc" if last else "nchw"
    whole = (n, *made, outputs) if last else (n, outputs, *made)
    found: Tensor = te.compute(whole, element, name="T_bitserial_conv2d", tag=f"bitserial_conv2d_{layout}")
    return found


def bitserial_conv2d_nchw(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Pads, activation_bits: int, weight_bits: int,
    pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """A convolution of NCHW by OIHW, of numbers of few bits. `unipolar`: bits of weights are 1 and -1, else 1 and 0."""
    return _convolved(
        data, kernel, stride, padding, (activation_bits, weight_bits), (pack_dtype, out_dtype), unipolar, last=False
    )


def bitserial_conv2d_nhwc(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Pads, activation_bits: int, weight_bits: int,
    pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """A convolution of NHWC by HWIO, of numbers of few bits. `unipolar`: bits of weights are 1 and -1, else 1 and 0."""
    return _convolved(
        data, kernel, stride, padding, (activation_bits, weight_bits), (pack_dtype, out_dtype), unipolar, last=True
    )
