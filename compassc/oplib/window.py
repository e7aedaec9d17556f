"""The geometry of layers that slide a window over NHWC images."""

from typing import NamedTuple

from compassc.oplib.layer import Layer, Unsupported


class Window(NamedTuple):
    """Sizes of images and windows, in the order in which kernels take them. `c`: input channels."""

    n: int
    h: int
    w: int
    c: int
    oh: int
    ow: int
    kh: int
    kw: int
    sy: int
    sx: int
    dy: int
    dx: int
    pt: int
    pl: int


def window(layer: Layer) -> Window:
    """The window of a layer, checked against its output shape."""
    x, y = layer.input().shape, layer.output.shape
    if len(x) != 4 or len(y) != 4 or x[0] != y[0]:
        raise Unsupported(f"the shapes {list(x)} -> {list(y)} are not those of NHWC images")
    found = Window(
        x[0], x[1], x[2], x[3], y[1], y[2],
        layer.whole("kernel_y", 1), layer.whole("kernel_x"), layer.whole("stride_y", 1), layer.whole("stride_x", 1),
        layer.whole("dilation_y", 1), layer.whole("dilation_x", 1), layer.whole("pad_top", 0), layer.whole("pad_left", 0),
    )  # fmt: skip
    if min(found[4:12]) < 1 or min(found[12:]) < 0:
        raise Unsupported("a size of the window is not positive")
    heights = _sizes(found.h + found.pt + layer.whole("pad_bottom", 0), found.kh, found.dy, found.sy)
    widths = _sizes(found.w + found.pl + layer.whole("pad_right", 0), found.kw, found.dx, found.sx)
    if found.oh not in heights or found.ow not in widths:
        raise Unsupported(f"the window leads from {list(x)} to images of {heights[0]} x {widths[0]}, not to {list(y)}")
    return found


def _sizes(size: int, kernel: int, dilation: int, stride: int) -> tuple[int, int]:
    """Positions of a window along a padded size: without and with a last one that reaches past the end."""
    room = size - dilation * (kernel - 1) - 1
    return room // stride + 1, -(-room // stride) + 1
