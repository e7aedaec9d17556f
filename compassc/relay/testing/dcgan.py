"""A network that makes pictures of random numbers by transposed convolutions, each twice as high and wide."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.analysis import free_vars
from compassc.relay.expr import Expr, Function, var
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload

FIRST = 4
"""Rows and columns before the first transposed convolution."""


class UnknownLayout(ExpressionError, ValueError):
    """A layout that there is no network for."""


def get_net(
    batch_size: int, random_len: int = 100, oshape: Sequence[int] = (3, 64, 64), ngf: int = 128, code: Expr | None = None,
    layout: str = "NCHW", dtype: str = "float32",
) -> Function:  # fmt: skip
    """Pictures of the shape `oshape` in a layout, of `random_len` numbers. UnknownLayout (a ValueError) for others than NCHW and
    NHWC."""
    if layout not in ("NCHW", "NHWC"):
        raise UnknownLayout(f"there is no network for {layout}", "give NCHW or NHWC")
    first = layout == "NCHW"
    numbers = var("data", shape=(batch_size, random_len), dtype=dtype) if code is None else code
    made = layers.made("nn.relu", layers.made("nn.dense", numbers, var("dense_weight"), FIRST * FIRST * ngf * 8))
    shape = (-1, ngf * 8, FIRST, FIRST) if first else (-1, FIRST, FIRST, ngf * 8)
    made = layers.made("reshape", made, shape)
    for n, channels in enumerate((ngf * 4, ngf * 2, ngf, oshape[0 if first else -1]), 2):
        made = layers.conv2d_transpose(
            made, channels=channels, kernel_size=(4, 4), strides=(2, 2), padding=(1, 1), data_layout=layout,
            kernel_layout="IOHW" if first else "HWOI", name=f"g{n}_deconv",
        )  # fmt: skip
        if n < 5:
            made = layers.batch_norm_infer(
                made, epsilon=1e-5 + 1e-12, scale=False, axis=layout.index("C"), name=f"g{n}_bn"
            )
            made = layers.made("nn.relu", made)
    made = layers.made("tanh", made)
    return Function(free_vars(made), made)


def get_workload(
    batch_size: int, oshape: Sequence[int] = (3, 64, 64), ngf: int = 128, random_len: int = 100, layout: str = "NCHW",
    dtype: str = "float32",
) -> Workload:  # fmt: skip
    """The module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, layout=layout, dtype=dtype))
