"""Operators as tensors, inputs first: what programs try searches and analyses of schedules on."""

from __future__ import annotations

from ... import te, topi
from ...ir.errors import ExpressionError
from ...ir.exprs import Expr
from ...te import Tensor

Tensors = tuple[Tensor, ...]


def _padded(x: Tensor, padding: int) -> Tensor:
    """A tensor whose dimensions but the first and the last have zeros around."""
    inner = range(1, len(x.shape) - 1)
    shape = [e + 2 * padding if d in inner else e for d, e in enumerate(x.shape)]

    def point(*at: Expr) -> Expr:
        place = [i - padding if d in inner else i for d, i in enumerate(at)]
        inside = [c for d in inner for c in (place[d] >= 0, place[d] < x.shape[d])]
        return te.if_then_else(te.all(*inside), x(*place), te.const(0, x.dtype))

    made: Tensor = (
        te.compute(shape, point, name="PadInput") if padding else te.compute(shape, lambda *at: x(*at), name="PadInput")
    )
    return made


def _convolved(
    name: str,
    size: tuple[int, ...],
    ci: int,
    co: int,
    window: tuple[int, ...],
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    in_dtype: str,
    out_dtype: str,
) -> Tensors:
    """A convolution of channels that come last. `size`: of the batch and of the dimensions of space."""
    if groups < 1 or ci % groups or co % groups:
        raise ExpressionError(f"{name}: {groups} groups do not divide {ci} and {co} channels")
    x = te.placeholder((*size, ci), in_dtype, name="inputs")
    w = te.placeholder((*window, ci // groups, co), in_dtype, name="weight")
    padded = _padded(x, padding)
    reach = zip(size[1:], window)
    space = [(n + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for n, k in reach]
    axes = [te.reduce_axis((0, k), name=f"r{letter}") for k, letter in zip(window, "dhw"[-len(window) :])]
    rc = te.reduce_axis((0, ci // groups), name="rc")

    def point(*at: object) -> object:
        n, *place, c = at
        source = [p * stride + r.var * dilation for p, r in zip(place, axes)]  # type: ignore[operator]
        group = 0 if groups == 1 else c // (co // groups) * (ci // groups)  # type: ignore[operator]
        value = padded(n, *source, group + rc.var).astype(out_dtype) * w(*axes, rc, c).astype(out_dtype)
        return te.sum(value, axis=[*axes, rc])

    return x, w, te.compute((size[0], *space, co), point, name=name)


def conv1d_nlc(
    N: int,
    L: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Inputs of batch, length and channels."""
    window = (kernel_size,)
    return _convolved("conv1d_nlc", (N, L), CI, CO, window, stride, padding, dilation, groups, in_dtype, out_dtype)


def conv2d_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Inputs of batch, height, width and channels."""
    window = (kernel_size, kernel_size)
    return _convolved("conv2d_nhwc", (N, H, W), CI, CO, window, stride, padding, dilation, groups, in_dtype, out_dtype)


def conv3d_ndhwc(
    N: int,
    D: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Inputs of batch, depth, height, width and channels."""
    window = (kernel_size, kernel_size, kernel_size)
    return _convolved(
        "conv3d_ndhwc", (N, D, H, W), CI, CO, window, stride, padding, dilation, groups, in_dtype, out_dtype
    )


def conv2d_nchw(
    n: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kh: int,
    kw: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Channels before height and width."""
    x = te.placeholder((n, ci, h, w), in_dtype, name="X")
    weight = te.placeholder((co, ci, kh, kw), in_dtype, name="W")
    return x, weight, topi.nn.conv2d_nchw(x, weight, stride, padding, dilation, out_dtype)


def depthwise_conv2d_nhwc(
    N: int,
    H: int,
    W: int,
    C: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    factor: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Each channel with a window of its own."""
    if factor != 1:
        raise ExpressionError(f"depthwise_conv2d_nhwc: a channel has one window here, factor is {factor}")
    x = te.placeholder((N, H, W, C), in_dtype)
    weight = te.placeholder((factor, kernel_size, kernel_size, C), in_dtype)
    padded = _padded(x, padding)
    rows, columns = ((n + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1 for n in (H, W))
    rh, rw = te.reduce_axis((0, kernel_size), name="rh"), te.reduce_axis((0, kernel_size), name="rw")

    def point(n: Tensor, h: Tensor, w: Tensor, c: Tensor) -> object:
        value = padded(n, h * stride + rh.var * dilation, w * stride + rw.var * dilation, c // factor).astype(out_dtype)
        return te.sum(value * weight(c % factor, rh, rw, c // factor).astype(out_dtype), axis=[rh, rw])

    return x, weight, te.compute((N, rows, columns, C), point, name="depth_conv2d_nhwc")


def matmul(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> Tensors:
    """The product of two matrices."""
    a, b = te.placeholder((n, k), in_dtype, name="A"), te.placeholder((k, m), in_dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (n, m), lambda i, j: te.sum(a[i, r].astype(out_dtype) * b[r, j].astype(out_dtype), axis=[r]), name="C"
    )
    return a, b, c


def matmul_relu(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> Tensors:
    """The product of two matrices, and 0 where it is negative."""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    return a, b, topi.nn.relu(c)


def batch_matmul_nkkm(B: int, N: int, M: int, K: int, in_dtype: str = "float32", out_dtype: str = "float32") -> Tensors:
    """Products of pairs of matrices."""
    x, y = te.placeholder((B, N, K), in_dtype, name="X"), te.placeholder((B, K, M), in_dtype, name="Y")
    k = te.reduce_axis((0, K), name="k")
    z = te.compute(
        (B, N, M),
        lambda b, i, j: te.sum(x[b, i, k].astype(out_dtype) * y[b, k, j].astype(out_dtype), axis=[k]),
        name="Z",
    )
    return x, y, z


def max_pool2d_nchw(n: int, h: int, w: int, ci: int, padding: int) -> Tensors:
    """The largest of windows of two by two."""
    x = te.placeholder((n, ci, h, w), "float32", name="X")
    return x, topi.nn.pool2d(x, [2, 2], [1, 1], [1, 1], [padding] * 4, "max")


def norm_bmn(B: int, M: int, N: int) -> Tensors:
    """The lengths of matrices as vectors."""
    a = te.placeholder((B, M, N), name="A")
    i, j = te.reduce_axis((0, M), name="i"), te.reduce_axis((0, N), name="j")
    c = te.compute((B,), lambda b: te.sum(a[b, i, j] * a[b, i, j], axis=[i, j]), name="C")
    return a, te.compute((B,), lambda b: te.sqrt(c[b]), name="D")


def softmax_mn(m: int, n: int) -> Tensors:
    """The softmax of rows."""
    a = te.placeholder((m, n), name="A")
    return a, topi.nn.softmax(a, axis=1)
